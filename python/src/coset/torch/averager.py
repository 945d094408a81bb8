# SPDX-License-Identifier: Apache-2.0
"""Training loops without DDP: gradients are averaged while backward still runs."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from ..errors import ArgumentError, UnsupportedError
from ._parts import Bucket
from .lattice import LatticeState


class Averager:
    """Makes every gradient the mean over the ranks:

        averager = Averager(model.parameters(), LatticeState(error_budget=0.05))
        for x, y in data:
            loss(model(x), y).backward()      # gradients are sent as they are made
            averager.wait()                   # on all ranks, once per step
            optimizer.step()
            optimizer.zero_grad()

    Gradients are sent in buckets of about `bucket_mb`, last parameters first, in one order on all ranks, and averaged where
    they are: nothing is copied. A parameter that got no gradient on this rank counts as zero, and gets the mean of the others.
    All ranks list the same parameters in the same order. They start from the same values: broadcast them before.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], state: LatticeState, *, bucket_mb: float = 25) -> None:
        self._state = state
        self._parameters = [p for p in parameters if p.requires_grad]
        if not self._parameters:
            raise ArgumentError("no parameter requires a gradient")
        for parameter in self._parameters:
            if parameter.device.type != "cpu":
                raise UnsupportedError(f"a parameter on {parameter.device}: Averager is for CPU tensors; for others use DDP with "
                                       "lattice_hook")
        self._buckets = _grouped(reversed(self._parameters), bucket_mb * 2**20)
        self._place = {id(p): b for b, bucket in enumerate(self._buckets) for p in bucket}
        if len(self._place) != len(self._parameters):
            raise ArgumentError("a parameter is listed twice")
        self._handles = [p.register_post_accumulate_grad_hook(self._arrived) for p in self._parameters]
        self._sending = True
        self._begin()

    def _begin(self) -> None:
        self._ready: set[int] = set()
        self._missing = [len(bucket) for bucket in self._buckets]
        self._sent: list[Bucket] = []

    def _arrived(self, parameter: torch.Tensor) -> None:
        """Called by autograd when a gradient is whole. Buckets go out in order: one that is early waits for those before."""
        if not self._sending:
            return
        if id(parameter) in self._ready:
            raise RuntimeError("a second backward before wait(): its gradients would be added to those under way; wrap all but "
                               "the last backward of a step in no_sync()")
        self._ready.add(id(parameter))
        self._missing[self._place[id(parameter)]] -= 1
        while len(self._sent) < len(self._buckets) and self._missing[len(self._sent)] == 0:
            self._send()

    def _send(self) -> None:
        bucket = self._buckets[len(self._sent)]
        for parameter in bucket:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        last = len(self._sent) + 1 == len(self._buckets)
        pairs = [(p, p.grad) for p in bucket if p.grad is not None]
        self._sent.append(self._state._submit(bucket[0], pairs, last))

    def wait(self) -> None:
        """Sends what is left and waits for all of it; then the gradients are the means. Once per step on every rank, also
        where a rank ran no backward in this step: its gradients count as they are, or as zero."""
        while len(self._sent) < len(self._buckets):
            self._send()
        sent = self._sent
        self._begin()
        for bucket in sent:
            bucket.future.wait()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add to the gradients of this rank (accumulation)."""
        before, self._sending = self._sending, False
        try:
            yield
        finally:
            self._sending = before

    def close(self) -> None:
        """Takes the hooks off the parameters. The state can be used further."""
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _grouped(parameters: Iterable[torch.Tensor], limit: float) -> list[list[torch.Tensor]]:
    """Buckets of one dtype each, closed at `limit` bytes, in the order in which they were closed."""
    done: list[list[torch.Tensor]] = []
    open_: dict[torch.dtype, tuple[list[torch.Tensor], int]] = {}
    for parameter in parameters:
        bucket, size = open_.pop(parameter.dtype, ([], 0))
        bucket.append(parameter)
        size += parameter.numel() * parameter.element_size()
        if size >= limit:
            done.append(bucket)
        else:
            open_[parameter.dtype] = (bucket, size)
    return done + [bucket for bucket, _ in open_.values()]
