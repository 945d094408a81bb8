# SPDX-License-Identifier: Apache-2.0
"""Step time of an MLP of 25 million parameters under DDP with several hooks, interleaved in one run.

Started by torchrun, or by hosts.sh between hosts of a given bandwidth. "compute" is a step without communication. Wall time is the
maximum over ranks, processor time (of all threads of a process) the mean; with other work on the machine the latter says more.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import coset.torch

WIDTHS = [1024, 3072, 3072, 3072, 1024]


def mlp() -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for a, b in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def wrapped(hook: str, bucket_mb: float):
    """The model, and the state whose report is printed."""
    model = mlp()
    if hook == "compute":
        return model, None
    ddp = DistributedDataParallel(model, bucket_cap_mb=400 if hook == "powersgd" else bucket_mb)
    state = None
    if hook == "fp16":
        ddp.register_comm_hook(dist.group.WORLD, default_hooks.fp16_compress_hook)
    elif hook == "powersgd":  # with one bucket: with several it hangs on gloo
        ddp.register_comm_hook(powerSGD_hook.PowerSGDState(dist.group.WORLD, 1, start_powerSGD_iter=2),
                               powerSGD_hook.powerSGD_hook)
    elif hook.startswith("lattice"):
        state = coset.torch.LatticeState(objective="bits", codec=hook if ":" in hook else None)
        ddp.register_comm_hook(state, coset.torch.lattice_hook)
    return ddp, state


def text(hook: str, median_ms: float, min_ms: float, processor_ms: float, bits_per_coord_sent: float = 32,
         repaired: int = 0) -> str:
    line = f"{hook:16} median {median_ms:8.1f} ms  min {min_ms:8.1f} ms  processor {processor_ms:8.1f} ms"
    return line + (f"  {bits_per_coord_sent:.2f} bits/coord sent, repaired {repaired}" if bits_per_coord_sent < 32 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hooks", default="compute,none,fp16,lattice,powersgd")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--json", action="store_true", help="one object per line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("BACKEND", "gloo"))
    # As in training: each rank has its own data, and gradients that differ.
    torch.manual_seed(1 + dist.get_rank())
    x, y = torch.randn(options.batch, WIDTHS[0]), torch.randn(options.batch, WIDTHS[-1])
    torch.manual_seed(0)
    runs = {hook: wrapped(hook, options.bucket_mb) for hook in options.hooks.split(",")}
    optimizers = {hook: torch.optim.SGD(model.parameters(), lr=1e-3) for hook, (model, _) in runs.items()}
    times: dict[str, list[float]] = {hook: [] for hook in runs}
    busy: dict[str, list[float]] = {hook: [] for hook in runs}
    for step in range(options.steps + options.warmup):
        for hook, (model, _) in runs.items():
            dist.barrier()
            start, start_busy = time.perf_counter(), time.process_time()
            optimizers[hook].zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizers[hook].step()
            if step >= options.warmup:
                times[hook].append(time.perf_counter() - start)
                busy[hook].append(time.process_time() - start_busy)
    table, cpu = torch.tensor(list(times.values())), torch.tensor(list(busy.values())) / dist.get_world_size()
    dist.all_reduce(table, dist.ReduceOp.MAX)
    dist.all_reduce(cpu)
    if dist.get_rank() == 0:
        for (hook, (_, state)), row, own in zip(runs.items(), table.tolist(), cpu.tolist(), strict=True):
            facts = {"hook": hook, "median_ms": 1e3 * statistics.median(row), "min_ms": 1e3 * min(row),
                     "processor_ms": 1e3 * statistics.median(own)}
            if state is not None:
                facts |= {name: state.report()[name] for name in ("bits_per_coord_sent", "repaired")}
            print(json.dumps(facts) if options.json else text(**facts), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
