#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`coset bench kernels`: its JSON agrees with itself and covers the levels of this machine; bad input is refused."""
import json
import subprocess
import sys

COSET = sys.argv[1]
failures = []


def run(*arguments):
    return subprocess.run([COSET, "bench", "kernels", *arguments], capture_output=True, text=True, timeout=60, check=False)


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def main():
    result = run("--only", "f32 sum 2>1", "--size", "4K", "--time", "1", "--json", "-")
    rows = json.loads(result.stdout)
    expect(result.returncode == 0 and rows, "a measurement succeeds")
    expect("reduce f32 sum 2>1" in result.stderr, "the table goes beside the JSON")
    for row in rows:
        expect(set(row) == {"kernel", "level", "place", "size_bytes", "time_us_p50", "gbps", "moved_gbps"}, f"keys: {row}")
        expect(row["size_bytes"] == 4096, f"size: {row}")
        expect(abs(row["gbps"] * row["time_us_p50"] * 1e3 / 4096 - 1) < 1e-9, f"speed is size by time: {row}")
        expect(abs(row["moved_gbps"] / row["gbps"] - 3) < 1e-9, f"two reads and a write: {row}")
    kernels = {row["kernel"] for row in rows}
    levels = {row["level"] for row in rows}
    expect("scalar" in levels and len(rows) == len(kernels) * len(levels), f"every kernel at every level: {levels}")
    one = json.loads(run("--only", "f32 sum 2>1", "--level", "scalar", "--size", "4K", "--time", "1", "--json", "-").stdout)
    expect({row["level"] for row in one} == {"scalar"}, "--level chooses")
    for bad in (["--only", "no such kernel"], ["--level", "sse9"], ["--size", "many"], ["--time", "0"], ["extra"]):
        result = run(*bad)
        expect(result.returncode == 2 and result.stderr.count("\n") == 1 and not result.stdout, f"refused: {bad}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
