# SPDX-License-Identifier: Apache-2.0
"""Point-to-point messages with tags.

coset's messages match in the order of the calls. A tag may be received out of that order, so each message is preceded
by a header (tag, bytes); one that nobody has asked for yet is put aside.
"""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from ..comm import Comm
from ..errors import AbortedError, Error, MismatchError
from ..request import Request
from ._lane import Work


# How often a thread that waits for a message looks whether the group is being destroyed.
_SLICE = 0.2


class Mail:
    """What this rank sends to and receives from others. Tensors are flat and of bytes."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._guard = threading.Lock()
        self._wanted: dict[int, deque[tuple[int, torch.Tensor, Work]]] = {}
        self._aside: dict[int, deque[tuple[int, torch.Tensor]]] = {}
        self._receiving: set[int] = set()
        self._threads: set[threading.Thread] = set()
        self._closing = False
        self._abandoned: list[Request] = []
        self._sending = threading.Lock()

    def _run_thread(self, name: str, body: Callable[[], object]) -> None:
        def run() -> None:
            try:
                body()
            finally:
                with self._guard:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._guard:
            self._threads.add(thread)
        thread.start()

    def _finish(self, request: Request) -> Any:
        """Waits for a message, or for close(): no thread is inside the library when the communicator goes."""
        while True:
            try:
                return request.wait(_SLICE)
            except TimeoutError as error:
                if isinstance(error, Error):
                    raise
            if self._closing:
                self._abandoned.append(request)
                raise AbortedError("the process group was destroyed with a message under way")

    def _receive(self, data: torch.Tensor, peer: int) -> torch.Tensor:
        return self._finish(self._comm.irecv(data, peer))

    def close(self) -> None:
        """Ends what is under way. Keep this object until the communicator is destroyed: the library may write until then."""
        self._closing = True
        with self._guard:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def send(self, data: torch.Tensor, peer: int, tag: int, result: list[torch.Tensor]) -> Work:
        header = torch.tensor([tag, data.numel()], dtype=torch.int64)
        with self._sending:  # another thread's header would come before our data
            requests = [self._comm.isend(header, peer), self._comm.isend(data, peer)]
        work = Work(result)
        self._run_thread("coset-send", lambda: work.run(lambda: [self._finish(r) for r in requests]))
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
            self._run_thread("coset-receive", lambda: self._serve(peer))
        return work

    def _serve(self, peer: int) -> None:
        """Receives from `peer` until nothing is wanted from it."""
        try:
            while True:
                with self._guard:
                    if not self._wanted[peer]:
                        self._receiving.discard(peer)
                        return
                tag, count = self._receive(torch.empty(2, dtype=torch.int64), peer).tolist()
                self._take(peer, tag, count)
        except BaseException as error:  # noqa: BLE001 - given to everyone who waits
            with self._guard:
                waiting = list(self._wanted[peer])
                self._wanted[peer].clear()
                self._receiving.discard(peer)
            for _, _, work in waiting:
                work.run(lambda: _raise(error))

    def _take(self, peer: int, tag: int, count: int) -> None:
        found = self._asked_for(peer, tag)
        if found is not None and found[0].numel() == count:
            found[1].run(lambda: self._receive(found[0], peer))
            return
        if found is not None:
            found[1].run(lambda: _deliver(self._receive(torch.empty(count, dtype=torch.uint8), peer), found[0]))
            return
        message = self._receive(torch.empty(count, dtype=torch.uint8), peer)
        late = self._asked_for(peer, tag, message)
        if late is not None:
            late[1].run(lambda: _deliver(message, late[0]))

    def _asked_for(self, peer: int, tag: int, message: torch.Tensor | None = None) -> tuple[torch.Tensor, Work] | None:
        """Who has waited longest for such a message; the message, if there is one, is put aside where nobody does."""
        with self._guard:
            found = next((w for w in self._wanted[peer] if w[0] == tag), None)
            if found is not None:
                self._wanted[peer].remove(found)
                return found[1:]
            if message is not None:
                self._aside[peer].append((tag, message))
            return None


def _raise(error: BaseException) -> None:
    raise error


def _deliver(message: torch.Tensor, data: torch.Tensor) -> None:
    if message.numel() != data.numel():
        raise MismatchError(f"a message of {message.numel()} bytes was sent, {data.numel()} are received")
    data.copy_(message)
