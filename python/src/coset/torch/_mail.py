# SPDX-License-Identifier: Apache-2.0
"""Point-to-point messages with tags.

coset's messages match in the order of the calls. A tag may be received out of that order, so each message is preceded
by a header (tag, bytes); one that nobody has asked for yet is put aside.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import torch

from ..comm import Comm
from ..errors import MismatchError
from ._lane import Work


def _run_thread(name: str, body: Callable[[], object]) -> None:
    threading.Thread(target=body, name=name, daemon=True).start()


class Mail:
    """What this rank sends to and receives from others. Tensors are flat and of bytes."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._guard = threading.Lock()
        self._wanted: dict[int, deque[tuple[int, torch.Tensor, Work]]] = {}
        self._aside: dict[int, deque[tuple[int, torch.Tensor]]] = {}
        self._receiving: set[int] = set()

    def send(self, data: torch.Tensor, peer: int, tag: int, result: list[torch.Tensor]) -> Work:
        header = torch.tensor([tag, data.numel()], dtype=torch.int64)
        requests = [self._comm.isend(header, peer), self._comm.isend(data, peer)]
        work = Work(result)
        _run_thread("coset-send", lambda: work.run(lambda: [r.wait() for r in requests]))
        return work

    def receive(self, data: torch.Tensor, peer: int, tag: int, result: list[torch.Tensor]) -> Work:
        work = Work(result)
        with self._guard:
            aside = self._aside.setdefault(peer, deque())
            found = next((m for m in aside if m[0] == tag), None)
            if found is not None:
                aside.remove(found)
                return work.run(lambda: _deliver(found[1], data))
            self._wanted.setdefault(peer, deque()).append((tag, data, work))
            start = peer not in self._receiving
            self._receiving.add(peer)
        if start:
            _run_thread("coset-receive", lambda: self._serve(peer))
        return work

    def _serve(self, peer: int) -> None:
        """Receives from `peer` until nothing is wanted from it."""
        try:
            while True:
                with self._guard:
                    if not self._wanted[peer]:
                        self._receiving.discard(peer)
                        return
                tag, count = self._comm.recv(torch.empty(2, dtype=torch.int64), peer).tolist()
                self._take(peer, tag, count)
        except BaseException as error:  # noqa: BLE001 - given to everyone who waits
            with self._guard:
                waiting = list(self._wanted[peer])
                self._wanted[peer].clear()
                self._receiving.discard(peer)
            for _, _, work in waiting:
                work.run(lambda: _raise(error))

    def _take(self, peer: int, tag: int, count: int) -> None:
        with self._guard:
            found = next((w for w in self._wanted[peer] if w[0] == tag), None)
            if found is not None:
                self._wanted[peer].remove(found)
        if found is not None and found[1].numel() == count:
            found[2].run(lambda: self._comm.recv(found[1], peer))
            return
        message = self._comm.recv(torch.empty(count, dtype=torch.uint8), peer)
        if found is not None:
            found[2].run(lambda: _deliver(message, found[1]))
            return
        with self._guard:
            self._aside[peer].append((tag, message))


def _raise(error: BaseException) -> None:
    raise error


def _deliver(message: torch.Tensor, data: torch.Tensor) -> None:
    if message.numel() != data.numel():
        raise MismatchError(f"a message of {message.numel()} bytes was sent, {data.numel()} are received")
    data.copy_(message)
