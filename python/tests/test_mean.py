# SPDX-License-Identifier: Apache-2.0
"""coset.mean, Mean over communicators, properties by Hypothesis."""
import numpy as np
import pytest
from conftest import on_threads
from hypothesis import given, settings
from hypothesis import strategies as st

import coset
from coset._mean import _carry


def vectors(ranks: int, count: int, mean: float, seed: int = 0, dtype: str = "float32") -> list[np.ndarray]:
    """A common vector of `mean` spreads per coordinate, and a spread of 1 around it."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=count) * mean
    return [(common + rng.normal(size=count)).astype(dtype) for _ in range(ranks)]


def excess(estimate: np.ndarray, arrays: list[np.ndarray]) -> float:
    """Error over the sampling variance."""
    stacked = np.stack(arrays).astype(np.float64)
    return float(((estimate - stacked.mean(0)) ** 2).mean() / (stacked.var(0, ddof=1).mean() / len(arrays)))


@pytest.mark.parametrize("mean", [0, 10, 1000])
@pytest.mark.parametrize("ranks", [2, 5])
def test_the_budget_is_met_and_few_bits_are_sent(ranks, mean):
    arrays = vectors(ranks, 50_000, mean)
    group = coset.mean_ranks(ranks, error_budget=0.05)
    for _ in range(3):
        estimate = coset.mean(arrays, ranks=group)
    report = coset.report()
    assert excess(estimate, arrays) < 0.06
    assert report["identical_on_all_ranks"] and report["transfers"] == 2
    assert report["bits_per_coord_sent"] < 10, "plain would be 32 or more"
    assert report["ranks"] == ranks and report["coords"] == 50_000 and not report["plain"]


def test_a_larger_budget_takes_fewer_bits():
    arrays = vectors(3, 30_000, 1.0)
    bits = []
    for budget in (0.01, 0.1, 0.5):
        coset.mean(arrays, error_budget=budget)
        bits.append(coset.report()["bits_per_coord_sent"])
    assert bits[0] > bits[1] > bits[2]


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 5), count=st.integers(0, 9000), scale=st.floats(1e-6, 1e6), seed=st.integers(0, 2**32),
       dtype=st.sampled_from(["float32", "float64", "float16"]))
def test_any_shape_gives_the_same_bits_on_all_ranks(ranks, count, scale, seed, dtype):
    if dtype == "float16":
        scale = min(max(scale, 1e-2), 10.0)
    rng = np.random.default_rng(seed)
    arrays = [(rng.normal(size=count) * scale).astype(dtype) for _ in range(ranks)]
    before = [a.copy() for a in arrays]
    estimate = coset.mean(arrays, seed=seed)
    assert coset.report()["identical_on_all_ranks"]
    assert estimate.shape == (count,) and estimate.dtype == dtype and np.isfinite(estimate).all()
    assert all((a == b).all() for a, b in zip(arrays, before, strict=True)), "inputs are not written"


@settings(max_examples=15, deadline=None)
@given(where=st.lists(st.integers(0, 4999), min_size=1, max_size=5), value=st.sampled_from([np.nan, np.inf, -np.inf]),
       rank=st.integers(0, 2))
def test_what_is_not_finite_arrives_as_such(where, value, rank):
    arrays = vectors(3, 5000, 1.0)
    arrays[rank][where] = value
    estimate = coset.mean(arrays)
    assert not np.isfinite(estimate[where]).any()
    assert coset.report()["exact"] > 0 and coset.report()["identical_on_all_ranks"]


def test_the_estimate_is_unbiased():
    """Fresh dither in every call: the average error shrinks as the number of calls grows."""
    arrays = vectors(2, 20_000, 3.0)
    group = coset.mean_ranks(2, error_budget=0.2)
    exact = np.mean(np.stack(arrays).astype(np.float64), axis=0)
    errors = np.stack([coset.mean(arrays, ranks=group) - exact for _ in range(50)])
    ratio = (errors.mean(0) ** 2).mean() / (errors**2).mean()
    assert 0.6 / 50 < ratio < 1.4 / 50


def test_over_a_communicator():
    arrays = vectors(3, 10_000, 5.0)

    def body(comm):
        mean = coset.Mean(comm.rank, comm.size)
        out = np.empty(10_000, np.float32)
        for _ in range(2):
            report = mean.allreduce([(7, arrays[comm.rank], out)], comm)
        return out, report, mean.save()

    (first, report, saved), second, third = on_threads(3, body)
    assert (first == second[0]).all() and (first == third[0]).all()
    assert len(saved) == len(second[2]) == len(third[2])
    assert excess(first, arrays) < 0.06 and report["coords"] == 10_000


def test_saved_state_goes_on_where_it_was():
    arrays = vectors(2, 8192, 2.0)
    group = coset.mean_ranks(2)
    coset.mean(arrays, ranks=group)
    again = coset.mean_ranks(2)
    for mean in again:
        mean.load(group[0].save())
    assert (coset.mean(arrays, ranks=group) == coset.mean(arrays, ranks=again)).all()
    for broken in (b"", b"junk" * 20, group[0].save()[:-1], group[0].save() + b"x", "text", None):
        with pytest.raises(coset.Error):
            again[0].load(broken)


@pytest.mark.parametrize("call", [
    lambda: coset.mean([]),
    lambda: coset.mean([np.zeros(3), np.zeros(4)]),
    lambda: coset.mean([np.zeros(3), np.zeros(3, np.float32)]),
    lambda: coset.mean([np.zeros(3)], nosuch=1),
    lambda: coset.mean([np.zeros(3)], error_budget=-1),
    lambda: coset.mean([np.zeros(3)], codec="nosuch"),
    lambda: coset.mean([np.zeros(3)], objective="nosuch"),
    lambda: coset.mean([np.zeros(3, np.int32)]),
    lambda: coset.Mean(2, 2),
    lambda: coset.Mean(0, 1).begin([(1, np.zeros(3), np.zeros(4))]),
])
def test_wrong_input_is_refused(call):
    with pytest.raises(coset.ArgumentError):
        call()


@pytest.mark.parametrize("ranks", [3, 4, 5])
def test_in_place_is_the_same_where_blocks_have_to_wait(ranks):
    """Tensors that were zero become large: frames are too small, and blocks whose means did not fit are gathered again,
    from input that must not have been written over."""
    def means(in_place: bool) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        group = coset.mean_ranks(ranks, bits=12)
        sizes = {3: 2048, 2: 4096, 1: 4096}
        for step in (0, 1):
            def zero(tensor: int, rank: int, step: int = step) -> bool:
                return tensor == 2 if step == 0 else tensor < 3 and (tensor == 1) != (rank == 0)
            inputs = [{t: (rng.normal(size=n) * 1e-3 * (not zero(t, r))).astype("float32") for t, n in sizes.items()}
                      for r in range(ranks)]
            outputs = inputs if in_place else [{t: np.empty_like(a) for t, a in one.items()} for one in inputs]
            rounds = [mean.begin([(t, one[t], out[t]) for t in one])
                      for mean, one, out in zip(group, inputs, outputs, strict=True)]
            transfers = [r.next() for r in rounds]
            while transfers[0] is not None:
                _carry(transfers)
                transfers = [r.next() for r in rounds]
            repaired = [r.end()["repaired"] for r in rounds]
        assert repaired[0] > 0
        return [out[t] for out in outputs for t in (1, 2, 3)]

    for a, b in zip(means(False), means(True), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("ranks", [6, 10])
def test_tensors_that_were_zero_become_large(ranks):
    """No frame has room for what all ranks but one suddenly have: the owners' questions take more than one round."""
    rng = np.random.default_rng(0)
    group = coset.mean_ranks(ranks)
    coset.mean([np.zeros(4096, np.float32)] * ranks, ranks=group)
    arrays = [(rng.normal(size=4096) * (r > 0)).astype("float32") for r in range(ranks)]
    estimate = coset.mean(arrays, ranks=group)
    assert coset.report()["identical_on_all_ranks"] and excess(estimate, arrays) < 0.2
