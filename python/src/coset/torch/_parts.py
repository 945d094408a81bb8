# SPDX-License-Identifier: Apache-2.0
"""A bucket of gradients on its way, in parts of a size that keeps processor and wire busy together.

DDP never splits a parameter, so a bucket can be a layer of 40 MB. While its parts are encoded one after the other, those
before are on the wire.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .._mean import Round

# In elements; a multiple of the 4096 of a block. Every part costs each rank some 0.3 ms of processor time besides its
# codes, and its messages are a rank's share of it: so more ranks, larger parts. Nothing hides the codes of a step's last part:
# the last bucket stays in small ones. Measured between two and four hosts at 1 Gbit/s.
_SHARE = 1 << 20
_LAST = 2 << 20
# Pieces of a parameter that can be told apart: parameter << _PIECE_BITS | piece is what the mean knows it by.
_PIECE_BITS = 20
_BLOCK = 4096


class Bucket:
    """What DDP waits for. The parts write into its memory, so the result is where DDP wants it."""

    def __init__(self, result: torch.Tensor) -> None:
        self._result = result
        self._left = 0
        self._error: BaseException | None = None
        self._begun: torch.futures.Future[None] = torch.futures.Future()
        # A callback that raises is a failed future to C++ too; set_exception would be a success there.
        self.future: torch.futures.Future[torch.Tensor] = self._begun.then(self._outcome)

    def _outcome(self, _begun: Any) -> torch.Tensor:
        if self._error is not None:
            raise self._error
        return self._result

    def expect(self, parts: int) -> None:
        self._left = parts

    def part_done(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._begun.set_result(None)

    def fail(self, error: BaseException) -> None:
        self._error = error
        if not self._begun.done():
            self._begun.set_result(None)


class Part:
    """What goes into one exchange: pieces of gradients (id, flat memory), and whole ones that are averaged exactly."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.spans: list[tuple[int, torch.Tensor]] = []
        self.exact: list[torch.Tensor] = []
        self.plain: list[tuple[torch.Tensor, Callable[[], None]]] = []  # under way as they are, and how to wait for them
        self.last = False  # of a step
        self.small: torch.Tensor | None = None
        self.small_wait: Callable[[], None] | None = None
        self.round: Round | None = None
        self.wait: Callable[[], None] | None = None


def _part_size(ranks: int, last: bool) -> int:
    return min(ranks * _SHARE, _LAST) if last else ranks * _SHARE


def _pieces(number: int, flat: torch.Tensor, limit: int) -> Iterator[tuple[int, torch.Tensor]]:
    """Nearly equal ones, of whole blocks."""
    count = -(-flat.numel() // limit)
    size = max(-(-flat.numel() // (count * _BLOCK)), 1) * _BLOCK if count else _BLOCK
    for i, piece in enumerate(torch.split(flat, size)):
        yield number << _PIECE_BITS | i, piece


def cut(bucket: Bucket, spans: Iterable[tuple[int, torch.Tensor]], exact: list[torch.Tensor], last: bool, ranks: int) -> list[Part]:
    """The parts of a bucket, alike on all ranks. The first carries what is exact."""
    limit = _part_size(ranks, last)
    parts, room = [Part(bucket)], limit
    parts[0].exact = exact
    for number, flat in spans:
        for name, piece in _pieces(number, flat, limit):
            if parts[-1].spans and piece.numel() > room:
                parts.append(Part(bucket))
                room = limit
            parts[-1].spans.append((name, piece))
            room -= piece.numel()
    parts[-1].last = last
    bucket.expect(len(parts))
    return parts
