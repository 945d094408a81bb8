# SPDX-License-Identifier: Apache-2.0
"""The examples do what the guide says."""
import re
from pathlib import Path

import pytest
from torchrun import passes

pytest.importorskip("torch")
EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


@pytest.mark.parametrize("ranks,arguments", [(2, []), (4, []), (2, ["--exact", "--backend", "coset"])])
def test_digits_are_learnt(ranks, arguments):
    said = passes(str(EXAMPLES / "digits.py"), ranks, *arguments)
    assert float(re.search(r"accuracy ([\d.]+)", said).group(1)) > 0.96, said
    assert "replicas identical" in said


def test_text_is_learnt_as_well_compressed():
    said = passes(str(EXAMPLES / "text.py"), 2, "--steps", "40")
    exact, compressed = (float(x) for x in re.search(r"exact ([\d.]+), compressed ([\d.]+)", said).groups())
    assert exact < 3.2 and compressed < exact + 0.1, said
