# SPDX-License-Identifier: Apache-2.0
"""Operations of a process group, done one after the other in the order of the calls, and their Work handles.

Asynchronous operations run on the lane's thread. A synchronous one runs on the caller when nothing is under way, since a
hand-off costs more than a small all-reduce. Futures are completed by other threads than the lane's, so a callback may
wait for a later operation; the future of an operation that a callback started is completed by a thread one level up,
so a callback may wait for that too. Within a level, callbacks run in the order of the operations, alike on all ranks.
"""
from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import AbortedError

_ENDED = threading.Event()  # of operations that nobody waited for: an Event of their own is half of what they cost
_ENDED.set()
_here = threading.local()  # .level: how deep in callbacks this thread is


def _level() -> int:
    return getattr(_here, "level", 0)


class Work(dist._Work):
    """An operation under way or done. `result` are the tensors that it writes."""

    source = -1  # of a message
    _error: BaseException | None = None
    _begun: Any = None  # completed when the operation has ended; the future that users get follows it
    _future: Any = None
    # What follows is of works that nobody sees before they have ended; those under way have their own.
    _ended = _ENDED
    _guard = threading.Lock()
    _complete: Callable[[int, Callable[[], object]], None] | None = None
    _level = 0

    def __init__(self, result: list[torch.Tensor], complete: Callable[[int, Callable[[], object]], None] | None = None,
                 done: bool = False) -> None:
        """done: the caller does the operation, and nobody sees this before it has ended."""
        super().__init__()
        self._result = result
        if done:
            return
        self._ended, self._guard = threading.Event(), threading.Lock()
        self._complete, self._level = complete, _level()

    def run(self, body: Callable[[], object], failed: Callable[[BaseException], object] | None = None) -> Work:
        """Does the operation; never raises: wait() does. `failed` hears of an error before anyone who waits."""
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - kept for wait()
            self._error = error
            if failed is not None:
                failed(error)
        if self._ended is _ENDED:
            return self
        with self._guard:
            self._ended.set()
            begun = self._begun
        if begun is not None and self._complete is not None:
            self._complete(self._level, lambda: begun.set_result(None))
        elif begun is not None:
            begun.set_result(None)
        return self

    def _outcome(self, _begun: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise TimeoutError(f"not finished after {seconds} s")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._result

    def _source_rank(self) -> int:
        return self.source

    def get_future(self) -> Any:
        with self._guard:
            if self._future is not None:
                return self._future
            # Not set_exception: to C++, and so to DDP, that is a future that succeeded with an exception as its value.
            # One whose callback raised is a failed one to both.
            begun = torch.futures.Future()
            self._future = begun.then(self._outcome)
            ended = self._ended.is_set()
            if not ended:
                self._begun = begun
        if ended:
            begun.set_result(None)
        return self._future


class _Worker:
    """A thread that calls what it is given, in order."""

    def __init__(self, name: str, level: int) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._level = level
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        _here.level = self._level
        while (job := self._jobs.get()) is not None:
            job()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def do(self, job: Callable[[], object]) -> None:
        self._jobs.put(job)

    def stop(self) -> None:
        self._jobs.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()


class Lane:
    """See the head of the file. `failed` is told what an operation raised, on the thread that did it."""

    def __init__(self, failed: Callable[[BaseException], object]) -> None:
        self._failed = failed
        self._guard = threading.Lock()
        self._idle = threading.Event()  # nothing is pending; set only when close() waits for it
        self._pending = 0
        self._closed = False
        self._worker: _Worker | None = None
        self._completers: dict[int, _Worker] = {}

    def _completer(self, level: int, job: Callable[[], object]) -> None:
        with self._guard:
            worker = self._completers.get(level)
            if worker is None:
                worker = self._completers[level] = _Worker("coset-callbacks", level + 1)
        worker.do(job)

    def _done(self) -> None:
        with self._guard:
            self._pending -= 1
            if self._closed and self._pending == 0:
                self._idle.set()

    def submit(self, body: Callable[[], object], result: list[torch.Tensor], asynchronous: bool) -> Work:
        with self._guard:
            if self._closed:
                raise AbortedError("the process group has been shut down")
            inline = not asynchronous and self._pending == 0
            work = Work(result, self._completer, inline)
            self._pending += 1
            if not inline:
                if self._worker is None or not self._worker.is_alive():  # in a forked process no thread of before is
                    self._worker = _Worker("coset-lane", 0)
                # Under the guard, so that the order in the queue is the order of the calls.
                self._worker.do(lambda: self._run(work, body))
        if inline:
            self._run(work, body)
        return work

    def _run(self, work: Work, body: Callable[[], object]) -> None:
        work.run(body, self._failed)
        self._done()

    def close(self) -> None:
        """Waits for what is under way; refuses what comes after."""
        with self._guard:
            self._closed = True
            pending = self._pending > 0
        if pending:
            self._idle.wait()
        with self._guard:
            workers = [*([self._worker] if self._worker else []), *self._completers.values()]
        for worker in workers:
            worker.stop()
