#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs of coset train: what they report, what changes no bit, what happens when a rank is killed."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

COSET = sys.argv[1]
KEYS = {"model", "ranks", "codec", "final_loss", "final_accuracy", "step_ms", "exposed_ms", "bytes_per_step",
        "bits_per_coord", "weights_identical", "weights_hash"}
PARAMETERS = 50826
GRADIENTS = 4 * PARAMETERS


def run(*arguments, **environment):
    return subprocess.run([COSET, "train", *arguments], capture_output=True, text=True, timeout=250, check=False,
                          env={**os.environ, **environment})


def train(*arguments, **environment):
    result = run("--json", "-", "--check-weights", *arguments, **environment)
    assert result.returncode == 0, (arguments, result.stderr)
    report = json.loads(result.stdout)
    assert KEYS <= report.keys() and report["weights_identical"], report
    return report


def every_way_learns():
    """Weights are compared at every step (--check-weights); the bytes are those of the algorithm."""
    for transport in ("shm", "threads", "tcp"):
        exact = train("--epochs", "4", "--transport", transport)
        assert exact["final_accuracy"] > 0.9 and exact["one_rank_difference"] < 1e-4, exact
        assert GRADIENTS <= exact["bytes_per_step"] < GRADIENTS + 10000, exact
    half = train("--epochs", "4", "--codec", "bf16")
    assert half["final_accuracy"] > 0.9 and GRADIENTS / 2 <= half["bytes_per_step"] < GRADIENTS / 2 + 2000, half
    compressed = train("--epochs", "4", "--codec", "lattice", "--budget", "0.05")
    assert compressed["final_accuracy"] > 0.9 and compressed["bytes_per_step"] * 3 < GRADIENTS, compressed
    four = train("--epochs", "10", "-n", "4", "--codec", "lattice", "--budget", "0.05")
    # an exact rank sends 2 (4 - 1) / 4 times the gradients; the loss is that of exact runs (0.057 to 0.095, five seeds)
    assert four["bytes_per_step"] * 6 < 1.5 * GRADIENTS and four["final_loss"] < 0.12, four
    clipped = train("--epochs", "4", "--clip", "1", "--optimizer", "adamw", "--accumulate", "2")
    assert clipped["final_accuracy"] > 0.8, clipped
    local = train("--epochs", "4", "--local-steps", "5", "-n", "3")
    assert local["final_accuracy"] > 0.9 and local["bytes_per_step"] * 3 < GRADIENTS, local
    train("--epochs", "4", "--local-steps", "5", "--codec", "lattice")
    train("--model", "gpt", "--size", "tiny", "--steps", "8", "--codec", "lattice")


def local_sgd_needs_codes_that_do_not_pay_for_size():
    """Models are much larger than their differences: two bits are enough for lattice codes and useless to EDEN."""
    result = run("--compare", "--local-steps", "10", "--bits", "2", "--json", "-")
    assert result.returncode == 0, result.stderr
    exact, lattice, eden, half = json.loads(result.stdout)
    assert [exact["codec"], lattice["codec"], eden["codec"], half["codec"]] == ["none", "lattice", "eden", "bf16"]
    assert lattice["bytes_per_step"] * 6 < exact["bytes_per_step"], (exact, lattice)
    assert lattice["final_loss"] < 0.12 and exact["final_loss"] < 0.12, (exact, lattice)
    assert eden["bytes_per_step"] > 0.8 * lattice["bytes_per_step"] and eden["final_loss"] > 1, (lattice, eden)


def buckets_change_no_bit():
    """In rank order: one parameter per bucket, a few, or all in one; and the transport neither."""
    for codec in ("none", "lattice"):
        hashes = {train("-n", "3", "--epochs", "2", "--codec", codec, "--clip", "0.5", "--bucket-mb", size, "--transport", t,
                        COSET_RANK_ORDER="1")["weights_hash"]
                  for size, t in (("0.001", "shm"), ("1", "shm"), ("25", "threads"), ("25", "tcp"))}
        assert len(hashes) == 1, (codec, hashes)


def steps_that_are_not_finite_are_left_out():
    """A rate that makes the weights overflow: all ranks leave out the same steps, and the culprit is named."""
    for codec in ("none", "lattice"):
        result = run("--json", "-", "--check-weights", "--steps", "60", "--rate", "900", "--clip", "1e30", "--codec", codec)
        report = json.loads(result.stdout)
        assert result.returncode == 0 and report["weights_identical"] and report["skipped_steps"] > 0, report
        assert "layer" in result.stderr and "rank 0 brought it in" in result.stderr, result.stderr


def training_together_is_training_alone():
    """To the last bit: before sums were taken alike, a flipped rectifier let some seeds drift apart."""
    for arguments in (("-n", "2", "--seed", "5"), ("-n", "3", "--seed", "3"), ("-n", "2", "--accumulate", "2")):
        result = run("--epochs", "10", *arguments)
        assert result.returncode == 0 and "largest difference 0," in result.stdout, (result.stdout[-400:], result.stderr)


def seeds_change_bits():
    assert train("--epochs", "1")["weights_hash"] != train("--epochs", "1", "--seed", "2")["weights_hash"]


def children(pid):
    """In the order in which they were started."""
    found = [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return sorted(found)


def a_killed_rank_is_named_by_all_others():
    job = subprocess.Popen([COSET, "train", "-n", "3", "--transport", "shm", "--epochs", "50000"], stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 20
    ranks = []
    while time.monotonic() < deadline:
        ranks = children(job.pid)
        # past its start: a rank in mid-training has used processor time
        if len(ranks) == 3 and all(used(pid) > 30 for pid in ranks):
            break
        time.sleep(0.02)
    assert len(ranks) == 3, ranks
    os.kill(ranks[1], signal.SIGKILL)
    begun = time.monotonic()
    _, errors = job.communicate(timeout=30)
    assert job.returncode != 0, errors
    assert time.monotonic() - begun < 20, errors
    for rank in (0, 2):
        mine = [line for line in errors.splitlines() if f"rank {rank}:" in line]
        assert mine and "rank 1" in mine[0], errors


def used(pid):
    """Clock ticks of processor time."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def files_are_written(folder):
    trace, svg = folder / "trace.json", folder / "loss of two.svg"
    train("--model", "gpt", "--size", "tiny", "--steps", "20", "--trace", str(trace), "--bucket-mb", "0.01")
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert {e["pid"] for e in events} == {0, 1}
    for rank in (0, 1):
        mine = [e for e in events if e["pid"] == rank]
        backward = [e for e in mine if e["cat"] == "backward"]
        assert len(backward) == 20 and len([e for e in mine if e["cat"] == "exposed"]) == 20
        starts = [e["ts"] for e in mine if e["cat"] == "bucket"]
        during = [t for t in starts if any(b["ts"] <= t <= b["ts"] + b["dur"] for b in backward)]
        assert during, "no bucket moved while backward ran"
        assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in mine)
    result = run("--steps", "20", "--plot", str(svg))
    if result.returncode == 2 and "gnuplot" in result.stderr:
        return
    assert result.returncode == 0 and "warning" not in result.stderr, result.stderr
    drawn = svg.read_text()
    assert drawn.lstrip().startswith("<?xml") and drawn.count("<title>none</title>") == 2, "one curve a panel"
    result = run("-n", "1", "--steps", "20", "--plot", str(svg))
    assert result.returncode == 0 and svg.read_text().count("<title>none</title>") == 1, "one rank sends nothing"


def half_a_plot_is_a_failure(folder):
    """gnuplot ends with 0 on a full disk: here one that writes the beginning only."""
    fake = folder / "gnuplot"
    fake.write_text("#!/bin/sh\nfile=$(sed -n \"s/^set output '\\(.*\\)'/\\1/p\")\nprintf '<?xml version=\"1.0\"?><svg>' >\"$file\"\n")
    fake.chmod(0o755)
    result = run("--steps", "2", "--plot", str(folder / "half.svg"), PATH=f"{folder}:{os.environ['PATH']}")
    assert result.returncode == 1 and "half.svg" in result.stderr, result.stderr
    assert (folder / "half.svg").read_text().endswith("<svg>")


def bad_input_is_one_line():
    for bad in (["--batch", "1"], ["--budget", "0.1"], ["--codec", "lattice", "--budget", "0.1", "--bits", "3"],
                ["--size", "tiny"], ["--model", "cnn"], ["--compare", "--codec", "eden"], ["--clip", "0"],
                ["--local-steps", "4", "--clip", "1"], ["--accumulate", "1000"],
                ["--codec", "nothing"], ["--codec", "eden", "--bits", "20"],
                ["--compare", "--bits", "20"], ["--plot", "|true"]):
        result = run(*bad)
        assert result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, (bad, result)


def main():
    bad_input_is_one_line()
    every_way_learns()
    local_sgd_needs_codes_that_do_not_pay_for_size()
    buckets_change_no_bit()
    training_together_is_training_alone()
    seeds_change_bits()
    steps_that_are_not_finite_are_left_out()
    a_killed_rank_is_named_by_all_others()
    with tempfile.TemporaryDirectory() as folder:
        files_are_written(pathlib.Path(folder))
        half_a_plot_is_a_failure(pathlib.Path(folder))


if __name__ == "__main__":
    main()
