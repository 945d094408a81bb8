# SPDX-License-Identifier: Apache-2.0
"""init_process_group("coset") with the real torch, under torchrun."""
import re
from pathlib import Path

import pytest
from torchrun import passes

pytest.importorskip("torch")
CASES = len(re.findall(r"^def case_", (Path(__file__).parent / "ranks_process_group.py").read_text(), re.MULTILINE))


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_same_results_as_gloo(ranks):
    said = passes("ranks_process_group.py", ranks)
    assert said.count("passed") == CASES, said
