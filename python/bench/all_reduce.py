# SPDX-License-Identifier: Apache-2.0
"""all_reduce over coset and over gloo, interleaved in one run: torchrun --standalone --nproc-per-node=2 all_reduce.py

Per iteration a barrier, then one all_reduce on each group; the time is the maximum over ranks. Median and minimum: on a machine with other work
the minimum says what the code can do.
"""
import argparse
import statistics
import time

import torch
import torch.distributed as dist

import coset.torch  # noqa: F401 - registers the backend


def measure(group: dist.ProcessGroup | None, x: torch.Tensor) -> float:
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(x, group=group)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4096 << (2 * i) for i in range(8)], help="bytes")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each size")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("coset")
    groups = {"coset": None, "gloo": dist.new_group(backend="gloo")}
    if dist.get_rank() == 0:
        print(f"{'bytes':>10} {'coset us':>10} {'gloo us':>10} {'ratio':>6} {'coset min':>10} {'gloo min':>10} {'ratio':>6}")
    for size in options.sizes:
        x = torch.zeros(size // 4)
        once = torch.tensor([sum(measure(g, x) for g in groups.values() for _ in range(2))])
        dist.all_reduce(once, dist.ReduceOp.MAX)
        times = torch.tensor([[measure(g, x) for g in groups.values()]
                              for _ in range(int(min(300, max(7, options.seconds / once.item()))))])
        dist.all_reduce(times, dist.ReduceOp.MAX)
        ours, theirs = (statistics.median(column.tolist()) * 1e6 for column in times.T)
        best, their_best = (min(column.tolist()) * 1e6 for column in times.T)
        if dist.get_rank() == 0:
            print(f"{size:10d} {ours:10.1f} {theirs:10.1f} {theirs / ours:6.2f} "
                  f"{best:10.1f} {their_best:10.1f} {their_best / best:6.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
