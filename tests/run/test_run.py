#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coset run: environment, output, ends of every kind, and that nothing is left behind."""
import array
import collections
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TOOL = sys.argv.pop(1)


def run(*args, env=None, **kwargs):
    full = dict(os.environ)
    for name in list(full):
        if name.startswith("COSET_"):
            del full[name]
    full.update(env or {})
    return subprocess.run([TOOL, "run", *args], capture_output=True, text=True, timeout=60, env=full, **kwargs)


def start(*args):
    return subprocess.Popen([TOOL, "run", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def waiting(pipe):
    """How many bytes are in it."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def pids_in(folder):
    return [int(p.name) for p in pathlib.Path(folder).iterdir()]


class Environment(unittest.TestCase):
    SHOW = 'echo $COSET_RANK $COSET_SIZE $COSET_LOCAL_RANK $COSET_LOCAL_SIZE "$COSET_JOB" "$COSET_ROOT"'

    def lines(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return sorted(line.split("] ", 1)[1].split() for line in result.stdout.splitlines())

    def test_one_host(self):
        rows = self.lines(run("-n", "3", "--", "sh", "-c", self.SHOW, env={"COSET_ROOT": "stale:1"}))
        self.assertEqual([row[:4] for row in rows], [[str(r), "3", str(r), "3"] for r in range(3)])
        self.assertEqual(len({row[4] for row in rows}), 1)
        self.assertTrue(all(len(row) == 5 for row in rows))  # no root

    def test_jobs_have_names_of_their_own(self):
        names = {self.lines(run("-n", "1", "--", "sh", "-c", self.SHOW))[0][4] for _ in range(3)}
        self.assertEqual(len(names), 3)

    def test_several_hosts(self):
        args = ["-n", "2", "--nodes", "3", "--root", "here:1234"]
        rows = self.lines(run(*args, "--node-rank", "1", "--", "sh", "-c", self.SHOW))
        self.assertEqual([row[:4] for row in rows], [["2", "6", "0", "2"], ["3", "6", "1", "2"]])
        other = self.lines(run(*args, "--node-rank", "2", "--", "sh", "-c", self.SHOW))
        self.assertEqual(rows[0][4:], other[0][4:])  # job and root are the same on all hosts
        self.assertEqual(rows[0][5], "here:1234")


class Output(unittest.TestCase):
    def test_streams_stay_apart_and_lines_whole(self):
        script = "i=0; while [ $i -lt 300 ]; do printf 'a%s' $i; printf 'b\\n'; echo e$i >&2; i=$((i+1)); done"
        result = run("-n", "4", "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 0)
        for text, shape in ((result.stdout, "a%db"), (result.stderr, "e%d")):
            by_rank = collections.defaultdict(list)
            for line in text.splitlines():
                rank, rest = line.split("] ", 1)
                by_rank[rank].append(rest)
            self.assertEqual(sorted(by_rank), ["[0", "[1", "[2", "[3"])
            for lines in by_rank.values():
                self.assertEqual(lines, [shape % i for i in range(300)])

    def test_last_line_without_end_and_empty_lines(self):
        self.assertEqual(run("-n", "1", "--", "printf", "a\n\nb").stdout, "[0] a\n[0] \n[0] b\n")

    def test_endless_line_is_cut_but_nothing_is_lost(self):
        result = run("-n", "1", "--", "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x")
        lines = [line[len("[0] "):] for line in result.stdout.splitlines()]
        self.assertEqual("".join(lines), "x" * 200000)
        self.assertEqual(len(lines), 4)

    def test_input_goes_to_rank_0(self):
        result = run("-n", "2", "--", "sh", "-c", "cat", input="hello\n")
        self.assertEqual(result.stdout, "[0] hello\n")

    def test_endless_output_holds_nothing_up(self):
        """Ranks, or what they leave behind, that write faster than lines can be passed on."""
        for options, script, status in ((["--timeout", "1"], "exec yes", 124),
                                        ([], "setsid yes & for i in $(seq 1000); do :; done", 0)):
            p = subprocess.Popen([TOOL, "run", "-n", "2", *options, "--", "sh", "-c", script],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(p.wait(30), status)
            finally:
                p.kill()

    def test_a_reader_that_stands_still_holds_nothing_up(self):
        p = subprocess.Popen([TOOL, "run", "-n", "1", "--", "yes"], stdout=subprocess.PIPE)
        self.assertTrue(wait_until(lambda: waiting(p.stdout) > 60000))  # a pipe is full with 65,536
        p.send_signal(signal.SIGTERM)
        p.send_signal(signal.SIGINT)
        try:
            self.assertGreater(p.wait(30), 128)
        finally:
            p.kill()
            p.communicate()

    def test_reader_that_leaves_ends_the_job(self):
        p = start("-n", "2", "--", "sh", "-c", "while :; do echo x; done")
        p.stdout.readline()
        p.stdout.close()
        p.stderr.close()
        self.assertEqual(p.wait(30), 128 + signal.SIGPIPE)


class Ends(unittest.TestCase):
    def test_exit_status_of_the_first_failure(self):
        result = run("-n", "3", "--", "sh", "-c", "[ $COSET_RANK = 1 ] && exit 7; exit 0")
        self.assertEqual(result.returncode, 7)
        self.assertIn("rank 1 ended with exit status 7", result.stderr)
        result = run("-n", "2", "--", "sh", "-c", "[ $COSET_RANK = 1 ] && kill -9 $$; exit 0")
        self.assertEqual(result.returncode, 128 + 9)
        self.assertIn("rank 1 was killed by signal 9 (SIGKILL)", result.stderr)

    def test_others_may_report_and_the_first_failure_counts(self):
        result = run("-n", "2", "--", "sh", "-c", "[ $COSET_RANK = 1 ] && exit 3; sleep 1; echo my report; exit 5")
        self.assertEqual(result.returncode, 3)
        self.assertIn("[0] my report", result.stdout)

    def test_those_that_stay_are_terminated_after_10_s(self):
        before = time.monotonic()
        result = run("-n", "2", "--", "sh", "-c", "[ $COSET_RANK = 1 ] && exit 3; trap 'echo told; exit' TERM; sleep 60 & wait")
        self.assertEqual(result.returncode, 3)
        self.assertIn("[0] told", result.stdout)
        self.assertGreaterEqual(time.monotonic() - before, 10)

    def test_timeout_and_kill_of_the_stubborn(self):
        before = time.monotonic()
        result = run("-n", "2", "--timeout", "1", "--", "sh", "-c", "trap '' TERM INT; while :; do sleep 1; done")
        self.assertEqual(result.returncode, 124)
        self.assertIn("not finished after 1 s", result.stderr)
        self.assertGreaterEqual(time.monotonic() - before, 6)  # 1 s, then 5 s from SIGTERM to SIGKILL

    def test_signals_are_passed_on(self):
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            name = number.name[3:]
            p = start("-n", "2", "--", "sh", "-c", f"trap 'echo got {name}; exit 0' {name}; echo up; sleep 60 & wait")
            for _ in range(2):
                self.assertIn("up", p.stdout.readline())
            p.send_signal(number)
            out, _ = p.communicate(timeout=30)
            self.assertEqual(sorted(out.splitlines()), [f"[0] got {name}", f"[1] got {name}"])
            self.assertEqual(p.returncode, 0)

    def test_interrupted_ranks_give_the_signals_status(self):
        p = start("-n", "2", "--", "sh", "-c", "echo up; exec sleep 60")
        for _ in range(2):
            p.stdout.readline()
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + signal.SIGINT)

    def test_a_second_signal_ends_the_patience(self):
        p = start("-n", "1", "--", "sh", "-c", "trap 'echo told' TERM; echo up; while :; do sleep 0.1; done")
        p.stdout.readline()
        before = time.monotonic()
        p.send_signal(signal.SIGTERM)
        self.assertIn("told", p.stdout.readline())  # two that wait together would be one
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + signal.SIGKILL)
        self.assertLess(time.monotonic() - before, 9)


    def test_what_nohup_ignores_stays_ignored(self):
        p = subprocess.Popen([TOOL, "run", "-n", "1", "--", "sh", "-c", "trap 'echo got' USR1; echo up; while :; do sleep 0.1; done"],
                             stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertIn("up", p.stdout.readline())
        for _ in range(2):  # a second one that counts would end the patience
            p.send_signal(signal.SIGHUP)
            p.send_signal(signal.SIGUSR1)
            self.assertIn("got", p.stdout.readline())
        p.terminate()
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)

    def test_a_parent_that_ignores_its_children(self):
        result = run("-n", "2", "--", "sh", "-c", "exit $COSET_RANK",
                     preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.returncode, 1, result.stderr)

    def test_children_from_before_are_left_alone(self):
        """Those of a shell that became coset run, such as a reader of its output."""
        p = subprocess.Popen(["sh", "-c", 'exec 3<&0; cat <&3 & exec "$0" run -n 1 -- true <&-', TOOL],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.wait(30), 0)
        out, _ = p.communicate("still here\n", timeout=30)
        self.assertEqual(out, "still here\n")


class NothingIsLeft(unittest.TestCase):
    """Every rank starts a child in its group and one that leaves it (setsid); each leaves its process id in a folder."""
    SCRIPT = ('touch $DIR/$$; (touch $DIR/$(sh -c "echo \\$PPID"); exec sleep 300) & '
              'setsid sh -c "touch $DIR/\\$\\$; exec sleep 300" & ')

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.environ["DIR"] = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def started(self, count):
        self.assertTrue(wait_until(lambda: len(pids_in(self.folder.name)) == count), pids_in(self.folder.name))

    def gone(self):
        left = [p for p in pids_in(self.folder.name) if alive(p)]
        if not wait_until(lambda: not [p for p in left if alive(p)], 10):
            left = [p for p in left if alive(p)]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.fail(f"left behind: {left}")

    def test_after_success(self):
        result = run("-n", "2", "--", "sh", "-c", self.SCRIPT + "while [ $(ls $DIR | wc -l) != 6 ]; do sleep 0.02; done")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.gone()

    def test_after_failure_and_terminate(self):
        p = start("-n", "2", "--", "sh", "-c", self.SCRIPT + "wait")
        self.started(6)
        p.terminate()
        p.communicate(timeout=30)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.gone()

    def test_after_kill_of_coset_run_itself(self):
        # what has left its group cannot be found once coset run is gone: everything else must go
        p = start("-n", "2", "--", "sh", "-c", 'touch $DIR/$$; (touch $DIR/$(sh -c "echo \\$PPID"); exec sleep 300) & wait')
        self.started(4)
        p.kill()
        p.communicate(timeout=30)
        self.gone()


class BadInput(unittest.TestCase):
    def refused(self, *args, words):
        result = run(*args)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_one_line_and_status_2(self):
        self.refused(words="-- CMD")
        self.refused("-n", "2", words="-- CMD")
        self.refused("--", "true", words="-n N")
        self.refused("-n", "0", "--", "true", words="1 to 4096")
        self.refused("-n", "x", "--", "true", words="1 to 4096")
        self.refused("-n", "2", "--timeout", "0", "--", "true", words="timeout")
        self.refused("-n", "2", "--nodes", "2", "--root", "a:1", "--", "true", words="--node-rank")
        self.refused("-n", "2", "--nodes", "2", "--node-rank", "2", "--root", "a:1", "--", "true", words="--node-rank")
        self.refused("-n", "2", "--nodes", "2", "--node-rank", "0", "--", "true", words="--root")
        self.refused("-n", "2", "--root", "nowhere", "--", "true", words="HOST:PORT")
        self.refused("-n", "2", "--root", "a:99999", "--", "true", words="HOST:PORT")
        self.refused("-n", "2", "--nonsense", "--", "true", words="nonsense")
        self.refused("-n", "2", "--", "/no/such/program", words="/no/such/program")
        self.refused("-n", "2", "--", "/etc/passwd", words="/etc/passwd")

    def test_help(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--node-rank", result.stdout)


class Descriptors(unittest.TestCase):
    def limited(self, limit, *args):
        words = ["sh", "-c", 'ulimit -n "$0"; exec "$@"', str(limit), TOOL, "run", *args]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    def test_too_few_name_a_number_that_is_enough(self):
        """At every limit it ends at once: with what is needed, or well. What is said to be enough is."""
        for limit in range(8, 34):
            begin = time.monotonic()
            result = self.limited(limit, "-n", "8", "--", "true")
            self.assertLess(time.monotonic() - begin, 15)
            if result.returncode:
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.limited(14, "-n", "8", "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("8 ranks take 32 descriptors here: raise the limit (ulimit -n)", result.stderr)
        self.assertEqual(self.limited(32, "-n", "8", "--", "true").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
