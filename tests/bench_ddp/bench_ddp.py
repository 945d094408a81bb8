#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coset bench ddp: its keys, the figures that follow from the options alone, and bad input."""
import json
import subprocess
import sys

COSET = sys.argv[1]
KEYS = {"step_ms", "backward_ms", "comm_ms", "exposed_ms", "oracle_step_ms", "comm_cpu_ms", "buckets", "wire_sent_bytes"}
ELEMENTS = 300000


def run(*arguments):
    return subprocess.run([COSET, "bench", "ddp", *arguments], capture_output=True, text=True, timeout=60, check=False)


def measure(*arguments):
    result = run("--params", str(ELEMENTS), "--layers", "12", "--iters", "5", "--json", "-", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def figures_are_consistent(*arguments):
    f = measure("--backward-ms", "12", *arguments)
    assert KEYS <= f.keys(), f
    assert abs(f["exposed_ms"] - (f["step_ms"] - f["oracle_step_ms"])) < 1e-9, f
    assert f["oracle_step_ms"] >= 12 * 0.99 or f["backward"] == "work", f
    assert 0 <= f["comm_cpu_ms"] and 0 < f["comm_ms"], f
    return f


def main():
    for backward in ("sleep", "work"):
        for transport in ("shm", "threads", "tcp"):
            f = figures_are_consistent("--backward", backward, "--transport", transport)
            # 2 (n - 1) / n of the gradients, and a few small messages
            assert 4 * ELEMENTS <= f["wire_sent_bytes"] < 4 * ELEMENTS + 10000, f
    small = measure("--backward-ms", "2", "--bucket-mb", "0.1")
    assert small["buckets"] == 12, small
    assert measure("--backward-ms", "2", "-n", "1")["wire_sent_bytes"] == 0
    compressed = measure("--backward-ms", "2", "--codec", "lattice")
    assert compressed["wire_sent_bytes"] * 6 < 4 * ELEMENTS and compressed["bits_per_coord"] < 6, compressed
    for bad in (["--layers", "5", "--params", "4"], ["--backward", "nap"], ["--bucket-mb", "-1"], ["extra"],
                ["--codec", "nothing"], ["--budget", "0.1"]):
        result = run(*bad)
        assert result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, (bad, result)


if __name__ == "__main__":
    main()
