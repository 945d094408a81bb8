#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exact all-reduce between rate-limited hosts beside the installed MPIs, interleaved in one run; prints Markdown.

usage: bench/hosts/run.py [--hosts 2,4] [--per-host N] [--rate 1gbit|100mbit|none] [--sizes 1M,25M,100M] [--rounds R]
                          [--algo A] [--over-mpi] [--loopback]
Hosts are network namespaces (root, iproute2); with --loopback all ranks are on this host and meet over lo. The bound is
2(N-1)/N S over the link's rate, headers counted (1514 bytes on the wire carry 1448). Needs build/release/bin/coset; Open
MPI and MPICH are measured if they are installed; with --over-mpi also coset over each of them (coset_comm_from_mpi).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "netns"), str(ROOT / "bench" / "peers")]
import hosts  # noqa: E402
import run as peers  # noqa: E402

TOOL = str(ROOT / "build/release/bin/coset")
BITS = {"1gbit": 1e9, "100mbit": 1e8, "10gbit": 1e10}
ROOT_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def coset_us(h, args, size):
    command = [TOOL, "bench", "allreduce", "--algo", args.algo, "--in-place", "-b", str(size), "-e", str(size),
               "--iters", str(iterations(args, size)), "--json", "-"]
    if args.loopback:
        out = subprocess.run([*command, "-n", str(args.per_host), "--transport", "tcp"], capture_output=True, text=True,
                             timeout=300).stdout
    else:
        ranks = h.start_ranks(command, per_host=args.per_host)
        out = [p.communicate(timeout=300) for p in ranks][0][0]
    row = json.loads(out[out.index("["):out.rindex("]") + 1])[0]
    if row["wrong"]:
        sys.exit(f"coset: {row['wrong']} wrong elements at {size}")
    return row["time_us_p50"], row["cpu_s"] * 1e3


def mpi_command(h, name, program, args, n, size):
    """The started job, on the hosts or over lo. name: "openmpi", or "coset/openmpi"."""
    kind = name.split("/")[-1]
    seconds = max(0.3, iterations(args, size) * 1.2 * bound_us(args, n, size) * 1e-6) if not args.loopback else 0.3
    command = [str(program), "-s", f"{seconds:.2f}", str(size)]
    if not args.loopback:
        return h.start_mpi(kind, command, per_host=args.per_host, env={"TAG": name})
    env = {**os.environ, **ROOT_ENV, "TAG": name, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1",
           "COSET_TRANSPORT": "mpi"}  # else ranks of one host take shared memory
    start = ["mpirun.mpich", "-n", str(n)]
    if kind == "openmpi":
        start = ["mpirun.openmpi", "-np", str(n), "--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl",
                 "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
    return subprocess.Popen([*start, *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def mpi_us(h, kind, program, args, size):
    """None if it cannot be measured."""
    n = args.per_host * (1 if args.loopback else h.count)
    out, err = mpi_command(h, kind, program, args, n, size).communicate(timeout=600)
    for line in out.splitlines():
        fields = line.split(",")
        if fields[0] == kind and fields[-1] == "ok":
            return float(fields[5])
    print(f"{kind} at {size}: no figure: {err.strip()[-200:]}", file=sys.stderr)
    return None


def bound_us(args, n, size):
    if args.rate not in BITS or args.loopback:
        return float("nan")
    # ranks of a host share its link
    return 2 * (n - 1) / n * size * args.per_host / (BITS[args.rate] / 8) * 1514 / 1448 * 1e6


def iterations(args, size):
    return 200 if size < 1 << 18 else 20 if args.loopback else 5 if size < 1 << 24 else 3


def measure(h, count, args, programs):
    n = args.per_host * count
    print(f"\n{n} ranks, " + ("loopback" if args.loopback else f"{count} hosts at {args.rate}") +
          f", in place, f32, algorithm {args.algo}, median us of {args.rounds} rounds\n")
    print("| bytes | coset | " + " | ".join(programs) + " | bound / coset | best MPI / coset | coset cpu ms |")
    print("|---|" + "---|" * (len(programs) + 4))
    for size in (peers.parse_size(s) for s in args.sizes.split(",")):
        mine, cpu, theirs = [], [], {kind: [] for kind in programs}
        for _ in range(args.rounds):
            time_us, cpu_ms = coset_us(h, args, size)
            mine.append(time_us)
            cpu.append(cpu_ms)
            for kind, program in programs.items():
                figure = mpi_us(h, kind, program, args, size)
                if figure:
                    theirs[kind].append(figure)
        medians = {k: statistics.median(v) if v else float("nan") for k, v in theirs.items()}
        own = statistics.median(mine)
        best = min((m for name, m in medians.items() if m == m and "/" not in name), default=float("nan"))
        print(f"| {size} | {own:.1f} | " + " | ".join(f"{m:.1f}" for m in medians.values()) +
              f" | {bound_us(args, n, size) / own:.3f} | {best / own:.2f} | {statistics.median(cpu):.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", default="2,4")
    parser.add_argument("--per-host", type=int, default=None)
    parser.add_argument("--rate", default="1gbit", choices=[*BITS, "none"])
    parser.add_argument("--sizes", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--algo", default="auto")
    parser.add_argument("--over-mpi", action="store_true")
    parser.add_argument("--loopback", action="store_true")
    args = parser.parse_args()
    args.per_host = args.per_host or (2 if args.loopback else 1)
    args.sizes = args.sizes or ("4,1K,16K,256K,1M,4M,25M,100M" if args.loopback else "1M,25M,100M")
    programs = {kind: p for kind in ("openmpi", "mpich") if (p := peers.build(kind))}
    if args.over_mpi:
        programs.update({f"coset/{kind}": peers.build(kind, with_coset=True) for kind in list(programs)})
    if args.loopback:
        measure(None, 1, args, programs)
        return
    reason = hosts.missing()
    if reason:
        sys.exit(f"no hosts: {reason}")
    for count in (int(c) for c in args.hosts.split(",")):
        with hosts.Hosts(count, None if args.rate == "none" else args.rate) as h:
            measure(h, count, args, programs)


if __name__ == "__main__":
    main()
