# SPDX-License-Identifier: Apache-2.0
"""One exception for each status of the library (coset.h says what each one costs)."""
from __future__ import annotations

from typing import Any

from ._library import ffi, lib, struct, text


class Error(RuntimeError):
    """Base of all. `rank` reports, `peer` is the cause, `op` is the operation's number, `host` is where; None: unknown."""

    status = 0

    def __init__(self, message: str, *, rank: int | None = None, peer: int | None = None, op: int | None = None,
                 host: str | None = None) -> None:
        super().__init__(message)
        self.rank, self.peer, self.op, self.host = rank, peer, op, host


class ArgumentError(Error, ValueError):
    """An argument of this call is wrong; nothing else is lost."""
    status = 1


class UnsupportedError(Error, NotImplementedError):
    """This build, machine or option cannot do it."""
    status = 2


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, or the host's shared memory is full."""
    status = 3


class CommunicatorError(Error):
    """The communicator is lost: only abort, destroy and shrink remain."""


class PeerError(CommunicatorError):
    """A rank died or fell silent; `peer` names it."""
    status = 32


class LateError(CommunicatorError, TimeoutError):
    """A rank did not arrive in time; `peer` names it."""
    status = 33


class MismatchError(CommunicatorError):
    """Ranks disagree about the call, an option or the version."""
    status = 34


class AbortedError(CommunicatorError):
    """abort() was called here or on another rank."""
    status = 35


class CorruptError(CommunicatorError):
    """Bytes from a peer or a file failed a check."""
    status = 36


class SystemCallError(Error, OSError):
    """A system call failed; the text has its name and cause."""
    status = 64


_BY_STATUS: dict[int, type[Error]] = {c.status: c for c in (
    ArgumentError, UnsupportedError, OutOfMemoryError, PeerError, LateError, MismatchError, AbortedError, CorruptError,
    SystemCallError)}


def from_status(status: int, why: Any = None) -> Error:
    """The exception for a status; `why` is a coset_error or None."""
    kind = _BY_STATUS.get(status, Error)
    if why is None or why.status != status:
        return kind(text(lib.coset_strerror(status)))
    return kind(text(why.text) or text(lib.coset_strerror(status)),
                rank=why.rank if why.rank >= 0 else None,
                peer=why.peer if why.peer >= 0 else None,
                op=why.op if why.op != 2**64 - 1 else None,
                host=text(why.host) or None)


def new_error() -> Any:
    """An empty coset_error for a call that fills one."""
    why = struct("coset_error")
    why.rank = why.peer = -1
    why.op = 2**64 - 1
    return why


def check(status: int, comm: Any = None, why: Any = None) -> None:
    """Raises unless status is COSET_OK. The details come from `why`, else from the communicator."""
    if status == 0:
        return
    if why is None and comm is not None and comm != ffi.NULL:
        why = new_error()
        lib.coset_last_error(comm, why)
    raise from_status(status, why)
