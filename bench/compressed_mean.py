#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Error and bits of the compressed mean: the tables of docs/performance.md.

    bench/compressed_mean.py [--coset build/release/bin/coset] [--dim 1M] [--steps 3] [--quick]

Every row is one run of `coset bench codec`: all ranks in one process, new vectors in every step, the first call (with its
sketch) counted. Nothing here depends on the machine but the seconds.
"""
import argparse
import json
import subprocess

# Bits of both phases that a simulation of the exchange with ideal entropy codes needs at budget 0.05, in the long run.
SIMULATED = {(2, 0): 5.49, (8, 0): 5.89, (32, 0): 5.96, (2, 10): 7.40, (8, 10): 9.18, (32, 10): 10.44}


def run(coset, **options):
    arguments = [coset, "bench", "codec", "--json", "-"]
    for name, value in options.items():
        arguments += [f"--{name}", str(value)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def both_phases(row):
    return row["bits_sent_per_coord"] * row["ranks"] / (row["ranks"] - 1)


def flat_in_the_mean(args):
    print(f"\nBudget 0.05, Gaussian, spread 1, d = {args.dim}, mean of {args.steps} calls, the first with its sketch counted\n")
    print("| ranks | mean | bits, both phases | simulated | excess | repaired |")
    print("|---|---|---|---|---|---|")
    for ranks in (2, 8) if args.quick else (2, 8, 32):
        for mean in (0, 0.3, 1, 10, 1000):
            row = run(args.coset, ranks=ranks, dim=args.dim, mean=mean, steps=args.steps, codec="lattice")[0]
            known = SIMULATED.get((ranks, min(mean, 10)), "")
            print(f"| {ranks} | {mean} | {both_phases(row):.2f} | {known} | {row['excess_over_sampling']:.4f} |"
                  f" {row['repaired_units']:.1f} |", flush=True)


def beside_baselines(args):
    print(f"\nExcess at 4 bits per coordinate and phase, d = {args.dim}\n")
    codecs = "lattice lattice:z lattice:e8 lattice:entropy eden qsgd:linf,bucket=512 suresh:rotated correlated"
    cases = [(8, 0), (8, 1), (8, 10)] if args.quick else [(8, 0), (8, 1), (8, 10), (32, 0), (32, 10)]
    print("| codec | " + " | ".join(f"N={n}, mean {m}" for n, m in cases) + " |")
    print("|---" * (len(cases) + 1) + "|")
    columns = [run(args.coset, ranks=n, dim=args.dim, mean=m, steps=args.steps, bits=4, codec=codecs) for n, m in cases]
    for i, name in enumerate(codecs.split()):
        print(f"| {name} | " + " | ".join(f"{c[i]['excess_over_sampling']:.4g}" for c in columns) + " |", flush=True)


def homomorphic(args):
    print(f"\nHomomorphic, 8 bits, N = 8, d = {args.dim}\n")
    print("| codec | mean | bits, both phases | excess | repaired |")
    print("|---|---|---|---|---|")
    for codec in ("lattice:e8", "lattice:z"):
        for mean in (0, 1, 10, 1000):
            row = run(args.coset, ranks=8, dim=args.dim, mean=mean, steps=args.steps, protocol="homomorphic", codec=codec)[0]
            print(f"| {codec} | {mean} | {both_phases(row):.2f} | {row['excess_over_sampling']:.5f} |"
                  f" {row['repaired_units']:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coset", default="build/release/bin/coset")
    parser.add_argument("--dim", default="1M")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="leave out 32 ranks")
    args = parser.parse_args()
    flat_in_the_mean(args)
    beside_baselines(args)
    homomorphic(args)


if __name__ == "__main__":
    main()
