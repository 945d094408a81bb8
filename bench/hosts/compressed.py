#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compressed mean between rate-limited hosts beside the exact all-reduce and the f32 bound of the link; prints Markdown.

usage: bench/hosts/compressed.py [--hosts 2,4] [--per-host L] [--rate 1gbit|100mbit] [--sizes 25M,100M] [--rounds R] [--mean R] [--no-exact]
Gaussian ranks, L on each host. `lattice` is the sharded star with --budget 0.05 planned for least time on the link,
`homomorphic` one integer all-reduce of 8-bit codes. The bound is 2(N-1)/N S over the link's rate, N hosts, without headers;
`wire` is what the reported bytes take on the link, `codec` the processor time of encoding and decoding, a part of which
hides behind the wire.
Needs root, iproute2 and build/release/bin/coset.
"""
import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "netns"), str(ROOT / "bench" / "peers")]
import hosts  # noqa: E402
import run as peers  # noqa: E402

TOOL = str(ROOT / "build/release/bin/coset")
BYTES_PER_S = {"1gbit": 1.25e8, "100mbit": 1.25e7}


def ways(rate):
    link = str(BYTES_PER_S[rate] * 1e-9)
    return {"exact": [], "lattice": ["--codec", "lattice", "--budget", "0.05", "--link", link],
            "homomorphic": ["--codec", "lattice", "--protocol", "homomorphic", "--bits", "8"]}


def row_of(h, size, options, iterations, per_host):
    command = [TOOL, "bench", "allreduce", "--in-place", "-b", str(size), "-e", str(size), "--iters", str(iterations), "--json", "-"]
    out = [p.communicate(timeout=580) for p in h.start_ranks([*command, *options], per_host=per_host)][0][0]
    row = json.loads(out[out.index("["):out.rindex("]") + 1])[0]
    if row["wrong"]:
        sys.exit(f"{row['wrong']} elements differ between ranks at {size}")
    return row


def measure(h, count, args):
    print(f"\n{count} hosts at {args.rate}, ranks on each: {args.per_host}, f32, mean {args.mean}, medians of {args.rounds} rounds\n")
    print("| bytes | way | ms | f32 bound / time | bits/coordinate sent | excess | wire ms | codec ms |")
    print("|---|---|---|---|---|---|---|---|")
    for size in (peers.parse_size(s) for s in args.sizes.split(",")):
        bound_ms = 2 * (count - 1) / count * size / BYTES_PER_S[args.rate] * 1e3
        rows = {}
        for _ in range(args.rounds):
            for name, options in ways(args.rate).items():
                if name == "exact" and args.no_exact:
                    continue
                extra = ["--mean", str(args.mean)] if options else []
                rows.setdefault(name, []).append(row_of(h, size, [*options, *extra], 2 if name == "exact" else args.iters,
                                                         args.per_host))
        for name, got in rows.items():
            ms = statistics.median(r["time_us_p50"] for r in got) * 1e-3
            row = got[-1]
            wire = statistics.median(r["wire_sent_bytes"] for r in got) / BYTES_PER_S[args.rate] * 1e3
            bits = excess = codec = ""
            if name != "exact":
                bits, excess = f"{row['bits_per_coord']:.2f}", f"{row['excess_over_sampling']:.4f}"
                codec = f"{statistics.median(size / r['codec_gbps'] for r in got) * 1e-6:.1f}"
            print(f"| {size} | {name} | {ms:.1f} | {bound_ms / ms:.2f} | {bits} | {excess} | {wire:.1f} | {codec} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="2,4")
    parser.add_argument("--per-host", type=int, default=1)
    parser.add_argument("--rate", default="1gbit", choices=BYTES_PER_S)
    parser.add_argument("--sizes", default="25M,100M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iters", type=int, default=7)
    parser.add_argument("--mean", type=float, default=0)
    parser.add_argument("--no-exact", action="store_true")
    args = parser.parse_args()
    reason = hosts.missing()
    if reason:
        sys.exit(f"no hosts: {reason}")
    for count in (int(c) for c in args.hosts.split(",")):
        with hosts.Hosts(count, args.rate) as h:
            measure(h, count, args)


if __name__ == "__main__":
    main()
