# SPDX-License-Identifier: Apache-2.0
"""Communicators: groups of ranks, their collectives on numpy arrays and torch CPU tensors."""
from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import Buffer, buffer, empty_like, op_code
from ._library import ffi, lib, struct, text
from .errors import ArgumentError, check, from_status, new_error
from .request import Request

Allgather = Callable[[bytes, float], bytes]


@dataclass(frozen=True)
class Options:
    """Zero or None is the default; all ranks give the same values. Times are in seconds.

    transport        "shm" or "tcp"; by default what the ranks have in common
    algorithm        of all-reduces: "ring", "tree", ...; by default what is fastest for each size
    caller_progress  no thread: operations under way go on only while this process waits in the library
    rank_order       sums are taken in rank order, so that they do not depend on sizes and algorithms
    late             how long to wait for a rank that does not come (600)
    dead             how long a host may be silent until its ranks count as dead (10)
    checksum         exact data is checksummed on its way too
    """
    transport: str | None = None
    algorithm: str | None = None
    caller_progress: bool = False
    rank_order: bool = False
    late: float = 0
    dead: float = 0
    checksum: bool = False

    def _struct(self) -> tuple[Any, list[Any]]:
        options = struct("coset_comm_options")
        keep = []
        for name in ("transport", "algorithm"):
            value = getattr(self, name)
            if value is not None:
                keep.append(ffi.new("char[]", value.encode()))
                setattr(options, name, keep[-1])
        options.progress = lib.COSET_PROGRESS_CALLER if self.caller_progress else lib.COSET_PROGRESS_THREAD
        options.rank_order = int(self.rank_order)
        options.late_ms = round(self.late * 1000)
        options.dead_ms = round(self.dead * 1000)
        options.checksum = int(self.checksum)
        return options, keep


def unique_id() -> bytes:
    """Names a job. Made by the process of rank 0, given to the others by any means."""
    made = ffi.new("coset_unique_id *")
    check(lib.coset_unique_id_create(made))
    return bytes(ffi.buffer(made.bytes))


_FUNCTIONS: dict[str, tuple[Any, Any]] = {
    name: (getattr(lib, f"coset_{name}"), getattr(lib, f"coset_i{name}"))
    for name in ("allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "reduce", "barrier", "send", "recv")}
"""Of each operation: the call that blocks, and the one that starts it."""


class _Segment:
    """Memory of Comm.alloc as numpy sees it; keeps the communicator, which owns it."""

    def __init__(self, comm: Comm, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.comm = comm
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": dtype.str}


class Comm:
    """A group of ranks. Every rank makes the same calls in the same order; see coset.h for the rules.

    Collectives take numpy arrays or contiguous torch CPU tensors and do not copy them. `recv=None` means in place
    where that is possible, else a new array. Each method returns the result; those that begin with `i` return a Request
    (whose wait() gives it) and leave the arrays to the library until it is done.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._calls = 0  # threads inside a blocking call of the library
        self._guard = threading.Lock()
        self._left = threading.Event()  # the last of them is out again; set only when destroy() waits for it
        # Memory that the library may still use: of requests that nobody waited for, and, until destroy(), of failed operations.
        self._dropped: deque[tuple[Any, Any]] = deque()
        self._failed: list[Any] = []
        self.rank: int = lib.coset_comm_rank(handle)
        self.size: int = lib.coset_comm_size(handle)
        self.transport: str = text(lib.coset_comm_transport(handle))

    # -- creation ------------------------------------------------------------------------------------------------

    @classmethod
    def _create(cls, options: Options | None, call: Callable[[Any, Any, Any], int]) -> Comm:
        settings, keep = (options or Options())._struct()
        out = ffi.new("coset_comm **")
        why = new_error()
        check(call(settings, out, why), why=why)
        del keep
        return cls(out[0])

    @classmethod
    def from_env(cls, options: Options | None = None) -> Comm:
        """The ranks that coset run, torchrun, mpirun or srun started."""
        return cls._create(options, lib.coset_comm_create_env)

    @classmethod
    def from_id(cls, uid: bytes, rank: int, size: int, options: Options | None = None) -> Comm:
        """The ranks that were given what unique_id() returned on rank 0."""
        made = ffi.new("coset_unique_id *")
        if len(uid) != len(made.bytes):
            raise ArgumentError(f"an id has {len(made.bytes)} bytes, not {len(uid)}")
        ffi.memmove(made.bytes, uid, len(uid))
        return cls._create(options, lambda o, out, why: lib.coset_comm_create_id(made, rank, size, o, out, why))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], rank: int, size: int, options: Options | None = None) -> Comm:
        """`path` does not exist before, on a file system that all ranks share."""
        name = os.fsencode(path)
        return cls._create(options, lambda o, out, why: lib.coset_comm_create_file(name, rank, size, o, out, why))

    @classmethod
    def from_callback(cls, rank: int, size: int, allgather: Allgather, options: Options | None = None) -> Comm:
        """allgather(mine, timeout in seconds) returns every rank's bytes, joined in rank order."""
        raised: list[BaseException] = []

        @ffi.callback("coset_status(void *, const void *, void *, size_t, int)")
        def trampoline(_ctx: Any, send: Any, recv: Any, count: int, timeout_ms: int) -> int:
            try:
                joined = allgather(bytes(ffi.buffer(send, count)), timeout_ms / 1000)
                if len(joined) != size * count:
                    raise ArgumentError(f"allgather returned {len(joined)} bytes instead of {size * count}")
                ffi.memmove(recv, joined, size * count)
                return lib.COSET_OK
            except BaseException as error:  # noqa: BLE001 - must not pass through C; raised again below
                raised.append(error)
                return lib.COSET_ERR_LATE if isinstance(error, TimeoutError) else lib.COSET_ERR_SYSTEM

        oob = struct("coset_oob")
        oob.rank, oob.size, oob.allgather = rank, size, trampoline
        try:
            return cls._create(options, lambda o, out, why: lib.coset_comm_create_oob(oob, o, out, why))
        except Exception as error:
            raise error from (raised[0] if raised else None)

    @classmethod
    def threads(cls, size: int, options: Options | None = None) -> list[Comm]:
        """All ranks of one process: element r is used by one thread, as rank r."""
        if not 1 <= size <= 65535:
            raise ArgumentError(f"size {size}: expected 1 to 65535")
        settings, keep = (options or Options())._struct()
        out = ffi.new("coset_comm *[]", size)
        why = new_error()
        check(lib.coset_comm_create_threads(size, settings, out, why), why=why)
        del keep
        return [cls(out[r]) for r in range(size)]

    def split(self, color: int, key: int = 0) -> Comm | None:
        """A communicator per color, ranks ordered by (key, old rank); None where color < 0. Collective."""
        out = ffi.new("coset_comm **")
        self._check(lib.coset_comm_split(self._h, color, key, out))
        return None if out[0] == ffi.NULL else Comm(out[0])

    def shrink(self) -> Comm:
        """The ranks that still live after a PeerError or an abort. Collective among them."""
        out = ffi.new("coset_comm **")
        self._check(lib.coset_comm_shrink(self._h, out))
        return Comm(out[0])

    # -- life ----------------------------------------------------------------------------------------------------

    @property
    def _h(self) -> Any:
        if self._handle is None:
            raise ArgumentError("the communicator has been destroyed")
        return self._handle

    def _check(self, status: int) -> None:
        if status:
            check(status, self._handle)

    def abort(self, why: str = "abort called") -> None:
        """Every pending and later operation on every rank raises AbortedError. Never blocks."""
        lib.coset_comm_abort(self._h, why.encode())

    def destroy(self) -> None:
        """Frees the communicator and its memory: arrays of alloc() must not be touched afterwards.

        Aborts it first if another thread still waits in it.
        """
        with self._guard:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            inside = self._calls > 0
            if inside:
                lib.coset_comm_abort(handle, b"the communicator was destroyed while a thread waited in it")
        if inside:
            self._left.wait()
        lib.coset_comm_destroy(handle)
        self._dropped.clear()
        self._failed.clear()

    def _collect(self) -> None:
        """Frees the dropped requests that have ended."""
        self._enter()
        try:
            for _ in range(len(self._dropped)):
                slot, keep = self._dropped.popleft()
                status = lib.coset_wait(slot, 0)
                if status == lib.COSET_IN_PROGRESS:
                    self._dropped.append((slot, keep))
                elif status:
                    self._failed.append(keep)
        except IndexError:  # another thread is at it
            pass
        finally:
            self._leave()

    def _enter(self) -> Any:
        """Before a call that blocks; returns the handle. destroy() waits for _leave()."""
        with self._guard:
            handle = self._h
            self._calls += 1
        return handle

    def _leave(self) -> None:
        with self._guard:
            self._calls -= 1
            if self._handle is None and self._calls == 0:
                self._left.set()

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._handle is not None:
            self.abort(f"rank {self.rank} raised {kind.__name__}")
        self.destroy()

    def __del__(self) -> None:
        # At the end of the process modules are half gone, and the end itself tells the peers.
        if getattr(self, "_handle", None) is not None and not sys.is_finalizing():
            self.destroy()

    def __repr__(self) -> str:
        state = "" if self._handle is not None else ", destroyed"
        return f"<coset.Comm rank {self.rank} of {self.size}, {self.transport}{state}>"

    def stats(self) -> dict[str, float]:
        """Counters since creation."""
        out = struct("coset_stats")
        self._check(lib.coset_comm_stats(self._h, out))
        return {name: getattr(out, name) for name, _ in ffi.typeof("coset_stats").fields if name != "struct_size"}

    def flight(self, path: str | os.PathLike[str]) -> None:
        """Writes the last operations as JSON."""
        self._check(lib.coset_comm_flight(self._h, os.fsencode(path)))

    def alloc(self, shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
        """A zeroed array that every rank of the host reaches directly: collectives on it need no copy. Collective.

        The memory is the communicator's: after free() or destroy() the array must not be used."""
        kind = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        out = ffi.new("void **")
        count = int(np.prod(shape, dtype=np.int64))
        self._check(lib.coset_alloc(self._h, max(count, 1) * kind.itemsize, out))
        return np.asarray(_Segment(self, int(ffi.cast("uintptr_t", out[0])), shape, kind))

    def free(self, array: np.ndarray[Any, Any]) -> None:
        """Gives back what alloc() gave, which must not be used any more. Collective."""
        self._check(lib.coset_free(self._h, ffi.cast("void *", array.ctypes.data)))

    # -- collectives ---------------------------------------------------------------------------------------------

    def _pair(self, send: Any, recv: Any, scale_send: int = 1, scale_recv: int = 1) -> tuple[Buffer, Buffer]:
        """Both buffers, of one dtype, the same number of elements when multiplied by the scales."""
        b = buffer(recv, write=True)
        a = b if recv is send else buffer(send)
        if a.dtype != b.dtype:
            raise ArgumentError("send and recv have different dtypes")
        if a.count * scale_send != b.count * scale_recv:
            raise ArgumentError(f"send has {a.count} elements and recv {b.count}: they do not fit each other")
        return a, b

    def _run(self, name: str, arguments: tuple[Any, ...], asynchronous: bool, result: Any, keep: Any) -> Any:
        blocking, starting = _FUNCTIONS[name]
        if not asynchronous:
            handle = self._enter()
            try:
                check(blocking(*arguments, handle), handle)
            except Exception:
                self._failed.append(keep)
                raise
            finally:
                self._leave()
            return result
        if self._dropped:
            self._collect()
        out = ffi.new("coset_request **")
        self._check(starting(*arguments, self._h, out))
        return Request(self, out, result, keep)

    def _allreduce(self, send: Any, recv: Any, op: str, asynchronous: bool) -> Any:
        recv = send if recv is None else recv
        a, b = self._pair(send, recv)
        return self._run("allreduce", (a.pointer, b.pointer, a.count, a.dtype, op_code(op)), asynchronous, recv, (a, b))

    def allreduce(self, send: Any, recv: Any = None, op: str = "sum") -> Any:
        """op over all ranks: "sum", "avg", "min", "max", "prod"."""
        return self._allreduce(send, recv, op, False)

    def iallreduce(self, send: Any, recv: Any = None, op: str = "sum") -> Request:
        """allreduce(), under way when this returns."""
        return self._allreduce(send, recv, op, True)

    def _reduce_scatter(self, send: Any, recv: Any, op: str, asynchronous: bool) -> Any:
        count = buffer(send).count
        if count % self.size:
            raise ArgumentError(f"{count} elements do not divide among {self.size} ranks")
        recv = empty_like(send, (count // self.size,)) if recv is None else recv
        a, b = self._pair(send, recv, 1, self.size)
        return self._run("reduce_scatter", (a.pointer, b.pointer, b.count, a.dtype, op_code(op)), asynchronous, recv,
                         (a, b))

    def reduce_scatter(self, send: Any, recv: Any = None, op: str = "sum") -> Any:
        """Rank r gets the r-th of `size` equal parts of the reduced vector."""
        return self._reduce_scatter(send, recv, op, False)

    def ireduce_scatter(self, send: Any, recv: Any = None, op: str = "sum") -> Request:
        """reduce_scatter(), under way when this returns."""
        return self._reduce_scatter(send, recv, op, True)

    def _allgather(self, send: Any, recv: Any, asynchronous: bool) -> Any:
        recv = empty_like(send, (self.size, *send.shape)) if recv is None else recv
        a, b = self._pair(send, recv, self.size)
        return self._run("allgather", (a.pointer, b.pointer, a.count, a.dtype), asynchronous, recv, (a, b))

    def allgather(self, send: Any, recv: Any = None) -> Any:
        """All ranks' arrays, in rank order."""
        return self._allgather(send, recv, False)

    def iallgather(self, send: Any, recv: Any = None) -> Request:
        """allgather(), under way when this returns."""
        return self._allgather(send, recv, True)

    def _alltoall(self, send: Any, recv: Any, asynchronous: bool) -> Any:
        recv = empty_like(send, tuple(send.shape)) if recv is None else recv
        a, b = self._pair(send, recv)
        if a.count % self.size:
            raise ArgumentError(f"{a.count} elements do not divide among {self.size} ranks")
        return self._run("alltoall", (a.pointer, b.pointer, a.count // self.size, a.dtype), asynchronous, recv, (a, b))

    def alltoall(self, send: Any, recv: Any = None) -> Any:
        """Part i of send goes to rank i; part i of the result comes from rank i."""
        return self._alltoall(send, recv, False)

    def ialltoall(self, send: Any, recv: Any = None) -> Request:
        """alltoall(), under way when this returns."""
        return self._alltoall(send, recv, True)

    def _broadcast(self, array: Any, root: int, asynchronous: bool) -> Any:
        b = buffer(array, write=True)
        return self._run("broadcast", (b.pointer, b.pointer, b.count, b.dtype, root), asynchronous, array, b)

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """The root's array, written into the others'."""
        return self._broadcast(array, root, False)

    def ibroadcast(self, array: Any, root: int = 0) -> Request:
        """broadcast(), under way when this returns."""
        return self._broadcast(array, root, True)

    def _reduce(self, send: Any, recv: Any, op: str, root: int, asynchronous: bool) -> Any:
        recv = send if recv is None else recv
        a, b = self._pair(send, recv)
        return self._run("reduce", (a.pointer, b.pointer, a.count, a.dtype, op_code(op), root), asynchronous, recv, (a, b))

    def reduce(self, send: Any, recv: Any = None, op: str = "sum", root: int = 0) -> Any:
        """op over all ranks, on the root only."""
        return self._reduce(send, recv, op, root, False)

    def ireduce(self, send: Any, recv: Any = None, op: str = "sum", root: int = 0) -> Request:
        """reduce(), under way when this returns."""
        return self._reduce(send, recv, op, root, True)

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._run("barrier", (), False, None, None)

    def ibarrier(self) -> Request:
        """barrier(), under way when this returns."""
        return self._run("barrier", (), True, None, None)

    def send(self, array: Any, peer: int) -> None:
        """To a recv() of rank `peer`. Messages between two ranks match in the order of the calls; sizes and dtypes must agree."""
        b = buffer(array)
        self._run("send", (b.pointer, b.count, b.dtype, peer), False, array, b)

    def isend(self, array: Any, peer: int) -> Request:
        """send(), under way when this returns."""
        b = buffer(array)
        return self._run("send", (b.pointer, b.count, b.dtype, peer), True, array, b)

    def recv(self, array: Any, peer: int) -> Any:
        """What rank `peer` sends, written into `array`."""
        b = buffer(array, write=True)
        return self._run("recv", (b.pointer, b.count, b.dtype, peer), False, array, b)

    def irecv(self, array: Any, peer: int) -> Request:
        """recv(), under way when this returns."""
        b = buffer(array, write=True)
        return self._run("recv", (b.pointer, b.count, b.dtype, peer), True, array, b)


def describe() -> dict[str, dict[str, str]]:
    """What this build can do on this machine: {"cpu": {...}, "kernel": ..., "transport": ..., "machine": ...}."""
    facts: dict[str, dict[str, str]] = {}

    @ffi.callback("void(void *, const char *, const char *, const char *)")
    def fact(_ctx: Any, group: Any, name: Any, value: Any) -> None:
        facts.setdefault(text(group), {})[text(name)] = text(value)

    lib.coset_describe(fact, ffi.NULL)
    return facts


__all__ = ["Comm", "Options", "describe", "from_status", "unique_id"]
