# SPDX-License-Identifier: Apache-2.0
"""The process group "coset" and the hook between hosts: network namespaces, joined by links of 1 Gbit/s. Needs root."""
import re
import subprocess
import sys
from pathlib import Path

import pytest
from torchrun import cases

pytest.importorskip("torch")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "netns"))
import hosts  # noqa: E402

PORT = 29502
WHY_NOT = hosts.missing()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


def start(h: hosts.Hosts, script: str, *arguments: str) -> list[subprocess.Popen[str]]:
    """A rank on each host."""
    env = {"WORLD_SIZE": str(h.count), "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": str(PORT), "GLOO_SOCKET_IFNAME": "eth0",
           "OMP_NUM_THREADS": "1", "COSET_LATE_MS": "60000"}
    return [h.start(i, [sys.executable, str(HERE / script), *arguments], env | {"RANK": str(i)}) for i in range(h.count)]


def ended(ranks: list[subprocess.Popen[str]], seconds: float = 400) -> list[str]:
    """What each rank said."""
    return ["\n".join(p.communicate(timeout=seconds)) for p in ranks]


def test_every_operation_between_two_hosts():
    with hosts.Hosts(2, "1gbit") as h:
        ranks = start(h, "ranks_process_group.py")
        said = ended(ranks)
        assert [p.returncode for p in ranks] == [0, 0], said
    assert "over tcp" in said[0] and said[0].count("passed") == cases("ranks_process_group.py")


@pytest.mark.parametrize("backend", ["coset", "gloo"])
def test_training_between_three_hosts(backend):
    with hosts.Hosts(3, "1gbit") as h:
        ranks = start(h, "ranks_lattice.py", backend, "replicas", "averager_learns")
        said = ended(ranks)
        assert [p.returncode for p in ranks] == [0, 0, 0], said
    assert said[0].count("passed") == 2, said


def test_a_killed_rank_is_named_on_the_other_hosts():
    with hosts.Hosts(3, "1gbit") as h:
        said = ended(start(h, "ranks_killed.py", "coset", "hook"))
    for rank in (0, 2):
        told = re.search(rf"rank {rank} told .* after ([\d.]+) s.*rank 1", said[rank])
        assert told and float(told.group(1)) < 10, said
