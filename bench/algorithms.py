#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which all-reduce algorithm is fastest at which size: the measurement behind the table in src/coll/select.c.

usage: bench/algorithms.py [--transport tcp] [--ranks 2,4,8] [--rounds 3] [--min 64] [--max 16M] [--dtype f32]

Runs `coset bench allreduce` for every algorithm, interleaved over the rounds; prints, for each number of ranks, the
median over the rounds of the median time (us), the best, and the rows that the table would need. An algorithm stays in
its row while it is within 10 % of the best, so that noise does not cut the table to pieces. Run it on an idle machine;
between hosts, under the launcher that starts one rank per host, it measures the network instead (--launcher).
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
ALGORITHMS = ["flat", "direct", "ring", "rd", "rhd", "tree"]
STAYS_WITHIN = 1.10


def measure(args, ranks, algorithm):
    """size -> median time in us"""
    command = [*shlex.split(args.launcher.replace("{ranks}", str(ranks))), args.coset, "bench", "allreduce", "--algo",
               algorithm, "-b", args.min, "-e", args.max, "-f", "4", "--dtype", args.dtype, "--json", args.json]
    if not args.launcher:
        command += ["-n", str(ranks), "--transport", args.transport]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    rows = json.loads(pathlib.Path(args.json).read_text())
    wrong = sum(row["wrong"] for row in rows)
    if wrong:
        sys.exit(f"{algorithm} with {ranks} ranks: {wrong} wrong elements")
    return {row["size_bytes"]: row["time_us_p50"] for row in rows}


def rounds(args, ranks):
    """size -> algorithm -> time"""
    seen = {}
    for _ in range(args.rounds):
        for algorithm in args.algorithms:
            for size, time in measure(args, ranks, algorithm).items():
                seen.setdefault(size, {}).setdefault(algorithm, []).append(time)
    return {size: {a: statistics.median(times) for a, times in row.items()} for size, row in sorted(seen.items())}


def choose(table):
    """[(size, algorithm)]: as many changes as the tolerance allows, no more."""
    chosen, current = [], None
    for size, row in table.items():
        best = min(row, key=row.get)
        if current is None or row[current] > STAYS_WITHIN * row[best]:
            current = best
        chosen.append((size, current))
    return chosen


def rows(chosen, ranks):
    """The lines of select.c: the largest size at which each algorithm was still chosen."""
    for (size, algorithm), (_, following) in zip(chosen, chosen[1:] + [(None, None)]):
        if following != algorithm:
            limit = "NO_LIMIT" if following is None else f"{size} /* bytes */"
            yield f"    {{CST_ALLREDUCE, {ranks}, {limit}, CST_ALGO_{algorithm.upper()}}},"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coset", default=str(ROOT / "build/release/bin/coset"))
    parser.add_argument("--transport", default="tcp")
    parser.add_argument("--launcher", default="", help="for example 'mpirun -np {ranks} --hostfile hosts'")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min", default="64")
    parser.add_argument("--max", default="16M")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=ALGORITHMS)
    parser.add_argument("--json", default=str(ROOT / "build/algorithms.json"), help="scratch file")
    args = parser.parse_args()
    for ranks in map(int, args.ranks.split(",")):
        table = rounds(args, ranks)
        chosen = dict(choose(table))
        print(f"\n{ranks} ranks, {args.launcher or args.transport}, {args.dtype}; median us\n")
        print("| bytes | " + " | ".join(args.algorithms) + " | chosen |")
        print("|---:|" + "---:|" * len(args.algorithms) + "---|")
        for size, row in table.items():
            print(f"| {size} | " + " | ".join(f"{row[a]:.1f}" for a in args.algorithms) + f" | {chosen[size]} |")
        print("\n".join(rows(list(chosen.items()), ranks)))


if __name__ == "__main__":
    main()
