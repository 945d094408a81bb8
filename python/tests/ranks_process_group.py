# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun: torch.distributed over coset against gloo, the same calls on both. Not collected by pytest."""
from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from rank_cases import run_cases

import coset
import coset.torch

warnings.simplefilter("ignore", FutureWarning)  # the older of two names for an operation
torch.set_num_threads(1)
dist.init_process_group("coset", timeout=timedelta(seconds=60))
GLOO = dist.new_group(backend="gloo")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
NUMBERS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64]


def values(dtype: torch.dtype, *shape: int, salt: int = 0) -> torch.Tensor:
    """Small whole numbers, different on each rank: sums are exact in every dtype."""
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(count) * (RANK + 2) + salt) % 4).to(dtype).view(shape)


def both(call: Callable[[object], object]) -> None:
    """call(group) on coset and on gloo gives the same tensors."""
    ours, theirs = call(None), call(GLOO)
    ours = ours if isinstance(ours, list) else [ours]
    theirs = theirs if isinstance(theirs, list) else [theirs]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b), (a, b)


def raises(kind: type[BaseException], call: Callable[[], object], match: str = "") -> None:
    try:
        call()
    except kind as error:
        assert match in str(error), error
        return
    raise AssertionError(f"did not raise {kind.__name__}")


def case_all_reduce() -> None:
    for dtype in NUMBERS:
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
            for shape in ((1,), (3, 5), (100_003,)):
                def call(group: object) -> torch.Tensor:
                    x = values(dtype, *shape)
                    dist.all_reduce(x, op, group=group)
                    return x
                both(call)


def case_all_reduce_odd_kinds() -> None:
    x = values(torch.float32, 8) + RANK
    dist.all_reduce(x, dist.ReduceOp.AVG)
    want = sum(((torch.arange(8) * (r + 2)) % 4).float() + r for r in range(SIZE)) / SIZE
    assert torch.equal(x, want)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        def bits(group: object) -> torch.Tensor:
            y = values(torch.int32, 50)
            dist.all_reduce(y, op, group=group)
            return y
        both(bits)
    z = torch.complex(values(torch.float32, 4), values(torch.float32, 4, salt=1))
    parts = [torch.zeros_like(z) for _ in range(SIZE)]
    dist.all_gather(parts, z)
    dist.all_reduce(z)
    assert torch.equal(z, torch.stack(parts).sum(0))
    truth = torch.tensor([RANK == 0, True, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, True, False]
    short = torch.tensor([RANK, 5], dtype=torch.int16)
    dist.all_reduce(short)
    assert short.tolist() == [SIZE * (SIZE - 1) // 2, 5 * SIZE]
    strided = torch.zeros(6, 4)[:, 1]
    strided += RANK
    dist.all_reduce(strided)
    assert strided.tolist() == [SIZE * (SIZE - 1) / 2] * 6
    dist.all_reduce(torch.zeros(0))
    scalar = torch.tensor(float(RANK))
    dist.all_reduce(scalar)
    assert scalar.item() == SIZE * (SIZE - 1) / 2


def case_async() -> None:
    tensors = [torch.full((1000 * (i + 1),), float(RANK + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    futures = [w.get_future() for w in works]
    for i, (t, w, f) in enumerate(zip(tensors, works, futures, strict=True)):
        assert f.wait()[0] is not None and w.wait() and w.is_completed() and w.is_success()
        assert torch.equal(t, torch.full_like(t, SIZE * (SIZE - 1) / 2 + SIZE * i))


def case_a_callback_may_start_and_wait() -> None:
    def more(done: torch.futures.Future) -> torch.Tensor:
        x = done.value()[0].clone()
        dist.all_reduce(x, async_op=True).get_future().wait()
        return x
    first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(more)
    assert first.wait().tolist() == [float(SIZE * SIZE)] * 3


def case_reduce() -> None:
    for root in range(SIZE):
        def call(group: object) -> torch.Tensor:
            x = values(torch.float32, 77)
            dist.reduce(x, root, group=group)
            return x if root == RANK else torch.zeros(1)
        both(call)
    kept = values(torch.float32, 5)
    dist.reduce(kept, 0)
    assert RANK == 0 or torch.equal(kept, values(torch.float32, 5)), "a rank that is not the root keeps its tensor"


def case_broadcast() -> None:
    for dtype in (*NUMBERS, torch.bool, torch.complex64):
        x = values(dtype, 3, 9)
        dist.broadcast(x, SIZE - 1)
        want = ((torch.arange(27) * (SIZE + 1)) % 4).to(dtype).view(3, 9)
        assert torch.equal(x, want)


def case_gather_and_scatter() -> None:
    for root in range(SIZE):
        def gather(group: object) -> list[torch.Tensor]:
            out = [torch.zeros(2, 3) for _ in range(SIZE)] if root == RANK else None
            dist.gather(values(torch.float32, 2, 3), out, dst=root, group=group)
            return out or []
        both(gather)

        def scatter(group: object) -> torch.Tensor:
            out = torch.zeros(4, dtype=torch.int64)
            parts = [values(torch.int64, 4, salt=r) for r in range(SIZE)] if root == RANK else None
            dist.scatter(out, parts, src=root, group=group)
            return out
        both(scatter)


def case_all_gather() -> None:
    for dtype in NUMBERS:
        def lists(group: object) -> list[torch.Tensor]:
            out = [torch.zeros(3, 7, dtype=dtype) for _ in range(SIZE)]
            dist.all_gather(out, values(dtype, 3, 7), group=group)
            return out
        both(lists)

        def whole(group: object) -> torch.Tensor:
            out = torch.zeros(SIZE * 3, 7, dtype=dtype)
            dist.all_gather_into_tensor(out, values(dtype, 3, 7), group=group)
            return out
        both(whole)
    objects: list[object] = [None] * SIZE
    dist.all_gather_object(objects, {"rank": RANK, "long": "x" * RANK * 100})
    assert objects == [{"rank": r, "long": "x" * r * 100} for r in range(SIZE)]


def case_reduce_scatter() -> None:
    parts = [values(torch.float32, 11, salt=r) for r in range(SIZE)]
    want = torch.stack(parts)
    dist.all_reduce(want)
    out = torch.zeros(11)
    dist.reduce_scatter(out, parts)
    assert torch.equal(out, want[RANK])
    out.zero_()
    dist.reduce_scatter_tensor(out, torch.cat(parts))
    assert torch.equal(out, want[RANK])


def case_all_to_all() -> None:
    def even(group: object) -> torch.Tensor:
        out = torch.zeros(SIZE * 3, 2)
        dist.all_to_all_single(out, values(torch.float32, SIZE * 3, 2), group=group)
        return out
    both(even)

    def uneven(group: object) -> torch.Tensor:
        send = [(RANK + r) % 3 for r in range(SIZE)]
        receive = [(r + RANK) % 3 for r in range(SIZE)]
        out = torch.zeros(sum(receive), 4, dtype=torch.int32)
        dist.all_to_all_single(out, values(torch.int32, sum(send), 4), receive, send, group=group)
        return out
    both(uneven)
    out = [torch.zeros(r + RANK + 1) for r in range(SIZE)]
    dist.all_to_all(out, [torch.full((r + RANK + 1,), float(10 * RANK + r)) for r in range(SIZE)])
    for r, t in enumerate(out):
        assert torch.equal(t, torch.full((r + RANK + 1,), float(10 * r + RANK)))
    raises(coset.ArgumentError, lambda: dist.all_to_all_single(torch.zeros(5), torch.zeros(5), [1] * SIZE, [1] * SIZE),
           "split sizes")


def case_send_and_receive() -> None:
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    out = torch.zeros(4)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((4,), float(RANK)), right),
                                        dist.P2POp(dist.irecv, out, left)]):
        work.wait()
    assert torch.equal(out, torch.full((4,), float(left)))
    if RANK < 2:  # tags received in another order than sent
        peer = 1 - RANK
        mine = [torch.tensor([10 * RANK + t], dtype=torch.int64) for t in range(3)]
        got = [torch.zeros(1, dtype=torch.int64) for _ in range(3)]
        sends = [dist.isend(m, peer, tag=t) for t, m in enumerate(mine)]
        for t in (2, 0, 1):
            dist.recv(got[t], peer, tag=t)
        for work in sends:
            work.wait()
        assert [g.item() for g in got] == [10 * peer + t for t in range(3)]
    if SIZE > 2:
        raises(coset.UnsupportedError, lambda: dist.recv(torch.zeros(1)), "pass src")


def case_several_threads_send_and_receive() -> None:
    def messages(tag: int) -> None:
        try:
            for i in range(100):
                message = torch.full((10 + 3 * tag,), float(1000 * tag + i))
                if RANK == 0:
                    dist.send(message, 1, tag=tag)
                else:
                    got = torch.zeros_like(message)
                    dist.recv(got, 0, tag=tag)
                    assert torch.equal(got, message), f"{got[0]} instead of {message[0]}"
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    failed: list[BaseException] = []
    if RANK < 2:
        threads = [threading.Thread(target=messages, args=(tag,)) for tag in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed, failed


def case_a_message_is_asked_for_while_it_arrives() -> None:
    """After its header, which nobody had waited for, and before the rest."""
    group = dist.new_group(backend="coset")
    if RANK == 0:
        for tag in (1, 2):
            dist.send(torch.full((3,), float(tag)), 1, group=group, tag=tag)
    elif RANK == 1:
        mail, first, second, late = group._mail, torch.zeros(3), torch.zeros(3), []
        kept = mail._receive

        def receive(data: torch.Tensor, peer: int) -> torch.Tensor:
            if data.dtype == torch.uint8 and not late:
                late.append(dist.irecv(first, 0, group=group, tag=1))
            return kept(data, peer)

        mail._receive = receive
        works = [dist.irecv(second, 0, group=group, tag=2)]
        works[0].wait(timedelta(seconds=60))
        late[0].wait(timedelta(seconds=60))
        assert (first == 1).all() and (second == 2).all()
        del mail._receive
    dist.barrier()


def case_forked_processes_are_refused() -> None:
    """No thread of before runs there: an error, not a wait for ever."""
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(3), async_op=True).wait(timedelta(seconds=60))
        except coset.Error:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def case_subgroups() -> None:
    group = dist.new_group([0, 1], backend="coset")
    if RANK < 2:
        x = torch.full((5,), float(RANK + 1))
        dist.all_reduce(x, group=group)
        assert x.tolist() == [3.0] * 5
        dist.barrier(group=group)


def case_groups_overlap() -> None:
    """Every pair of ranks has a group; all are used at once, in an order that fits nobody."""
    pairs = [(a, b) for a in range(SIZE) for b in range(a + 1, SIZE)]
    groups = {pair: dist.new_group(list(pair), backend="coset") for pair in pairs}
    tensors = {pair: torch.full((1000,), 1.0 + RANK) for pair in pairs if RANK in pair}
    works = [dist.all_reduce(tensors[pair], group=groups[pair], async_op=True)
             for pair in (reversed(list(tensors)) if RANK % 2 else tensors)]
    dist.barrier()
    for work in works:
        work.wait()
    for (a, b), tensor in tensors.items():
        assert torch.equal(tensor, torch.full((1000,), 2.0 + a + b))
    for pair in tensors:
        dist.destroy_process_group(groups[pair])


def case_empty_tensors() -> None:
    """Nothing to move is still a call on all ranks."""
    empty, list_of = torch.zeros(0, 3), [torch.zeros(0, 3) for _ in range(SIZE)]
    dist.all_reduce(empty)
    dist.reduce(empty, 0)
    dist.broadcast(empty, SIZE - 1)
    dist.all_gather(list_of, empty)
    dist.all_gather_into_tensor(torch.zeros(0, 3), empty)
    dist.reduce_scatter(empty, list_of)
    dist.reduce_scatter_tensor(empty, torch.zeros(0, 3))
    dist.all_to_all_single(torch.zeros(0, 3), empty)
    dist.all_to_all_single(torch.zeros(0, 3), empty, [0] * SIZE, [0] * SIZE)
    dist.all_to_all(list_of, [torch.zeros(0, 3) for _ in range(SIZE)])
    dist.gather(empty, list_of if RANK == 0 else None, dst=0)
    dist.scatter(empty, list_of if RANK == 0 else None, src=0)
    if RANK == 0:
        dist.send(empty, 1, tag=7)
    elif RANK == 1:
        dist.recv(empty, 0, tag=7)
    assert empty.shape == (0, 3)


def case_strided_tensors() -> None:
    """Tensors that do not lie in memory in order: transposed, every other column. Their memory between is left alone."""
    def strided(fill: float) -> torch.Tensor:
        return torch.full((5, 8), fill)[:, ::2].t()

    total = SIZE * (SIZE - 1) / 2
    x = strided(float(RANK))
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((4, 5), total))
    x = strided(float(RANK))
    dist.broadcast(x, 1)
    assert torch.equal(x, torch.full((4, 5), 1.0))
    x = strided(float(RANK))
    dist.reduce(x, 1)
    assert torch.equal(x, torch.full((4, 5), total if RANK == 1 else float(RANK)))
    outs = [strided(-1.0) for _ in range(SIZE)]
    dist.all_gather(outs, strided(float(RANK)))
    assert all(torch.equal(t, torch.full((4, 5), float(r))) for r, t in enumerate(outs))
    dist.all_to_all(outs, [strided(float(10 * RANK + r)) for r in range(SIZE)])
    assert all(torch.equal(t, torch.full((4, 5), float(10 * r + RANK))) for r, t in enumerate(outs))
    x = strided(-1.0)
    dist.reduce_scatter(x, [strided(float(r)) for r in range(SIZE)])
    assert torch.equal(x, torch.full((4, 5), float(SIZE * RANK)))
    dist.scatter(x, [strided(float(r)) for r in range(SIZE)] if RANK == 0 else None, src=0)
    assert torch.equal(x, torch.full((4, 5), float(RANK)))
    dist.gather(strided(float(RANK)), outs if RANK == 0 else None, dst=0)
    assert RANK > 0 or all(torch.equal(t, torch.full((4, 5), float(r))) for r, t in enumerate(outs))
    whole = torch.full((5, 8), -1.0)
    whole[:, ::2] = RANK
    dist.all_reduce(whole[:, ::2])
    assert torch.equal(whole[:, 1::2], torch.full((5, 4), -1.0)) and (whole[:, ::2] == total).all()
    if RANK == 0:
        dist.send(strided(3.0), 1)
    elif RANK == 1:
        y = torch.zeros(4, 5)
        dist.recv(y, 0)
        assert torch.equal(y, torch.full((4, 5), 3.0))
        raises(coset.ArgumentError, lambda: dist.recv(strided(0.0), 0), "contiguous")


def case_views_that_negate() -> None:
    """Their memory holds something else than their elements. (Conjugated ones torch refuses itself.)"""
    z = torch.complex(torch.arange(4.0), torch.arange(4.0) + 1)

    def negated() -> torch.Tensor:
        view = z.clone().conj().imag
        assert view.is_neg()
        return view

    dist.all_reduce(total := negated())
    assert torch.equal(total, SIZE * -z.imag)
    parts = [negated() for _ in range(SIZE)]
    dist.all_gather(parts, negated() + RANK)
    assert all(torch.equal(part, r - z.imag) for r, part in enumerate(parts))
    dist.all_gather_into_tensor(outs := torch.zeros(SIZE, 4), negated())
    assert torch.equal(outs, (-z.imag).expand(SIZE, 4))
    dist.broadcast(taken := (negated() if RANK == 0 else torch.zeros(4)), 0)
    assert torch.equal(taken, -z.imag)
    if RANK == 1:
        dist.send(negated(), 0)
    elif RANK == 0:
        dist.recv(got := torch.zeros(4), 1)
        assert torch.equal(got, -z.imag)
        raises(coset.ArgumentError, lambda: dist.recv(negated(), 1), "negate")


def case_uneven_lists() -> None:
    outs = [torch.zeros(r + 1, 2) for r in range(SIZE)]
    dist.all_gather(outs, torch.full((RANK + 1, 2), float(RANK)))
    assert all(torch.equal(t, torch.full((r + 1, 2), float(r))) for r, t in enumerate(outs))
    mine = torch.zeros(RANK + 1)
    dist.reduce_scatter(mine, [torch.full((r + 1,), float(RANK + r)) for r in range(SIZE)])
    assert torch.equal(mine, torch.full((RANK + 1,), float(SIZE * (SIZE - 1) / 2 + SIZE * RANK)))
    raises(coset.ArgumentError, lambda: dist.reduce_scatter(torch.zeros(99), [torch.zeros(1)] * SIZE), "one's own")


def case_everything_asynchronous() -> None:
    """All started before one is waited for, the last one first; each future carries the operation's tensors."""
    x, parts = torch.full((SIZE, 3), float(RANK)), [torch.zeros(3) for _ in range(SIZE)]
    a, b, c, d, e, f, g = (x.clone() for _ in range(7))
    out, single, row = torch.zeros(SIZE * SIZE, 3), torch.zeros(1, 3), torch.zeros(3)
    works = [
        dist.all_reduce(a, async_op=True), dist.reduce(b, 0, async_op=True), dist.broadcast(c, 1, async_op=True),
        dist.all_gather(parts, row + RANK, async_op=True), dist.all_gather_into_tensor(out, d, async_op=True),
        dist.reduce_scatter_tensor(single, e, async_op=True), dist.all_to_all_single(f, g, async_op=True),
        dist.scatter(row, list(x.unbind()) if RANK == 0 else None, src=0, async_op=True), dist.barrier(async_op=True),
    ]
    futures = [work.get_future() for work in works]
    assert futures[0].wait()[0].data_ptr() == a.data_ptr() and futures[4].wait()[0].data_ptr() == out.data_ptr()
    for work in reversed(works):
        work.wait()
        assert work.is_completed() and work.is_success()
    total = float(SIZE * (SIZE - 1) / 2)
    assert (a == total).all() and (c == 1).all() and (single == total).all() and (row == 0).all()
    assert (b == (total if RANK == 0 else RANK)).all()
    column = torch.arange(SIZE, dtype=torch.float32)
    assert torch.equal(torch.stack(parts)[:, 0], column) and torch.equal(f[:, 0], column)
    assert torch.equal(out[:, 0], column.repeat_interleave(SIZE))


def case_coalesced() -> None:
    tensors = [torch.full((n,), float(RANK)) for n in (1, 10, 1000)]
    dist.all_reduce_coalesced(tensors)
    assert all((t == SIZE * (SIZE - 1) / 2).all() for t in tensors)
    one = torch.ones(2)
    with dist._coalescing_manager():
        dist.all_reduce(one)
    assert (one == SIZE).all()


def case_timeouts() -> None:
    """One rank comes and the others do not."""
    dist.all_reduce(torch.ones(1), group=dist.new_group(backend="coset", timeout=timedelta(days=400)))
    group = dist.new_group(backend="coset", timeout=timedelta(seconds=4))  # creating it has no longer either
    if RANK == 0:
        start = time.monotonic()
        raises(coset.LateError, lambda: dist.barrier(group=group), "rank 1")
        assert 3.9 < time.monotonic() - start < 60
        slow = dist.irecv(torch.zeros(1), 1)
        raises(TimeoutError, lambda: slow.wait(timedelta(seconds=0.2)), "0.2 s")
    dist.barrier(GLOO)
    if RANK == 1:
        dist.send(torch.ones(1), 0)
    elif RANK == 0:
        slow.wait()


def case_destroyed_with_a_receive_under_way() -> None:
    group = dist.new_group(backend="coset")
    work = dist.irecv(torch.zeros(3), (RANK + 1) % SIZE, group=group)
    dist.barrier(group=group)
    dist.destroy_process_group(group)
    raises(coset.Error, work.wait)


def case_any_source_between_two() -> None:
    group = dist.new_group([0, 1], backend="coset")
    if RANK == 0:
        dist.send(torch.ones(2), 1, group=group, tag=3)
    elif RANK == 1:
        out = torch.zeros(2)
        assert dist.recv(out, group=group, tag=3) == 0 and (out == 1).all()


def case_errors() -> None:
    sparse = torch.eye(3).to_sparse()
    for call in (lambda: dist.all_reduce(sparse), lambda: dist.broadcast(sparse, 0), lambda: dist.reduce(sparse, 0),
                 lambda: dist.all_gather([torch.zeros(3, 3) for _ in range(SIZE)], sparse)):
        raises(coset.UnsupportedError, call, "sparse")
    raises(coset.UnsupportedError, lambda: dist.all_reduce(torch.zeros(3, device="meta")), "meta")
    raises(ValueError, dist.monitored_barrier, "GLOO")
    group = dist.new_group(backend="coset")
    raises(coset.MismatchError, lambda: dist.all_reduce(torch.zeros(5 + RANK), group=group))
    raises(coset.MismatchError, lambda: dist.barrier(group=group))
    group = dist.new_group(backend="coset")
    splits, both = [1] * SIZE if RANK == 0 else [], torch.zeros(2, SIZE)
    dist.all_to_all_single(both[0], both[1], [1] * SIZE, [1] * SIZE, group=group)
    raises(coset.MismatchError, lambda: dist.all_to_all_single(both[0], both[1], splits, splits, group=group))


def case_ddp_replicas_are_identical() -> None:
    torch.manual_seed(RANK)  # DDP broadcasts rank 0's weights
    model = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 10))
    replica = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    optimizer = torch.optim.Adam(replica.parameters(), lr=1e-3)
    for _ in range(200):
        x = torch.randn(16, 40)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(replica(x), x[:, :10]).backward()
        optimizer.step()
    mine = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    all_ranks = torch.zeros(SIZE, mine.numel())
    dist.all_gather_into_tensor(all_ranks, mine)
    assert all((row.view(torch.int32) == all_ranks[0].view(torch.int32)).all() for row in all_ranks)


if __name__ == "__main__":
    if RANK == 0:
        print("over", dist.group.WORLD.comm.transport, flush=True)
    run_cases(globals(), sys.argv[1:])
