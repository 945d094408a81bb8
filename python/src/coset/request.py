# SPDX-License-Identifier: Apache-2.0
"""Operations under way."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._library import ffi, lib
from .errors import Error, check, from_status, new_error

if TYPE_CHECKING:
    from .comm import Comm


class Request:
    """An operation under way. Keeps its arrays alive; they belong to the library until it is done."""

    def __init__(self, comm: Comm, slot: Any, result: Any, keep: Any) -> None:
        self._comm, self._slot, self._result, self._keep = comm, slot, result, keep
        self._lock = threading.Lock()
        self._error: Error | None = None
        self._callbacks: list[Any] = []

    def __del__(self) -> None:
        if self._slot[0]:  # not NULL: the operation goes on without anyone who waits
            self._comm._dropped.append((self._slot, (self._keep, self._callbacks)))

    def _finish(self, status: int, handle: Any) -> Any:
        keep, self._keep = self._keep, None
        if status:
            self._comm._failed.append(keep)
            why = new_error()
            lib.coset_last_error(handle, why)
            self._error = from_status(status, why)
            raise self._error
        return self._result

    def test(self) -> bool:
        """Whether it has ended. Never blocks."""
        with self._lock:
            if self._slot[0] == ffi.NULL:
                return True
            handle = self._comm._h
            done = ffi.new("int *")
            check(lib.coset_test(self._slot[0], done), handle)
            return bool(done[0])

    def wait(self, timeout: float | None = None) -> Any:
        """The result, when the operation has ended; TimeoutError after `timeout` seconds, and the operation goes on."""
        with self._lock:
            if self._slot[0] == ffi.NULL:
                if self._error is not None:
                    raise self._error
                return self._result
            handle = self._comm._enter()
            try:
                status = lib.coset_wait(self._slot, -1 if timeout is None else max(0, round(timeout * 1000)))
                if status == lib.COSET_IN_PROGRESS:
                    raise TimeoutError(f"not finished after {timeout} s")
                return self._finish(status, handle)
            finally:
                self._comm._leave()

    def on_complete(self, fn: Callable[[int], None]) -> None:
        """fn(status) is called once, when the operation ends, on the thread that drives it. It must not wait for any."""
        @ffi.callback("void(void *, coset_status)")
        def trampoline(_ctx: Any, status: int) -> None:
            fn(status)

        self._callbacks.append(trampoline)
        with self._lock:
            if self._slot[0] == ffi.NULL:
                fn(0 if self._error is None else self._error.status)
            else:
                handle = self._comm._h
                check(lib.coset_request_on_complete(self._slot[0], trampoline, ffi.NULL), handle)
