# SPDX-License-Identifier: Apache-2.0
"""init_process_group("coset") with the real torch, under torchrun."""
import re

import pytest
from torchrun import cases, passes, torchrun

pytest.importorskip("torch")


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_same_results_as_gloo(ranks):
    said = passes("ranks_process_group.py", ranks)
    assert said.count("passed") == cases("ranks_process_group.py"), said


def test_the_cases_that_pytorch_has_for_gloo():
    """Most of those that are skipped need a GPU."""
    pytest.importorskip("expecttest")
    ranks = 3
    done = torchrun("ranks_torch_cases.py", ranks)
    ended = re.findall(r"\[(\d)\] (test_\w+) (passed|skipped|FAILED.*)", done.stdout)
    failed = [line for line in ended if line[2] not in ("passed", "skipped")]
    assert done.returncode == 0 and not failed, f"{failed}\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    passed = [name for _, name, result in ended if result == "passed"]
    assert len(passed) >= 90 * ranks, f"{len(passed)} passed"


def test_ended_and_begun_again():
    assert passes("ranks_again.py", 2).count("passed") == 2 * 3
