#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All-reduce on one host beside the installed MPIs, interleaved in one run; prints medians and ratios as Markdown.

usage: bench/peers/run.py [--ranks N] [--rounds R] [--out-of-place] [--rewrite] [--memory coset|malloc] [--sizes 4,1K,...]
Needs build/release/bin/coset and Open MPI and/or MPICH (Debian: openmpi-bin libopenmpi-dev mpich libmpich-dev).
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "peers"
# The user who tunes malloc gets these; without them half of the peers' time on long vectors is page faults.
HUGE = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "17179869184", "MALLOC_TOP_PAD_": "67108864",
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
UCX = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=shm,self"]


def parse_size(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1].upper())
    return int(text[:-1]) * unit if unit else int(text)


def build(kind, with_coset=False):
    """The program for an MPI; with_coset: which times coset over that MPI instead. None if there is no such MPI."""
    compiler = shutil.which(f"mpicc.{kind}")
    if not compiler:
        return None
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"allreduce_{kind}{'_coset' if with_coset else ''}"
    lib = ROOT / "build/release/lib"
    sources = [ROOT / "bench/peers/allreduce_mpi.c", ROOT / "tools/bench_allreduce/pattern.c"]
    coset = ["-DWITH_COSET", f"-lcoset-mpi-{kind}"] if with_coset else []
    subprocess.run([compiler, "-O2", f"-I{ROOT}/include", f"-I{ROOT}/tools", "-o", program, *sources, f"-L{lib}", f"-Wl,-rpath,{lib}",
                    *coset, "-lcoset", "-lm"], check=True)
    return program


def peers(ranks):
    """name -> (command prefix, environment)"""
    found = {}
    ompi, mpich = build("openmpi"), build("mpich")
    cores = os.cpu_count() or 1
    bind = ["--bind-to", "core"] if ranks <= cores else ["--oversubscribe", "--bind-to", "none"]
    if ompi:
        run = ["mpirun.openmpi", "--allow-run-as-root", "-np", str(ranks), *bind]
        exports = [word for name in HUGE for word in ("-x", name)]
        found["ompi+thp"] = ([*run, *exports, str(ompi)], HUGE)
        found["ompi-ucx+thp"] = ([*run, *exports, *UCX, str(ompi)], HUGE)
    if mpich and ranks <= cores:  # oversubscribed, MPICH spins: milliseconds a call
        found["mpich+thp"] = (["mpirun.mpich", "-np", str(ranks), "-bind-to", "core", str(mpich)], HUGE)
    return found


def run_peer(name, command, environment, args, size):
    flags = (["-o"] if args.out_of_place else []) + (["-r"] if args.rewrite else []) + ["-s", str(args.seconds)]
    result = subprocess.run([*command, *flags, str(size)], env={**os.environ, **environment, "TAG": name,
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                            capture_output=True, text=True, timeout=300)
    for line in result.stdout.splitlines():
        fields = line.split(",")
        if fields[0] == name and fields[-1] == "ok":
            return {"time": float(fields[5]), "cycle": float(fields[7])}
    print(f"{name} at {size}: no figure: {result.stderr.strip()[:200]}", file=sys.stderr)
    return None


def run_coset(args, size):
    command = [str(ROOT / "build/release/bin/coset"), "bench", "allreduce", "-n", str(args.ranks), "-b", str(size), "-e", str(size),
               "--memory", args.memory, "--json", "-"]
    if not args.out_of_place:
        command.append("--in-place")
    if args.rewrite:
        command.append("--rewrite")
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    rows = json.loads(result.stdout[result.stdout.index("["):])
    if rows[0]["wrong"]:
        sys.exit(f"coset: {rows[0]['wrong']} wrong elements at {size}")
    return {"time": rows[0]["time_us_p50"], "cycle": rows[0]["cycle_us_p50"], "floor": rows[0].get("floor_us_p50")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--out-of-place", action="store_true")
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("--memory", default="coset", choices=["coset", "malloc"])
    parser.add_argument("--sizes", default="4,1K,16K,256K,1M,4M,25M,100M")
    args = parser.parse_args()
    sizes = [parse_size(s) for s in args.sizes.split(",")]
    contenders = peers(args.ranks)
    figures = {}
    for _ in range(args.rounds):
        for size in sizes:
            for name, (command, environment) in contenders.items():
                figures.setdefault((name, size), []).append(run_peer(name, command, environment, args, size))
            figures.setdefault(("coset", size), []).append(run_coset(args, size))
    key = "cycle" if args.rewrite else "time"
    names = list(contenders)
    print(f"\n{args.ranks} ranks, {'out of' if args.out_of_place else 'in'} place, {args.memory} memory, "
          f"{'whole cycle (write, all-reduce, read)' if args.rewrite else 'operation alone'}, median us of {args.rounds} rounds\n")
    print("| bytes | " + " | ".join(names) + " | coset | floor | best peer / coset | coset / floor |")
    print("|---|" + "---|" * (len(names) + 4))
    for size in sizes:
        def median(name, field):
            values = [f[field] for f in figures[(name, size)] if f and f.get(field)]
            return statistics.median(values) if values else float("nan")
        best = min((median(n, key) for n in names), default=float("nan"))
        mine, floor = median("coset", key), median("coset", "floor")
        print(f"| {size} | " + " | ".join(f"{median(n, key):.2f}" for n in names) +
              f" | {mine:.2f} | {floor:.2f} | {best / mine:.2f} | {mine / floor:.2f} |")


if __name__ == "__main__":
    main()
