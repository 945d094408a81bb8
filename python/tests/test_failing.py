# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail, leave or are killed in the middle of training: the others are told which one, and why, in seconds."""
import re

import pytest
from torchrun import cases, passes, torchrun

pytest.importorskip("torch")


@pytest.mark.parametrize("backend", ["gloo", "coset"])
def test_a_rank_that_fails_or_leaves(backend):
    said = passes("ranks_failing.py", 3, backend)
    assert said.count("passed") == cases("ranks_failing.py"), said


@pytest.mark.parametrize("how", [("gloo", "hook"), ("gloo", "hook", "exit"), ("coset",), ("coset", "hook", "exit")])
def test_a_rank_that_is_killed_or_exits(how):
    done = torchrun("ranks_killed.py", 3, *how)
    assert done.returncode != 0
    told = re.findall(r"rank (\d) told .* after ([\d.]+) s(.*)", done.stdout)
    assert sorted(rank for rank, _, _ in told) == ["0", "2"], done.stdout + done.stderr[-3000:]
    assert all(float(seconds) < 10 for _, seconds, _ in told), told
    assert all("rank 1" in text for _, _, text in told), told
