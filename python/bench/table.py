# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md on PyTorch: steps of DDP between hosts, the hook's overhead in shared memory, losses.

    sudo build/venv/bin/python python/bench/table.py            all of it, about a quarter of an hour
    ... table.py --hosts 2 --rates 1gbit --no-losses            a part

As root, since hosts are network namespaces (hosts.sh). --realtime takes the processor from everything else on the machine for
as long as it runs: for machines that are not idle.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HOOKS = ["compute", "none", "fp16", "powersgd", "lattice"]
# Steps counted after the first ones; fewer where a step without compression takes ten seconds.
STEPS = {"1gbit": 8, "100mbit": 3}
WARMUP = 3
# What is asked of the hook: at least this many times shorter than a step with the other hook.
DEMANDED = {"1gbit": {"none": 3.3, "fp16": 2.5, "powersgd": 1.0}, "100mbit": {"none": 6.0}}


def rows(command: list[str], **env: str) -> list[dict[str, Any]]:
    """The objects that a bench prints, a line each."""
    done = subprocess.run(command, env=os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"} | env, cwd=HERE,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stderr[-4000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def local(prefix: list[str], script: str, *arguments: str) -> list[dict[str, Any]]:
    """Two ranks on this host."""
    return rows([*prefix, sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script, *arguments],
                BACKEND="coset")


def between_hosts(prefix: list[str], hosts: int, rate: str) -> None:
    steps = STEPS.get(rate, 5)
    found = rows([*prefix, "bash", "hosts.sh", str(hosts), rate, "ddp.py", "--json", "--hooks", ",".join(HOOKS),
                  "--steps", str(steps), "--warmup", str(WARMUP)])
    ours = next(row for row in found if row["hook"] == "lattice")
    print(f"\n{hosts} hosts, {rate}, {steps} steps; load {os.getloadavg()[0]:.1f}\n")
    print("| hook | median ms | min ms | processor ms | times lattice | demanded |\n|---|---|---|---|---|---|")
    for row in found:
        demand = DEMANDED.get(rate, {}).get(row["hook"], "")
        print(f"| {row['hook']} | {row['median_ms']:.0f} | {row['min_ms']:.0f} | {row['processor_ms']:.0f} "
              f"| {row['median_ms'] / ours['median_ms']:.2f} | {demand} |")
    print(f"\nlattice: {ours['bits_per_coord_sent']:.2f} bits per coordinate sent, {ours['repaired']} repairs", flush=True)


def in_shared_memory(prefix: list[str]) -> None:
    found = {row["hook"]: row for row in local(prefix, "ddp.py", "--json", "--hooks", "compute,none,lattice", "--steps", "10")}
    print("\nthe same model, 2 ranks in shared memory (coset), median ms: "
          + ", ".join(f"{hook} {row['median_ms']:.0f}" for hook, row in found.items())
          + f"; the hook adds {100 * (found['lattice']['median_ms'] / found['none']['median_ms'] - 1):.0f} % to a step", flush=True)


def losses(prefix: list[str]) -> None:
    found = local(prefix, "losses.py", "--steps", "100")
    exact = found[0]
    print("\ntext example, 2 ranks in shared memory\n")
    print("| hook | median ms | overhead % | loss, mean over seeds | spread over seeds | from exact, mean and spread |\n"
          "|---|---|---|---|---|---|")
    for row in found:
        apart = [a - b for a, b in zip(row["losses"], exact["losses"], strict=True)]
        print(f"| {row['hook']} | {row['median_ms']:.1f} | {100 * (row['median_ms'] / exact['median_ms'] - 1):.1f} "
              f"| {statistics.mean(row['losses']):.4f} | {statistics.stdev(row['losses']):.4f} "
              f"| {statistics.mean(apart):+.4f} {statistics.stdev(apart):.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--rates", nargs="*", default=["1gbit", "100mbit"])
    parser.add_argument("--no-losses", action="store_true")
    parser.add_argument("--no-shared-memory", action="store_true")
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    prefix = ["chrt", "-r", "1"] if options.realtime else []
    for hosts in options.hosts:
        for rate in options.rates:
            between_hosts(prefix, hosts, rate)
    if not options.no_shared_memory:
        in_shared_memory(prefix)
    if not options.no_losses:
        losses(prefix)


if __name__ == "__main__":
    main()
