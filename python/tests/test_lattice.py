# SPDX-License-Identifier: Apache-2.0
"""lattice_hook with the real DistributedDataParallel, under torchrun."""
import pytest
from torchrun import cases, passes

pytest.importorskip("torch")


@pytest.mark.parametrize("backend,ranks", [("gloo", 2), ("gloo", 4), ("coset", 2)])
def test_lattice_hook(backend, ranks):
    said = passes("ranks_lattice.py", ranks, backend)
    assert said.count("passed") == cases("ranks_lattice.py"), said
