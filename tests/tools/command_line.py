#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The coset command as a user types it: statuses, one-line errors, help, JSON."""
import json
import os
import re
import subprocess
import sys

COSET = sys.argv[1]
failures = []


def run(*arguments, **variables):
    return subprocess.run([COSET, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | variables)


def expect(good, what, result):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}\n  status {result.returncode}\n  out: {result.stdout[:500]}\n  err: {result.stderr[:500]}")


def commands(*prefix):
    """The commands that --help lists, with those below them."""
    listed = re.findall(r"^  (\S+) ", run(*prefix, "--help").stdout, re.MULTILINE)
    for name in listed:
        below = run(*prefix, name, "--help")
        yield (*prefix, name)
        if f"{name} COMMAND" in below.stdout:
            yield from commands(*prefix, name)


def main():
    result = run("--version")
    expect(result.returncode == 0 and re.match(r"coset \d+\.\d+\.\d+ ", result.stdout), "--version", result)
    for arguments in ([], ["nothing"], ["bench"], ["bench", "nothing"], ["--nothing"]):
        result = run(*arguments)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, f"bad: {arguments}", result)
    names = list(commands())
    expect(("info",) in names and ("bench", "allreduce") in names, f"commands: {names}", run("--help"))
    for name in names:
        result = run(*name, "--help")
        expect(result.returncode == 0 and "Usage: coset" in result.stdout, f"{name} --help", result)
        if "COMMAND" not in result.stdout:
            result = run(*name, "--no-such-option")
            expect(result.returncode == 2 and result.stderr.count("\n") == 1, f"{name} --no-such-option", result)
    result = run("info", "--tuning", "--ranks", "2,4", "--sizes", "64,1M", "--json", "-")
    rows = json.loads(result.stdout)
    expect(result.returncode == 0 and len(rows) == 14 and all(r["chosen"] in [a["algorithm"] for a in r["algorithms"]] for r in rows),
           "info --tuning", result)
    for alone in (["--ranks", "2"], ["--sizes", "64"]):
        expect(run("info", *alone).returncode == 2, f"info {alone} without --tuning is refused", run("--version"))
    expect(run("info", "--tuning", "--ranks", "1").returncode == 2, "one rank is refused", result)
    expect(run("info", "--tuning", "--sizes", "12,pigeon").returncode == 2, "a size that is none is refused", result)
    result = run("info", "--json", "-")
    facts = json.loads(result.stdout)
    expect(result.returncode == 0 and facts["version"] and facts["cpu"]["level"] and facts["transports"], "info", result)
    for arguments in (["info"], ["run", "-n", "2", "--", "true"], ["bench", "kernels"]):
        result = run(*arguments, COSET_SOCKETS="many")
        expect(result.returncode == 2 and not result.stdout and result.stderr.count("\n") == 1 and
               "COSET_SOCKETS=many" in result.stderr, f"{arguments}: a variable that means nothing", result)
    for arguments in (["info"], ["run", "-n", "3", "--", COSET, "info"]):
        result = run(*arguments, COSET_TRANPSORT="shm")
        expected = 2 if arguments[0] == "run" else 1  # `run` itself, and of the ranks the first
        expect(result.returncode == 0 and result.stderr.count("COSET_TRANPSORT") == expected, f"{arguments}: unknown", result)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
