# SPDX-License-Identifier: Apache-2.0
"""init_process_group("coset") with the real torch, under torchrun."""
import re
from pathlib import Path

import pytest
from torchrun import passes, torchrun

pytest.importorskip("torch")
CASES = len(re.findall(r"^def case_", (Path(__file__).parent / "ranks_process_group.py").read_text(), re.MULTILINE))


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_same_results_as_gloo(ranks):
    said = passes("ranks_process_group.py", ranks)
    assert said.count("passed") == CASES, said


def test_a_killed_rank_is_named_by_the_others():
    done = torchrun("ranks_killed.py", 3, "coset", timeout=90)
    assert done.returncode != 0
    told = re.findall(r"rank (\d) told .* after ([\d.]+) s(.*)", done.stdout)
    assert sorted(rank for rank, _, _ in told) == ["0", "2"], done.stdout + done.stderr[-3000:]
    assert all(float(seconds) < 5 for _, seconds, _ in told), told
    assert all("1" in line for line in done.stdout.splitlines() if "told" in line)
