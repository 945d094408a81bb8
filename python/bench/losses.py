# SPDX-License-Identifier: Apache-2.0
"""What compression costs in loss, and in time where the network is as fast as memory: the text example, trained exactly and with
each hook, from several seeds. torchrun --standalone --nproc-per-node=2 losses.py

The steps of all runs of a seed are interleaved, so that other work on the machine hits all alike.
"""
import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import coset.torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "python"))
import text as example  # noqa: E402

HOOKS = ("none", "lattice", "powersgd")


class Run:
    """One model under training."""

    def __init__(self, hook: str, seed: int) -> None:
        torch.manual_seed(seed)
        # One bucket for PowerSGD: with several it hangs on some backends.
        self.ddp = DistributedDataParallel(example.Transformer(), bucket_cap_mb=100)
        if hook == "lattice":
            self.ddp.register_comm_hook(coset.torch.LatticeState(objective="bits", seed=seed), coset.torch.lattice_hook)
        elif hook == "powersgd":
            self.ddp.register_comm_hook(powerSGD_hook.PowerSGDState(dist.group.WORLD, 1, start_powerSGD_iter=10),
                                        powerSGD_hook.powerSGD_hook)
        self.optimizer = torch.optim.AdamW(self.ddp.parameters(), lr=2e-3)
        self.data = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
        self.times: list[float] = []
        self.hook = hook

    def step(self, text: torch.Tensor, batch: int) -> None:
        start = time.perf_counter()
        self.optimizer.zero_grad()
        example.loss_of(self.ddp, text, self.data, batch).backward()
        self.optimizer.step()
        self.times.append(time.perf_counter() - start)

    def loss(self, text: torch.Tensor) -> float:
        """On text that was not trained on; the same windows for all."""
        with torch.no_grad():
            return float(example.loss_of(self.ddp.module, text, torch.Generator().manual_seed(0), 256))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--backend", default="coset")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    text = torch.frombuffer(bytearray(example.TEXT.read_bytes()), dtype=torch.uint8)
    held = len(text) * 9 // 10
    losses: dict[str, list[float]] = {hook: [] for hook in HOOKS}
    times: dict[str, list[float]] = {hook: [] for hook in HOOKS}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        runs = [Run(hook, seed) for hook in HOOKS]
        for _ in range(options.steps):
            for run in runs:
                run.step(text[:held], options.batch)
        for run in runs:
            losses[run.hook].append(run.loss(text[held:]))
            times[run.hook] += run.times[min(20, options.steps // 2):]  # the first steps warm up
    table = torch.tensor(list(times.values()))
    dist.all_reduce(table, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        for hook, row in zip(HOOKS, table.tolist(), strict=True):
            print(json.dumps({"hook": hook, "median_ms": 1e3 * statistics.median(row), "losses": losses[hook]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
