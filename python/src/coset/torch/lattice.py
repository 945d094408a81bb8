# SPDX-License-Identifier: Apache-2.0
"""Compressed gradients for DistributedDataParallel, over the process group that the user has:

    ddp.register_comm_hook(coset.torch.LatticeState(error_budget=0.05), coset.torch.lattice_hook)

One dispatcher thread issues all our collectives, on a group of our own, in one order on all ranks. For parts 0, 1, 2 of buckets
(E exact small parameters, A and B the two phases of the exchange, + further rounds if something had to be repaired):

    E0 A0  E1 A1 B0  E2 A2 B1 +0  B2 +1 +2

So part k is encoded while part k-1 is on the wire. Nothing waits in a backend's thread or in a future's callback, and
DDP's own collectives are on another group. A rank that fails or leaves ends the exchange of all, with the reason (_watch.py).
"""
# Annotations must be objects, not strings: DistributedDataParallel checks those of the hook.
import atexit
import itertools
import logging
import queue
import statistics
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from .._mean import Mean, MeanOptions
from ..errors import AbortedError, ArgumentError, MismatchError, UnsupportedError
from ._bytes import dense
from ._engine import Engine, own_group
from ._parts import Bucket, Part, cut
from ._watch import Watch

_log = logging.getLogger("coset")
Span = tuple[int, torch.Tensor]
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# Sent plain: shorter pieces are joined, which copies them; longer ones are reduced where they are.
_IN_PLACE = 64 << 10
# objective="time": steps measured with each way after the first ones, in which DDP and the statistics settle.
_SETTLE_STEPS, _TRIAL_STEPS = 3, 4


def _flat(gradient: torch.Tensor) -> torch.Tensor | None:
    """A flat view of the gradient's memory, in whatever order it lies there; None if it is not in one piece."""
    if gradient.is_contiguous():
        return gradient.view(-1)
    if gradient.dim() == 4 and gradient.is_contiguous(memory_format=torch.channels_last):
        return gradient.as_strided((gradient.numel(),), (1,))
    return None


_Jobs = queue.SimpleQueue[Part | BaseException | None]
_dispatchers: dict[threading.Thread, tuple[_Jobs, Watch]] = {}
# How long the end of the interpreter waits for each: more than a slice of the watch.
_EXIT_SECONDS = 2.0


class _Trial:
    """Which way is faster here: times whole steps, plain and compressed, and lets all ranks agree."""

    def __init__(self) -> None:
        self._steps = 0
        self._since = 0.0
        self._periods: dict[bool, list[float]] = {True: [], False: []}
        self.plain = False
        self.decided = False

    def step_ended(self, agree: Callable[[list[float]], list[float]]) -> str | None:
        """Called by the dispatcher at the end of every step; what there is to say to the user, once."""
        now = time.perf_counter()
        self._steps += 1
        turn = self._steps - _SETTLE_STEPS
        if turn > 0 and (turn - 1) % (_TRIAL_STEPS + 1):
            self._periods[self.plain].append(now - self._since)
        self._since = now
        if turn == _TRIAL_STEPS + 1:
            self.plain = True
        if turn < 2 * (_TRIAL_STEPS + 1):
            return None
        compressed, plain = agree([statistics.median(self._periods[False]), statistics.median(self._periods[True])])
        self.plain = plain <= compressed
        self.decided = True
        return (f"a step takes {1e3 * compressed:.1f} ms compressed, {1e3 * plain:.1f} ms plain: gradients are sent "
                f"{'plain, since compression does not pay on this link' if self.plain else 'compressed'}")


class LatticeState:
    """Options and memory of lattice_hook; all ranks make it alike, after init_process_group.

    process_group   the ranks that average (default: all); a group of our own is made from it
    error_budget    excess variance of the mean that compression may add, as a fraction of the sampling variance
    bits            if > 0: bits per coordinate and phase instead of the budget
    objective       "time": measures some steps compressed and plain, and keeps what is faster on this link (it says which,
                    through the logger "coset" and in report()); "bits": always compresses
    mode            "sharded-star" (two rounds), or "homomorphic" (one all_reduce of codes)
    codec           None: the planner chooses for every block; else a name as in coset.MeanOptions, for comparisons
    seed            of the shared randomness
    min_elements    parameters that are smaller, or one-dimensional, are averaged exactly
    cuda_staging    allows CUDA gradients, by way of pinned host memory (never measured on a GPU: off by default)
    """

    def __init__(self, process_group: dist.ProcessGroup | None = None, *, error_budget: float = 0.05, bits: float = 0,
                 objective: str = "time", mode: str = "sharded-star", codec: str | None = None, seed: int = 0,
                 min_elements: int = 1024, cuda_staging: bool = False) -> None:
        if objective not in ("time", "bits"):
            raise ArgumentError(f"objective {objective!r}: known are time, bits")
        if mode not in ("sharded-star", "homomorphic"):
            raise ArgumentError(f"mode {mode!r}: known are sharded-star, homomorphic")
        self._engine = Engine(own_group(process_group))
        self._engine.watch.agree(f"objective={objective} min_elements={min_elements}")  # the others are compared in every transfer
        options = MeanOptions(error_budget=error_budget, bits=bits, protocol=mode, codec=codec, seed=seed)
        self._mean = Mean(dist.get_rank(self._engine.group), self._engine.size, options)
        self._min_elements, self._cuda_staging = min_elements, cuda_staging
        self._trial = _Trial() if objective == "time" else None
        self._by_address: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._totals: dict[str, float] = {}
        self._steps = 0
        self._error: BaseException | None = None
        self._closed = False
        self._jobs: _Jobs = queue.SimpleQueue()
        self._thread = threading.Thread(target=_dispatch, args=(weakref.ref(self), self._jobs, self._engine.watch),
                                        name="coset-dispatcher", daemon=True)
        _dispatchers[self._thread] = self._jobs, self._engine.watch
        self._thread.start()

    # -- what a bucket consists of -------------------------------------------------------------------------------

    def _id(self, parameter: torch.Tensor) -> int:
        """Parameters are numbered as they first come; that order is the same on all ranks."""
        known = self._by_address.get(id(parameter))
        if known is not None and known[0]() is parameter:
            return known[1]
        number = next(self._numbers)  # not by how many are known: where memory is used again is each rank's own affair
        self._by_address[id(parameter)] = (weakref.ref(parameter), number)
        return number

    def _submit(self, result: torch.Tensor, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]], last: bool) -> Bucket:
        """pairs: parameters and their gradients, which are averaged in place."""
        bucket = Bucket(result)
        if self._error is not None:
            bucket.fail(self._error)
            return bucket
        try:
            if self._closed:
                raise ArgumentError("the LatticeState has been closed")
            if not self._thread.is_alive():
                raise UnsupportedError("a LatticeState works in the process that made it, not in one that was forked from it")
            dense(result)  # DDP's bucket of a sparse gradient
            for part in cut(bucket, *self._sorted(pairs), last, self._engine.size):
                self._jobs.put(part)
        except BaseException as error:  # noqa: BLE001 - DDP goes on only after futures that fail
            self._give_up(bucket, error)
        return bucket

    def _give_up(self, bucket: Bucket, error: BaseException) -> None:
        """What fails on the caller's thread fails on all ranks: they would wait for this one."""
        self._jobs.put(error)
        bucket.fail(error)

    def _sorted(self, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> tuple[list[Span], list[torch.Tensor]]:
        """What is compressed, and what is averaged exactly."""
        spans, exact = [], []
        for parameter, gradient in pairs:
            number = self._id(parameter)
            flat = _flat(dense(gradient))
            if parameter.dim() < 2 or parameter.numel() < self._min_elements or gradient.dtype not in _FLOATS or flat is None:
                exact.append(gradient)
            else:
                spans.append((number, flat))
        return spans, exact

    # -- the dispatcher ------------------------------------------------------------------------------------------

    def _start(self, part: Part) -> None:
        """E and A."""
        if self._trial is not None and self._trial.plain:
            for _, piece in part.spans:
                if piece.numel() < _IN_PLACE:
                    part.exact.append(piece)
                else:
                    self._divide(piece, True)
                    part.plain.append((piece, self._engine.all_reduce(piece)))
            part.spans = []
        if part.exact:
            part.small = torch.cat([g.reshape(-1) for g in part.exact])
            self._divide(part.small, True)
            part.small_wait = self._engine.all_reduce(part.small)
        if part.spans:
            part.round = self._mean.begin([(number, g, g) for number, g in part.spans])
            self._advance(part)

    def _advance(self, part: Part) -> bool:
        """Waits for the transfer under way and starts the next; False when there is none."""
        if part.round is None:
            return False
        if part.wait is not None:
            part.wait()
        transfer = part.round.next()
        part.wait = None if transfer is None else self._engine.start(transfer)
        if transfer is None:
            self._add(part.round.end())
            part.round = None
        return transfer is not None

    def _finish(self, part: Part) -> None:
        """All that is left."""
        while self._advance(part):
            pass
        for piece, wait in part.plain:
            wait()
            self._divide(piece, False)
            self._add({"exact_elements": piece.numel()})
        if part.small is not None and part.small_wait is not None:
            part.small_wait()
            self._divide(part.small, False)
            offset = 0
            for gradient in part.exact:
                gradient.copy_(part.small[offset:offset + gradient.numel()].view(gradient.shape))
                offset += gradient.numel()
            self._add({"exact_elements": offset})
        self._steps += part.last
        part.bucket.part_done()
        if part.last and self._trial is not None and not self._trial.decided:
            said = self._trial.step_ended(self._agree)
            if said and self._mean.rank == 0:
                _log.warning(said)

    def _divide(self, tensor: torch.Tensor, before: bool) -> None:
        """By the number of ranks, after the sum; half precision, whose sums overflow, before it, as DDP does."""
        if before == (tensor.dtype == torch.float16):
            tensor /= self._engine.size

    def _agree(self, numbers: list[float]) -> list[float]:
        """The maximum over ranks."""
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self._engine.all_reduce(tensor, dist.ReduceOp.MAX)()
        return tensor.tolist()

    def _add(self, facts: dict[str, float]) -> None:
        with self._lock:
            for name in ("coords", "bits_sent", "bits_received", "transfers", "repaired", "corrected", "refined", "exact",
                         "exact_elements"):
                self._totals[name] = self._totals.get(name, 0) + facts.get(name, 0)
            for name in ("spread2", "mean2", "predicted_excess"):
                if name in facts:
                    self._totals[name] = facts[name]

    def _fail(self, parts: Iterable[Part], error: BaseException) -> None:
        """The end of this state: tells the other ranks, and everyone here who waits."""
        self._error = error
        self._engine.stop(error)
        _drop(parts, error)

    # -- for users -----------------------------------------------------------------------------------------------

    def average(self, parameters: Iterable[torch.Tensor]) -> None:
        """For loops without DDP: after backward, on all ranks, makes every gradient the mean over the ranks.

        A parameter without a gradient counts as zero. Waits until done, and overlaps with nothing.
        """
        by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad.device.type != "cpu":
                raise UnsupportedError(f"gradients on {parameter.grad.device}: average() is for CPU tensors")
            by_dtype.setdefault(parameter.grad.dtype, []).append(parameter)
        groups = list(by_dtype.values())
        sent = [self._submit(group[0], [(p, p.grad) for p in group], i + 1 == len(groups)) for i, group in enumerate(groups)]
        for bucket in sent:
            bucket.future.wait()

    def report(self) -> dict[str, Any]:
        """Totals since the start: coordinates, bits, repairs; "plain" if compression did not pay (see objective)."""
        with self._lock:
            totals = dict(self._totals)
        coords = max(totals.get("coords", 0), 1)
        return {"steps": self._steps, "plain": self._trial is not None and self._trial.plain,
                "bits_per_coord_sent": totals.get("bits_sent", 0) / coords, **totals}

    def state_dict(self) -> dict[str, Any]:
        """What has been learnt of the gradients. Between steps only. For load_state_dict on this rank, which goes on bit for
        bit; or on all of them, which is the same unless the gradients' mean exceeds their spread. With objective "time" both
        ways are tried again."""
        return {"size": self._engine.size, "mean": self._mean.save()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """All ranks load, each what it saved or all what one did; the model and the options must be the same."""
        if not isinstance(state, dict) or not {"size", "mean"} <= state.keys():
            raise ArgumentError(f"this is no state_dict() of a LatticeState: {str(state)[:100]}")
        if state["size"] != self._engine.size:
            raise MismatchError(f"the state is of {state['size']} ranks, here are {self._engine.size}")
        self._mean.load(state["mean"])

    def close(self) -> None:
        """Ends the dispatcher. Happens by itself when the state is no longer used. Ranks that go on without this one are told."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    def __del__(self) -> None:
        if hasattr(self, "_jobs"):
            self._jobs.put(None)


def _drop(parts: Iterable[Part], error: BaseException) -> None:
    """Those of an exchange that does not come to its end."""
    for part in parts:
        if part.round is not None:
            part.round.abandon()
            part.round = None
        part.bucket.fail(error)


def _dispatch(owner: weakref.ref[LatticeState], jobs: _Jobs, watch: Watch) -> None:
    """The dispatcher's thread; holds the state only while there is work, so that it can be collected."""
    underway: list[Part] = []
    while (job := jobs.get()) is not None:
        state = owner()
        if state is None:
            break
        try:
            if isinstance(job, BaseException):
                raise job
            underway.append(job)
            if state._error is not None:
                raise state._error
            _turn(state, underway, job.last)
        except BaseException as error:  # noqa: BLE001 - given to everyone who waits
            state._fail(underway, error)
            underway = []
        del state, job
    watch.left()
    _drop(underway, AbortedError("the LatticeState was closed within a step"))
    _dispatchers.pop(threading.current_thread(), None)


def _stop_dispatchers() -> None:
    """At the end of the interpreter: a thread that came out of a backend's C++ after it would abort the process."""
    for thread, (jobs, watch) in list(_dispatchers.items()):
        watch.quit()
        jobs.put(None)
        thread.join(_EXIT_SECONDS)


atexit.register(_stop_dispatchers)


def _turn(state: LatticeState, underway: list[Part], last: bool) -> None:
    """One more part: A of it, B of the one before, the rest of the one before that. At the end of a step all the rest."""
    state._start(underway[-1])
    if len(underway) >= 2:
        state._advance(underway[-2])
    while len(underway) > (0 if last else 2):
        state._finish(underway[0])
        del underway[0]


def lattice_hook(state: LatticeState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The hook for DistributedDataParallel.register_comm_hook; see LatticeState."""
    if not isinstance(state, LatticeState):
        raise ArgumentError(f"lattice_hook was registered with {type(state).__name__} as its state: "
                            "ddp.register_comm_hook(LatticeState(), lattice_hook)")
    buffer = bucket.buffer()
    if buffer.device.type != "cpu":
        return _staged(state, bucket, buffer)
    return state._submit(buffer, zip(bucket.parameters(), bucket.gradients(), strict=True), bucket.is_last()).future


def _staged(state: LatticeState, bucket: dist.GradBucket, buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    """Gradients elsewhere: copied to pinned host memory, averaged there, copied back when the future is done."""
    try:
        if not state._cuda_staging:
            raise UnsupportedError(f"gradients on {buffer.device}: LatticeState(cuda_staging=True) sends them through pinned host "
                                   "memory, which has not been measured; it needs a process group with a CPU backend (gloo)")
        host = _host_copy(buffer)
    except Exception as error:  # noqa: BLE001
        failed = Bucket(buffer)
        state._give_up(failed, error)
        return failed.future
    views, offset = [], 0
    for gradient in bucket.gradients():
        views.append(host[offset:offset + gradient.numel()].view(gradient.shape))
        offset += gradient.numel()
    sent = state._submit(host, zip(bucket.parameters(), views, strict=True), bucket.is_last())

    def back(done: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        buffer.copy_(done.value())
        return buffer

    return sent.future.then(back)


def _host_copy(buffer: torch.Tensor) -> torch.Tensor:
    """Of a tensor on another device, when it is complete."""
    host = _pinned(buffer.shape, buffer.dtype)
    host.copy_(buffer)
    return host


def _pinned(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Memory that a GPU reaches by itself."""
    return torch.empty(shape, dtype=dtype, pin_memory=True)
