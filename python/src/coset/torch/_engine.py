# SPDX-License-Identifier: Apache-2.0
"""Carries the transfers of a compressed mean over any torch process group."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .._mean import Transfer
from ..errors import UnsupportedError
from ._watch import Watch

# Its name from torch 2.13 on, and before.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
# Signed types of the same width: sums wrap alike, and no backend sums the unsigned ones.
_UNITS = {1: torch.uint8, 4: torch.int32, 8: torch.int64}

# How much faster a gather must be than an exchange of copies to be used. A ring of N - 1 steps that is as fast on idle processors
# is slower beside backward, where every step waits for a thread to get its turn (four hosts, 1 Gbit/s: steps of 525 and 550 ms).
_GATHER_GAIN = 1.25


def _tensor(memory: Any, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return torch.frombuffer(memory, dtype=dtype) if len(memory) else torch.empty(0, dtype=dtype)


class Engine:
    """Starts transfers on `group`. All ranks start the same ones in the same order, from one thread each."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.size = dist.get_world_size(group)
        self.watch = Watch(group)
        self._gather_by_exchange: bool | None = None

    def start(self, transfer: Transfer) -> Callable[[], None]:
        """Starts it; the returned function waits for it."""
        if transfer.kind == "alltoall":
            return self._wait(dist.all_to_all_single(_tensor(transfer.recv), _tensor(transfer.send), group=self.group,
                                                     async_op=True))
        if transfer.kind == "allgather":
            return self._gather(_tensor(transfer.recv), _tensor(transfer.send))
        if transfer.kind == "sum_wrap":
            dtype = _UNITS[transfer.unit_bytes]
            total = _tensor(transfer.recv, dtype)
            total.copy_(_tensor(transfer.send, dtype))
            return self.all_reduce(total)
        return self._route(transfer)

    def _wait(self, work: Any, keep: Any = None) -> Callable[[], None]:
        """Waits for a work just started; `keep` lives until then."""
        self.watch.started += 1
        number = self.watch.started

        def wait() -> None:
            self.watch.wait(work, number)
            del keep[:]

        keep = [] if keep is None else [keep]
        return wait

    def all_reduce(self, tensor: torch.Tensor, op: Any = dist.ReduceOp.SUM) -> Callable[[], None]:
        """In place; the returned function waits for it."""
        return self._wait(dist.all_reduce(tensor, op, group=self.group, async_op=True))

    def stop(self, error: BaseException) -> None:
        """No more transfers of this rank: the others are told, and what is under way is given up where the backend can."""
        self.watch.raised(error)
        try:
            self.group.abort()
        except Exception:  # noqa: BLE001 - not every backend and version has it; the watch does without
            pass

    def _gather(self, out: torch.Tensor, mine: torch.Tensor) -> Callable[[], None]:
        if self._gather_by_exchange is None:
            self._gather_by_exchange = self._exchange_is_faster()
        if not self._gather_by_exchange:
            return self._wait(_all_gather(out, mine, group=self.group, async_op=True))
        copies = mine.repeat(self.size)
        return self._wait(dist.all_to_all_single(out, copies, group=self.group, async_op=True), copies)

    def _route(self, transfer: Transfer) -> Callable[[], None]:
        works = []
        for peer, send, recv in transfer.routes():
            other = dist.get_global_rank(self.group, peer)
            works.append(dist.isend(_tensor(send), other, self.group) if recv is None
                         else dist.irecv(_tensor(recv), other, self.group))

        def wait() -> None:
            for work in works:
                work.wait()

        return wait

    def _exchange_is_faster(self) -> bool:
        """Unless the backend gathers clearly faster than it exchanges (some take six times as long): 256 KiB a rank, best of three,
        agreed by all."""
        mine = torch.zeros(256 << 10, dtype=torch.uint8)
        out = torch.empty(self.size * mine.numel(), dtype=torch.uint8)
        best = [float("inf"), float("inf")]
        for _ in range(3):
            for way in (0, 1):
                self.all_reduce(torch.zeros(1))()
                start = time.perf_counter()
                if way == 0:
                    self._wait(_all_gather(out, mine, group=self.group, async_op=True))()
                else:
                    self._wait(dist.all_to_all_single(out, mine.repeat(self.size), group=self.group, async_op=True))()
                best[way] = min(best[way], time.perf_counter() - start)
        agreed = torch.tensor(best)
        self.all_reduce(agreed, dist.ReduceOp.MAX)()
        return bool(agreed[1] < _GATHER_GAIN * agreed[0])


def own_group(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    """A new group of the same ranks and backend: no operation of the user's can come between ours."""
    if not dist.is_initialized():
        raise UnsupportedError("torch.distributed is not initialised: call init_process_group first")
    parent = group if group is not None else dist.group.WORLD
    everyone = parent is dist.group.WORLD
    return dist.new_group(dist.get_process_group_ranks(parent), backend=dist.get_backend(parent),
                          use_local_synchronization=not everyone)
