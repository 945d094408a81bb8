# SPDX-License-Identifier: Apache-2.0
"""Run by torchrun: torch.distributed over coset against gloo, the same calls on both. Not collected by pytest."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

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
    raises(coset.UnsupportedError, lambda: dist.recv(torch.zeros(1)), "pass src")


def case_subgroups() -> None:
    group = dist.new_group([0, 1], backend="coset")
    if RANK < 2:
        x = torch.full((5,), float(RANK + 1))
        dist.all_reduce(x, group=group)
        assert x.tolist() == [3.0] * 5
        dist.barrier(group=group)


def case_errors() -> None:
    raises(coset.UnsupportedError, lambda: dist.all_reduce(torch.eye(3).to_sparse()), "sparse")
    group = dist.new_group(backend="coset")
    raises(coset.MismatchError, lambda: dist.all_reduce(torch.zeros(5 + RANK), group=group))
    raises(coset.MismatchError, lambda: dist.barrier(group=group))


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
    chosen = sys.argv[1:]  # words in the names of cases; all without
    for name, case in [(n, c) for n, c in globals().items() if n.startswith("case_")]:
        if chosen and not any(word in name for word in chosen):
            continue
        try:
            case()
        except BaseException as error:
            print(f"{name} failed on rank {RANK}: {error!r}", file=sys.stderr, flush=True)
            raise
        dist.barrier()
        if RANK == 0:
            print(name, "passed", flush=True)
    dist.destroy_process_group()
