# SPDX-License-Identifier: Apache-2.0
"""lattice_hook with the real DistributedDataParallel, under torchrun."""
import re
from pathlib import Path

import pytest
from torchrun import passes, torchrun

pytest.importorskip("torch")

CASES = len(re.findall(r"^def case_", (Path(__file__).parent / "ranks_lattice.py").read_text(), re.MULTILINE))


@pytest.mark.parametrize("backend,ranks", [("gloo", 2), ("gloo", 4), ("coset", 2)])
def test_lattice_hook(backend, ranks):
    said = passes("ranks_lattice.py", ranks, backend)
    assert said.count("passed") == CASES, said


def test_a_killed_rank_ends_the_others():
    done = torchrun("ranks_killed.py", 3, "gloo", "hook", timeout=90)
    told = re.findall(r"rank (\d) told .* after ([\d.]+) s", done.stdout)
    assert sorted(rank for rank, _ in told) == ["0", "2"], done.stdout + done.stderr[-3000:]
    assert all(float(seconds) < 10 for _, seconds in told), told
