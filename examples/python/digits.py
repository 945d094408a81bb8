# SPDX-License-Identifier: Apache-2.0
"""Classifies handwritten digits; DistributedDataParallel with exact or compressed gradients.

    torchrun --standalone --nproc-per-node=2 examples/python/digits.py
    torchrun --standalone --nproc-per-node=2 examples/python/digits.py --exact
    torchrun --standalone --nproc-per-node=2 examples/python/digits.py --backend coset

The lines that matter are marked with arrows.
"""
import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import coset.torch  # <----

DATA = Path(__file__).parent.parent / "data" / "digits.csv"


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """1797 pictures of 8 x 8 points, and what digits they show."""
    rows = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(rows))
    return torch.from_numpy(rows[order, :64] / 16), torch.from_numpy(rows[order, 64].astype(np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="gloo", help="gloo, or coset for its own process group")
    parser.add_argument("--exact", action="store_true", help="no compression")
    parser.add_argument("--budget", type=float, default=0.05, help="error budget of the compressed mean")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    pictures, digits = load()
    train, test = slice(0, 1500), slice(1500, None)

    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 10))
    ddp = DistributedDataParallel(model)
    state = None
    if not options.exact:
        state = coset.torch.LatticeState(error_budget=options.budget, objective="bits")  # <----
        ddp.register_comm_hook(state, coset.torch.lattice_hook)                          # <----
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)

    for epoch in range(options.epochs):
        order = torch.randperm(1500, generator=torch.Generator().manual_seed(epoch))[rank::size]
        for batch in order[:len(order) // 25 * 25].split(25):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(ddp(pictures[train][batch]), digits[train][batch])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        accuracy = (model(pictures[test]).argmax(1) == digits[test]).float().mean().item()

    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [torch.empty_like(weights) for _ in range(size)]
    dist.all_gather(everyone, weights)
    if rank == 0:
        identical = all(torch.equal(w, weights) for w in everyone)
        print(f"{size} ranks, accuracy {accuracy:.4f}, replicas {'identical' if identical else 'DIFFERENT'}")
        if state is not None:
            report = state.report()
            print(f"{report['bits_per_coord_sent']:.2f} bits per coordinate sent, {report['repaired']} repairs")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
