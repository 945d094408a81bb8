# SPDX-License-Identifier: Apache-2.0
"""A small transformer learns to continue text, byte by byte; exact and compressed gradients side by side.

    torchrun --standalone --nproc-per-node=4 examples/python/text.py --steps 200
"""
import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import coset.torch

TEXT = Path(__file__).parent.parent / "data" / "kjv.txt"
WINDOW, WIDTH, HEADS, LAYERS = 64, 128, 4, 2


class Transformer(torch.nn.Module):
    """Predicts the next byte at every place of a window."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = torch.nn.Embedding(256, WIDTH)
        self.places = torch.nn.Embedding(WINDOW, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.out = torch.nn.Linear(WIDTH, 256)
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(WINDOW))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.bytes(x) + self.places.weight, mask=self.mask, is_causal=True))


def loss_of(model: torch.nn.Module, text: torch.Tensor, generator: torch.Generator, batch: int) -> torch.Tensor:
    starts = torch.randint(len(text) - WINDOW - 1, (batch,), generator=generator)
    window = torch.stack([text[s:s + WINDOW + 1] for s in starts]).long()
    return torch.nn.functional.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())


def train(text: torch.Tensor, steps: int, state: coset.torch.LatticeState | None) -> float:
    """The loss on text that was not trained on."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Transformer())
    if state is not None:
        ddp.register_comm_hook(state, coset.torch.lattice_hook)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(1 + dist.get_rank())
    held = len(text) * 9 // 10
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(ddp, text[:held], generator, 16).backward()
        optimizer.step()
    with torch.no_grad():
        return float(loss_of(ddp.module, text[held:], torch.Generator().manual_seed(0), 64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--budget", type=float, default=0.05)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8)
    exact = train(text, options.steps, None)
    state = coset.torch.LatticeState(error_budget=options.budget, objective="bits")
    compressed = train(text, options.steps, state)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {options.steps} steps, loss: exact {exact:.4f}, compressed {compressed:.4f} "
              f"at {state.report()['bits_per_coord_sent']:.2f} bits per coordinate sent")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
