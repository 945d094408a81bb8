# SPDX-License-Identifier: Apache-2.0
"""lattice_hook with the real DistributedDataParallel, under torchrun."""
import re
from pathlib import Path

import pytest
from torchrun import passes

pytest.importorskip("torch")

CASES = len(re.findall(r"^def case_", (Path(__file__).parent / "ranks_lattice.py").read_text(), re.MULTILINE))


@pytest.mark.parametrize("backend,ranks", [("gloo", 2), ("gloo", 4), ("coset", 2)])
def test_lattice_hook(backend, ranks):
    said = passes("ranks_lattice.py", ranks, backend)
    assert said.count("passed") == CASES, said
