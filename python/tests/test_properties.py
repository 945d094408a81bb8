# SPDX-License-Identifier: Apache-2.0
"""Properties that hold for any input: of the collectives, of the memory of tensors, of averages."""
import random

import numpy as np
import pytest
from conftest import on_threads
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coset

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "uint32", "int64", "uint64"]


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 4), count=st.integers(0, 3000), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**32),
       op=st.sampled_from(["sum", "min", "max"]))
def test_a_collective_is_what_numpy_says(ranks, count, dtype, seed, op):
    """Small whole numbers: every order of the sum is exact."""
    arrays = np.random.default_rng(seed).integers(0, 30, (ranks, ranks * count)).astype(dtype)
    reduced = {"sum": arrays.sum(0).astype(dtype), "min": arrays.min(0), "max": arrays.max(0)}[op]

    def body(comm):
        mine = arrays[comm.rank].copy()
        return comm.allgather(mine), comm.alltoall(mine), comm.reduce_scatter(mine, op=op), comm.allreduce(mine, op=op)

    for rank, (gathered, exchanged, scattered, summed) in enumerate(on_threads(ranks, body)):
        part = slice(rank * count, (rank + 1) * count)
        assert (gathered == arrays).all()
        assert (exchanged == np.concatenate([a[part] for a in arrays])).all()
        assert (scattered == reduced[part]).all() and (summed == reduced).all()


@settings(max_examples=30, deadline=None)
@given(ranks=st.integers(2, 4), count=st.integers(1, 5000), seed=st.integers(0, 2**32), scale=st.floats(1e-3, 1e3),
       common=st.floats(0, 100))
def test_the_error_of_a_mean_is_within_what_the_ranks_differ_by(ranks, count, seed, scale, common):
    """Whatever the ranks have in common costs no accuracy. The last of three calls: the spread has been learnt by then."""
    rng = np.random.default_rng(seed)
    arrays = [(rng.normal(size=count) + common).astype("float32") * np.float32(scale) for _ in range(ranks)]
    group = coset.mean_ranks(ranks, error_budget=0.05, seed=seed)
    for _ in range(3):
        estimate = coset.mean(arrays, ranks=group)
    stacked = np.stack(arrays).astype("float64")
    spread2 = max(((stacked - stacked.mean(0)) ** 2).mean(), (1e-6 * scale * (1 + common)) ** 2)
    assert ((estimate - stacked.mean(0)) ** 2).mean() < spread2


@settings(max_examples=60, deadline=None)
@given(shape=st.lists(st.integers(0, 5), min_size=0, max_size=4), order=st.randoms(), step=st.integers(1, 3),
       dtype=st.sampled_from(["float32", "int64", "uint8", "bool", "complex64", "bfloat16"]))
@example(shape=[1], order=random.Random(0), step=2, dtype="float32")
def test_bytes_of_any_tensor_come_back(shape, order, step, dtype):
    """Packing a tensor of any strides and writing it into another changes that one only, to the same values."""
    torch = pytest.importorskip("torch")
    from coset.torch._bytes import flat, raw, spread, write_back

    axes = list(range(len(shape)))
    order.shuffle(axes)

    def strided(fill: int):
        whole = torch.full([n * step for n in shape], fill).to(getattr(torch, dtype))
        part = whole[tuple(slice(None, None, step) for _ in shape)].permute(axes) if shape else whole
        return whole, part

    source = torch.arange(strided(0)[1].numel()).remainder(120).to(getattr(torch, dtype)).view(strided(0)[1].shape)
    _, mine = strided(0)
    mine.copy_(source)
    assert raw(mine).numel() == mine.numel() * mine.element_size()
    for fill in (0, 1):
        whole, target = strided(fill)
        spread(raw(mine), [target])
        assert torch.equal(target, source)
        target.fill_(fill)
        assert torch.equal(whole, torch.full_like(whole, fill)), "memory between was written"
    part = flat(mine)
    part.fill_(1)
    write_back(part, mine)
    assert torch.equal(mine, torch.ones_like(source))
