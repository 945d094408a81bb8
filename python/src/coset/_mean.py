# SPDX-License-Identifier: Apache-2.0
"""The compressed mean (coset_mean.h): every rank ends with the same unbiased estimate at a few bits per coordinate."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import buffer
from ._library import ffi, lib, struct
from .comm import Comm
from .errors import ArgumentError, check, from_status, new_error

_OBJECTIVES = {"bits": lib.COSET_OBJECTIVE_BITS, "time": lib.COSET_OBJECTIVE_TIME}
_KINDS = {lib.COSET_XFER_ALLTOALL: "alltoall", lib.COSET_XFER_ALLGATHER: "allgather",
          lib.COSET_XFER_SUM_WRAP: "sum_wrap", lib.COSET_XFER_ROUTE: "route"}

Span = tuple[int, Any, Any]
"""A tensor of a call: its id, which names it from call to call; the input; the output (the same array, or another)."""


@dataclass(frozen=True)
class MeanOptions:
    """Zero or None is the default; all ranks give the same values.

    error_budget  excess variance that compression may add, as a fraction of the variance of the mean itself (0.05)
    bits          bits per coordinate and phase, instead of a budget
    codec         "lattice" (the planner chooses), "lattice:z", "lattice:e8", "lattice:entropy", "none", or a baseline ("eden", "qsgd", ...)
    protocol      "sharded-star", "star", "tree", "homomorphic", "robust", "sublinear"
    y, sigma      known bounds: on the distance of any two ranks' arrays; on the root of their mean squared distance from the mean
    seed          of the shared randomness
    objective     "bits": fewest; "time": least time on a link of link_gbps (10^9 bytes per second)
    parameter     "tree": m of Algorithm 4; "star", "robust": q
    """
    error_budget: float = 0
    bits: float = 0
    codec: str | None = None
    protocol: str | None = None
    y: float = 0
    sigma: float = 0
    seed: int = 0
    objective: str = "bits"
    link_gbps: float = 0
    parameter: int = 0

    def _struct(self) -> tuple[Any, list[Any]]:
        options = struct("coset_mean_options")
        keep = []
        for name in ("codec", "protocol"):
            if getattr(self, name) is not None:
                keep.append(ffi.new("char[]", getattr(self, name).encode()))
                setattr(options, name, keep[-1])
        for name in ("error_budget", "bits", "y", "sigma", "seed", "link_gbps", "parameter"):
            setattr(options, name, getattr(self, name))
        if self.objective not in _OBJECTIVES:
            raise ArgumentError(f"objective {self.objective!r}: known are {', '.join(_OBJECTIVES)}")
        options.objective = _OBJECTIVES[self.objective]
        return options, keep


class Transfer:
    """What an engine has to carry next. The memory belongs to the round, until its next transfer is asked for."""

    def __init__(self, xfer: Any, size: int) -> None:
        self._x = xfer
        self.kind: str = _KINDS[xfer.kind]
        self.bytes: int = xfer.bytes
        self.unit_bytes: int = lib.coset_dtype_size(xfer.unit)
        self._send_blocks = size if self.kind == "alltoall" else 1
        self._recv_blocks = 1 if self.kind == "sum_wrap" else size

    @property
    def send(self) -> Any:
        """Read-only use. alltoall: `size` blocks of `bytes`, block i for rank i; else one block."""
        return ffi.buffer(self._x.send, self._send_blocks * self.bytes)

    @property
    def recv(self) -> Any:
        """sum_wrap: one block; else `size` blocks of `bytes`, block i from rank i."""
        return ffi.buffer(self._x.recv, self._recv_blocks * self.bytes)

    def routes(self) -> Iterator[tuple[int, Any, Any]]:
        """route: (peer, what to send it or None, where to receive from it or None)."""
        for i in range(self._x.nroutes):
            r = self._x.routes[i]
            yield (r.peer, None if r.send == ffi.NULL else ffi.buffer(r.send, r.bytes),
                   None if r.recv == ffi.NULL else ffi.buffer(r.recv, r.bytes))


_REPORT_FIELDS = tuple(name for name, _ in ffi.typeof("coset_mean_report").fields if name != "struct_size")


def _report(out: Any) -> dict[str, Any]:
    """A coset_mean_report as a dict, with the bits per coordinate that people ask for first."""
    facts = {name: getattr(out, name) for name in _REPORT_FIELDS}
    facts["plain"] = bool(facts["plain"])
    coords = max(facts["coords"], 1)
    return {"bits_per_coord_sent": facts["bits_sent"] / coords, "bits_per_coord_received": facts["bits_received"] / coords,
            **facts}


class Round:
    """One call under way; see Mean.begin."""

    def __init__(self, mean: Mean, handle: Any, keep: Any) -> None:
        self._mean, self._handle, self._keep = mean, handle, keep
        self._x = struct("coset_xfer")

    def next(self) -> Transfer | None:
        """Takes in what the last transfer brought; the next one to carry, or None when the outputs are complete."""
        self._mean._check(lib.coset_mean_next(self._handle, self._x))
        return None if self._x.kind == lib.COSET_XFER_DONE else Transfer(self._x, self._mean.size)

    def end(self) -> dict[str, Any]:
        """Frees the round and returns its report."""
        handle, self._handle = self._handle, None
        out = struct("coset_mean_report")
        self._keep = None
        self._mean._check(lib.coset_mean_end(handle, out))
        return _report(out)

    def abandon(self) -> None:
        """After an error, while a transfer may still be running: an engine may write to the memory, so it is never freed."""
        self._handle = None
        ffi.gc(self._mean._handle, None)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            lib.coset_mean_end(self._handle, ffi.NULL)


class Mean:
    """This rank's end of compressed means: options, and what is remembered of each tensor. One thread at a time.

    Any engine can carry it:

        round = mean.begin(spans)
        while (transfer := round.next()) is not None:
            ...move transfer.send to the others' transfer.recv...
        report = round.end()
    """

    def __init__(self, rank: int, size: int, options: MeanOptions | None = None) -> None:
        self._handle: Any = None
        settings, keep = (options or MeanOptions())._struct()
        out = ffi.new("coset_mean **")
        why = new_error()
        check(lib.coset_mean_create(rank, size, settings, out, why), why=why)
        del keep
        self._handle = ffi.gc(out[0], lib.coset_mean_destroy)
        self.rank, self.size = rank, size

    def _check(self, status: int) -> None:
        if status:
            why = new_error()
            lib.coset_mean_last_error(self._handle, why)
            raise from_status(status, why)

    @staticmethod
    def _spans(spans: Iterable[Span]) -> tuple[Any, int, int, list[Any]]:
        """The C array, its length, the dtype of all, and what must stay alive."""
        keep = []
        for tensor, send, recv in spans:
            a, b = buffer(send), buffer(recv, write=True)
            if a.count != b.count or a.dtype != b.dtype:
                raise ArgumentError(f"tensor {tensor}: input and output differ in size or dtype")
            keep.append((tensor, a, b))
        if len({a.dtype for _, a, _ in keep}) > 1:
            raise ArgumentError("the tensors of a call have one dtype")
        made = ffi.new("coset_span[]", max(len(keep), 1))
        for i, (tensor, a, b) in enumerate(keep):
            made[i] = (tensor, a.pointer, b.pointer, a.count)
        return made, len(keep), keep[0][1].dtype if keep else lib.COSET_F32, keep

    def begin(self, spans: Iterable[Span]) -> Round:
        """Starts a call. All ranks begin the same calls in the same order."""
        made, count, dtype, keep = self._spans(spans)
        out = ffi.new("coset_round **")
        self._check(lib.coset_mean_begin(self._handle, made, count, dtype, out))
        return Round(self, out[0], keep)

    def allreduce(self, spans: Iterable[Span], comm: Comm) -> dict[str, Any]:
        """The whole call over a communicator; returns its report."""
        made, count, dtype, keep = self._spans(spans)
        out = struct("coset_mean_report")
        status = lib.coset_mean_allreduce(self._handle, made, count, dtype, comm._h, out)
        if status:
            comm._failed.append(keep)
            why = new_error()
            lib.coset_mean_last_error(self._handle, why)
            if why.status != status:
                lib.coset_last_error(comm._h, why)
            raise from_status(status, why)
        return _report(out)

    def save(self) -> bytes:
        """What is remembered of the tensors, for load on this rank: the job goes on bit for bit. It fits other ranks too,
        which then make the same bits as each other, but perhaps not those of a job that was not stopped."""
        size = ffi.new("size_t *")
        self._check(lib.coset_mean_save(self._handle, ffi.NULL, size))
        room = ffi.new("char[]", max(size[0], 1))
        self._check(lib.coset_mean_save(self._handle, room, size))
        return bytes(ffi.buffer(room, size[0]))

    def load(self, saved: bytes) -> None:
        """Replaces what is remembered. CorruptError or MismatchError leave it as it was."""
        if not isinstance(saved, bytes | bytearray):
            raise ArgumentError(f"a saved state is bytes, not {type(saved).__name__}")
        self._check(lib.coset_mean_load(self._handle, ffi.from_buffer(saved), len(saved)))


def _carry(transfers: Sequence[Transfer]) -> None:
    """One transfer between ranks that are all here."""
    kind, count = transfers[0].kind, transfers[0].bytes
    if kind == "sum_wrap":
        unit = f"u{transfers[0].unit_bytes}"
        total = sum((np.frombuffer(t.send, unit) for t in transfers[1:]), np.frombuffer(transfers[0].send, unit).copy())
        for t in transfers:
            np.frombuffer(t.recv, unit)[:] = total
    elif kind == "route":
        sent = {(rank, peer): send for rank, t in enumerate(transfers) for peer, send, _ in t.routes() if send is not None}
        for rank, t in enumerate(transfers):
            for peer, _, recv in t.routes():
                if recv is not None:
                    recv[:] = sent[peer, rank][:]
    else:
        for rank, t in enumerate(transfers):
            for peer, source in enumerate(transfers):
                start = rank * count if kind == "alltoall" else 0
                t.recv[peer * count:(peer + 1) * count] = source.send[start:start + count]


_last = threading.local()


def mean(arrays: Sequence[np.ndarray[Any, Any]], options: MeanOptions | None = None, *, ranks: Sequence[Mean] | None = None,
         **settings: Any) -> np.ndarray[Any, Any]:
    """The mean of arrays of one shape, estimated as the ranks of a job would, one array each.

    mean(arrays, error_budget=0.05), or MeanOptions. `ranks` (from mean_ranks) carries what was learnt from call to call.
    report() tells what it cost.
    """
    if not arrays:
        raise ArgumentError("no arrays")
    inputs = [np.ascontiguousarray(a) for a in arrays]
    if any(a.shape != inputs[0].shape or a.dtype != inputs[0].dtype for a in inputs):
        raise ArgumentError("the arrays differ in shape or dtype")
    group = list(ranks) if ranks is not None else mean_ranks(len(inputs), options, **settings)
    if len(group) != len(inputs):
        raise ArgumentError(f"{len(inputs)} arrays for {len(group)} ranks")
    outputs = [np.empty_like(a) for a in inputs]
    rounds = [m.begin([(1, a, out)]) for m, a, out in zip(group, inputs, outputs, strict=True)]
    while True:
        transfers = [r.next() for r in rounds]
        if transfers[0] is None:
            break
        _carry([t for t in transfers if t is not None])
    reports = [r.end() for r in rounds]
    _last.report = {**reports[0], "ranks": len(group),
                    "identical_on_all_ranks": all(o.tobytes() == outputs[0].tobytes() for o in outputs)}
    return outputs[0]


def mean_ranks(size: int, options: MeanOptions | None = None, **settings: Any) -> list[Mean]:
    """The ranks of a job of this process, for mean(..., ranks=)."""
    if options is not None and settings:
        raise ArgumentError("give options or single settings, not both")
    try:
        chosen = options or MeanOptions(**settings)
    except TypeError as error:
        raise ArgumentError(str(error).replace("MeanOptions.__init__()", "mean()")) from None
    return [Mean(rank, size, chosen) for rank in range(size)]


def report() -> dict[str, Any]:
    """What the last mean() of this thread cost, as rank 0 saw it; {} before the first."""
    return dict(getattr(_last, "report", {}))


__all__ = ["Mean", "MeanOptions", "Round", "Span", "Transfer", "mean", "mean_ranks", "report"]
