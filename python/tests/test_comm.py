# SPDX-License-Identifier: Apache-2.0
"""Collectives on numpy arrays, against numpy."""
import gc
import multiprocessing
import threading
import weakref

import numpy as np
import pytest
from conftest import on_threads

import coset

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "uint32", "int64", "uint64"]


def values(rank: int, count: int, dtype: str) -> np.ndarray:
    return (np.arange(count) % 5 + rank).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_allreduce_is_the_sum(dtype, size):
    want = sum(values(r, 37, dtype) for r in range(size)).astype(dtype)
    for out in on_threads(size, lambda c: c.allreduce(values(c.rank, 37, dtype))):
        assert out.dtype == dtype and (out == want).all()


@pytest.mark.parametrize("op,numpy_op", [("min", np.minimum), ("max", np.maximum), ("prod", np.multiply)])
def test_ops(op, numpy_op):
    want = numpy_op.reduce([values(r, 11, "float64") for r in range(3)])
    for out in on_threads(3, lambda c: c.allreduce(values(c.rank, 11, "float64"), op=op)):
        assert (out == want).all()


def test_the_other_collectives():
    def body(c):
        mine = np.arange(12, dtype=np.float32) + 100 * c.rank
        gathered = c.allgather(mine)
        exchanged = c.alltoall(mine)
        scattered = c.reduce_scatter(mine)
        root = c.broadcast(mine.copy(), root=1)
        reduced = c.reduce(mine.copy(), root=2)
        c.barrier()
        return gathered, exchanged, scattered, root, reduced

    all_ranks = np.stack([np.arange(12, dtype=np.float32) + 100 * r for r in range(3)])
    for rank, (gathered, exchanged, scattered, root, reduced) in enumerate(on_threads(3, body)):
        assert (gathered == all_ranks).all()
        assert (exchanged.reshape(3, 4) == all_ranks.reshape(3, 3, 4)[:, rank]).all()
        assert (scattered == all_ranks.sum(0)[4 * rank:4 * rank + 4]).all()
        assert (root == all_ranks[1]).all()
        if rank == 2:
            assert (reduced == all_ranks.sum(0)).all()


def test_requests_overlap_and_call_back():
    def body(c):
        called = threading.Event()
        requests = [c.iallreduce(np.full(1000, i + c.rank, np.float32)) for i in range(4)]
        requests[0].on_complete(lambda status: called.set() if status == 0 else None)
        results = [r.wait(30) for r in requests]
        assert called.wait(10) and all(r.test() for r in requests)
        return results

    for results in on_threads(2, body):
        for i, out in enumerate(results):
            assert (out == 2 * i + 1).all()


def test_send_and_receive():
    def body(c):
        if c.rank == 0:
            c.send(np.arange(5.0), 1)
            return c.irecv(np.zeros(3, np.int32), 1).wait(30)
        got = c.recv(np.zeros(5), 0)
        c.send(np.array([7, 8, 9], np.int32), 0)
        return got

    first, second = on_threads(2, body)
    assert first.tolist() == [7, 8, 9] and second.tolist() == [0, 1, 2, 3, 4]


def test_shared_memory_needs_no_copy():
    def body(c):
        a = c.alloc((2, 50))
        assert a.shape == (2, 50) and not a.any() and a.ctypes.data % 64 == 0
        a[:] = c.rank + 1
        out = c.allreduce(a)
        assert out is a
        value = float(a[1, 49])
        c.free(a)
        return value

    assert on_threads(2, body) == [3.0, 3.0]


def test_split_makes_two_groups():
    def body(c):
        sub = c.split(c.rank % 2)
        return sub.size, float(sub.allreduce(np.array([float(c.rank)]))[0])

    assert on_threads(4, body) == [(2, 2.0), (2, 4.0), (2, 2.0), (2, 4.0)]


def test_other_threads_run_during_a_call():
    """The GIL is free while a rank waits: rank 1 of this process could not arrive otherwise."""
    assert on_threads(2, lambda c: c.barrier()) == [None, None]


@pytest.mark.parametrize("wrong", [
    lambda c: c.allreduce([1.0, 2.0]),
    lambda c: c.allreduce(np.zeros((4, 4))[:, ::2]),
    lambda c: c.allreduce(np.zeros(4), np.zeros(4, np.float32)),
    lambda c: c.allreduce(np.zeros(4), np.zeros(5)),
    lambda c: c.allreduce(np.zeros(4), op="mean"),
    lambda c: c.broadcast(np.frombuffer(b"12345678", np.float64)),
    lambda c: c.allreduce(np.zeros(4, ">f4")),
])
def test_wrong_arrays_are_refused_and_cost_nothing(wrong):
    def body(c):
        with pytest.raises(coset.ArgumentError):
            wrong(c)
        return float(c.allreduce(np.ones(1))[0])

    assert on_threads(1, body) == [1.0]


def test_unknown_dtypes_are_unsupported():
    comm, = coset.Comm.threads(1)
    with pytest.raises(coset.UnsupportedError, match="complex128"):
        comm.allreduce(np.zeros(2, np.complex128))


def test_a_difference_is_a_mismatch_on_every_rank():
    def body(c):
        with pytest.raises(coset.MismatchError) as caught:
            c.allreduce(np.zeros(10 + c.rank, np.float32))
        assert caught.value.status == 34 and "1" in str(caught.value)

    on_threads(2, body)


def test_abort_reaches_who_waits():
    def body(c):
        if c.rank == 1:
            c.abort("enough")
        with pytest.raises(coset.AbortedError, match="enough"):
            c.barrier()

    on_threads(2, body)


def test_destroyed():
    comm, = coset.Comm.threads(1)
    comm.destroy()
    comm.destroy()
    with pytest.raises(coset.ArgumentError, match="destroyed"):
        comm.barrier()
    assert "destroyed" in repr(comm)


@pytest.mark.parametrize("wait", [lambda c: c.recv(np.zeros(4), 1), lambda c: c.irecv(np.zeros(4), 1).wait()])
def test_destroyed_while_a_thread_waits_in_it(wait):
    first, second = coset.Comm.threads(2)
    raised = []

    def waits():
        try:
            wait(first)
        except coset.AbortedError as error:
            raised.append(str(error))

    thread = threading.Thread(target=waits)
    thread.start()
    while first._calls == 0:
        pass
    first.destroy()
    thread.join(30)
    assert len(raised) == 1 and "destroyed" in raised[0]
    second.destroy()


def test_a_request_that_outlives_its_communicator():
    first, second = coset.Comm.threads(2)
    request = first.irecv(np.zeros(4), 1)
    first.destroy()
    second.destroy()
    for use in (request.wait, request.test, lambda: request.on_complete(print)):
        with pytest.raises(coset.ArgumentError, match="destroyed"):
            use()


def test_options_that_mean_nothing():
    with pytest.raises(coset.ArgumentError, match="nosuch"):
        coset.Comm.threads(2, coset.Options(algorithm="nosuch"))
    with pytest.raises(coset.ArgumentError):
        coset.Comm.threads(0)
    with pytest.raises(coset.ArgumentError, match="128 bytes"):
        coset.Comm.from_id(b"short", 0, 1)


def test_callback_bootstrap_raises_what_it_raised():
    def broken(_data, _timeout):
        raise KeyError("no store")

    with pytest.raises(coset.Error) as caught:
        coset.Comm.from_callback(0, 2, broken)
    assert isinstance(caught.value.__cause__, KeyError)


def _process(path, rank, results):
    with coset.Comm.from_file(path, rank, 2) as comm:
        total = comm.allreduce(np.full(100_000, rank + 1.0, np.float32))
        results.put((rank, comm.transport, float(total.min()), float(total.max())))


def test_processes_meet_at_a_file(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    ranks = [spawn.Process(target=_process, args=(str(tmp_path / "meet"), r, results)) for r in range(2)]
    for p in ranks:
        p.start()
    got = sorted(results.get(timeout=60) for _ in ranks)
    for p in ranks:
        p.join(30)
    assert got == [(0, "shm", 3.0, 3.0), (1, "shm", 3.0, 3.0)]


def test_describe_knows_the_transports():
    facts = coset.describe()
    assert "shm" in facts["transport"] and "level" in facts["cpu"]


def test_arrays_of_dropped_requests_live_until_they_have_ended():
    def body(c):
        if c.rank == 1:
            c.barrier()
            c.send(np.arange(5.0), 0)
            c.send(np.arange(5.0), 0)
            c.ibarrier().wait(30)
            return True
        array = np.zeros(5)
        watched = weakref.ref(array)
        c.irecv(array, 1)
        del array
        gc.collect()
        assert watched() is not None
        c.barrier()
        c.recv(np.zeros(5), 1)
        assert watched().tolist() == [0, 1, 2, 3, 4]
        last = c.ibarrier()  # starting another collects those that have ended
        assert watched() is None
        last.wait(30)
        return True

    for _ in range(3):
        on_threads(2, body)
