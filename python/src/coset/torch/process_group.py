# SPDX-License-Identifier: Apache-2.0
"""init_process_group("coset"): torch.distributed on CPU tensors over coset's transports.

Ranks meet through the c10d Store that init_process_group makes. Whatever the tensors' shape, the operations below see
flat memory; contiguous tensors are not copied.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..comm import Comm, Options
from ..errors import ArgumentError, Error, UnsupportedError
from ._bytes import direct, flat, raw, same_sizes, spread, write_back
from ._lane import Lane, Work
from ._mail import Mail
from ._reduce import in_rank_order, native
from ._store import store_allgather


_LATEST = 86400.0  # the library's limit; some give years, for ever


def _only(tensors: Sequence[Any]) -> Any:
    if len(tensors) != 1:
        raise ArgumentError(f"{len(tensors)} tensors: expected one for this process")
    return tensors[0]


def _asynchronous(opts: Any) -> bool:
    """DDP, which calls from C++, leaves the default: asynchronous."""
    return bool(getattr(opts, "asyncOp", True))


def _tell(comm: Comm, error: BaseException) -> None:
    """An operation failed here: the other ranks must not wait for it. Of its own errors the library has told them."""
    if not isinstance(error, Error):
        comm.abort(f"rank {comm.rank} failed: {type(error).__name__}: {error}")


class ProcessGroup(dist.ProcessGroup):
    """A process group of its own; see the head of the file. Users call torch.distributed."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store = store
        self._name = self._description = ""
        self._comm = Comm.from_callback(rank, size, store_allgather(store, rank, size),
                                        Options(late=min(max(timeout.total_seconds(), 0.001), _LATEST)))
        self._lane = Lane(partial(_tell, self._comm))
        self._mail = Mail(self._comm)
        self._second: Comm | None = None

    # -- what torch asks about it --------------------------------------------------------------------------------

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "coset"

    def _get_backend_name(self) -> str:
        return "coset"

    # torch gives every group a name, but keeps it in backends written in C++.

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    @property
    def group_desc(self) -> str:
        return self._description

    def get_group_store(self) -> dist.Store:
        return self._store

    @property
    def comm(self) -> Comm:
        """The communicator below."""
        return self._comm

    def abort(self) -> None:
        self._comm.abort("the process group was aborted")

    def shutdown(self) -> None:
        self._lane.close()
        self._mail.close()
        if self._second is not None:
            self._second.destroy()
        self._comm.destroy()

    def _submit(self, body: Callable[[], object], result: list[Tensor], opts: Any) -> Work:
        return self._lane.submit(body, result, _asynchronous(opts))

    def _pairwise(self) -> Comm:
        """For messages inside collectives, apart from the user's. Only called inside collectives, so on all ranks."""
        if self._second is None:
            self._second = self._comm.split(0, self._comm.rank)
        assert self._second is not None
        return self._second

    # -- reductions ----------------------------------------------------------------------------------------------

    def _reduce_flat(self, tensor: Tensor, op: Any) -> None:
        """tensor = op over all ranks; from direct() or flat()."""
        known = native(op, tensor)
        if known is not None:
            self._comm.allreduce(known[0], op=known[1])
            return
        tensor = flat(tensor)
        mine = raw(tensor)
        parts = self._comm.allgather(mine, torch.empty(self._comm.size * mine.numel(), dtype=torch.uint8))
        tensor.copy_(in_rank_order(op, parts.view(tensor.dtype).view(self._comm.size, -1)))

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Work:
        opts = dist.AllreduceOptions() if opts is None else opts
        op = opts.reduceOp
        parts = [direct(t) for t in tensors]

        def body() -> None:
            for part, tensor in zip(parts, tensors, strict=True):
                self._reduce_flat(part, op)
                if part is not tensor:
                    write_back(part, tensor)

        return self._submit(body, tensors, opts)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        tensor = _only(tensors)
        part = flat(tensor)

        def body() -> None:
            work = part if self.rank() == opts.rootRank else part.clone()
            known = native(opts.reduceOp, work)
            if known is None:
                self._reduce_flat(work, opts.reduceOp)
            else:
                self._comm.reduce(known[0], op=known[1], root=opts.rootRank)
            if self.rank() == opts.rootRank:
                write_back(part, tensor)

        return self._submit(body, tensors, opts)

    def _scatter_reduced(self, output: Tensor, data: Tensor, op: Any) -> None:
        """output (flat) = this rank's part of the reduced data (flat)."""
        known = native(op, data)
        if known is None:
            whole = data.clone()
            self._reduce_flat(whole, op)
            output.copy_(whole.view(self._comm.size, -1)[self.rank()])
            return
        target = native(op, output)
        assert target is not None
        self._comm.reduce_scatter(known[0], target[0], op=known[1])

    def reduce_scatter_single(self, output: Tensor, data: Tensor, opts: Any = None) -> Work:
        opts = dist.ReduceScatterOptions() if opts is None else opts
        out, part = flat(output), flat(data)

        def body() -> None:
            self._scatter_reduced(out, part, opts.reduceOp)
            write_back(out, output)

        return self._submit(body, [output], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Work:
        opts = dist.ReduceScatterOptions() if opts is None else opts
        output, parts = _only(outputs), _only(inputs)
        if len(parts) != self._comm.size or parts[self.rank()].numel() != output.numel():
            raise ArgumentError("reduce_scatter: expected a tensor for each rank, and an output of the size of one's own")
        out = flat(output)

        def body() -> None:
            data = torch.cat([flat(p) for p in parts])
            if same_sizes(parts):
                self._scatter_reduced(out, data, opts.reduceOp)
            else:
                self._reduce_flat(data, opts.reduceOp)
                out.copy_(torch.split(data, [p.numel() for p in parts])[self.rank()])
            write_back(out, output)

        return self._submit(body, outputs, opts)

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        opts = dist.ReduceScatterOptions() if opts is None else opts

        def body() -> None:
            for output, data in zip(outputs, inputs, strict=True):
                out = flat(output)
                self._scatter_reduced(out, flat(data), opts.reduceOp)
                write_back(out, output)

        return self._submit(body, outputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # -- movement of data ----------------------------------------------------------------------------------------

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        parts = [raw(t) for t in tensors]

        def body() -> None:
            for part, tensor in zip(parts, tensors, strict=True):
                self._comm.broadcast(part, opts.rootRank)
                write_back(part, tensor)

        return self._submit(body, tensors, opts)

    def all_gather_single(self, output: Tensor, data: Tensor, opts: Any = None) -> Work:
        return self.all_gather_single_coalesced([output], [data], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        pairs = [(raw(o), raw(i), o) for o, i in zip(outputs, inputs, strict=True)]

        def body() -> None:
            for out, mine, output in pairs:
                self._comm.allgather(mine, out)
                write_back(out, output)

        return self._submit(body, outputs, opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work:
        return self._gather_lists([_only(outputs)], [_only(inputs)], _only(outputs), opts)

    def allgather_coalesced(self, output_lists: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work:
        """output_lists[rank][i] = inputs[i] of that rank."""
        by_input = [list(column) for column in zip(*output_lists, strict=True)]
        return self._gather_lists(by_input, inputs, [t for row in output_lists for t in row], opts)

    def _gather_lists(self, outputs: list[list[Tensor]], inputs: list[Tensor], result: list[Tensor], opts: Any) -> Work:
        def body() -> None:
            for targets, mine in zip(outputs, inputs, strict=True):
                data = raw(mine)
                if not same_sizes(targets):
                    self._exchange(dict.fromkeys(range(self._comm.size), data), dict(enumerate(targets)))
                    continue
                whole = torch.empty(self._comm.size * data.numel(), dtype=torch.uint8)
                spread(self._comm.allgather(data, whole), targets)

        return self._submit(body, result, opts)

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> Work:
        mine = raw(_only(inputs))
        targets = _only(outputs) if self.rank() == opts.rootRank else []

        def body() -> None:
            self._exchange({opts.rootRank: mine}, dict(enumerate(targets)))

        return self._submit(body, targets, opts)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        output = _only(outputs)
        sources = {r: raw(t) for r, t in enumerate(_only(inputs))} if self.rank() == opts.rootRank else {}
        return self._submit(lambda: self._exchange(sources, {opts.rootRank: output}), outputs, opts)

    def alltoall_base(self, output: Tensor, data: Tensor, output_splits: list[int], input_splits: list[int],
                      opts: Any = None) -> Work:
        if not output_splits and not input_splits:
            out, part = raw(output), raw(data)

            def body() -> None:
                self._comm.alltoall(part, out)
                write_back(out, output)

            return self._submit(body, [output], opts)
        sources = self._split(data, input_splits)
        targets = self._split(output, output_splits)
        if any(not t.is_contiguous() for t in (data, output)):
            raise ArgumentError("all_to_all_single with split sizes: the tensors must be contiguous")
        return self._submit(lambda: self._exchange({r: raw(t) for r, t in enumerate(sources)}, dict(enumerate(targets))),
                            [output], opts)

    all_to_all_single = alltoall_base

    def _split(self, tensor: Tensor, sizes: list[int]) -> list[Tensor]:
        """The rows for or from each rank."""
        if not sizes and tensor.shape[0] % self._comm.size:
            raise ArgumentError(f"{tensor.shape[0]} rows do not divide among {self._comm.size} ranks")
        sizes = sizes or [tensor.shape[0] // self._comm.size] * self._comm.size
        if len(sizes) != self._comm.size or sum(sizes) != tensor.shape[0]:
            raise ArgumentError(f"split sizes {sizes} do not fit {tensor.shape[0]} rows and {self._comm.size} ranks")
        return list(torch.split(tensor.detach(), sizes))

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        if len(outputs) != self._comm.size or len(inputs) != self._comm.size:
            raise ArgumentError(f"all_to_all: expected {self._comm.size} tensors each way")
        return self._submit(lambda: self._exchange({r: raw(t) for r, t in enumerate(inputs)}, dict(enumerate(outputs))),
                            outputs, opts)

    def _exchange(self, sources: dict[int, Tensor], targets: dict[int, Tensor]) -> None:
        """Sends bytes to some ranks and receives from some; both sides know the sizes."""
        rank, comm = self.rank(), self._pairwise()
        self._comm.barrier()  # where a rank makes another collective, messages would wait for it until the timeout
        incoming = {peer: raw(t) for peer, t in targets.items()}
        requests = [comm.irecv(data, peer) for peer, data in incoming.items() if peer != rank and data.numel()]
        requests += [comm.isend(data, peer) for peer, data in sources.items() if peer != rank and data.numel()]
        if rank in incoming and rank in sources:
            incoming[rank].copy_(sources[rank])
        for request in requests:
            request.wait()
        for peer, data in incoming.items():
            write_back(data, targets[peer])

    # -- the rest ------------------------------------------------------------------------------------------------

    def send(self, tensors: list[Tensor], dst: int, tag: int = 0) -> Work:
        return self._mail.send(raw(_only(tensors)), dst, tag, tensors)

    def recv(self, tensors: list[Tensor], src: int, tag: int = 0) -> Work:
        tensor = _only(tensors)
        if not tensor.is_contiguous() or tensor.is_neg():
            raise ArgumentError("recv: the tensor must be contiguous, and no view that negates other memory")
        work = self._mail.receive(raw(tensor), src, tag, tensors)
        work.source = src
        return work

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        if self.size() != 2:
            raise UnsupportedError("recv without a source between more than two ranks: pass src")
        return self.recv(tensors, 1 - self.rank(), tag)

    def barrier(self, opts: Any = None) -> Work:
        return self._submit(self._comm.barrier, [], opts)


def create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    """What torch.distributed calls to make a group."""
    return ProcessGroup(store, rank, size, timeout)


def register() -> None:
    """Makes "coset" a backend of torch.distributed; importing coset.torch does it."""
    if not hasattr(dist.Backend, "COSET"):
        dist.Backend.register_backend("coset", create, devices=["cpu"])
