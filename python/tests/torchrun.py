# SPDX-License-Identifier: Apache-2.0
"""Runs a script on several ranks under torchrun, on this machine."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def torchrun(script: str, ranks: int, *arguments: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    """--standalone takes a free port. The script lies beside this file or has an absolute path."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "COSET_LATE_MS": "60000"}
    return subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}",
                           str(Path(__file__).parent / script), *arguments],
                          env=env, timeout=timeout, capture_output=True, text=True, check=False)


def passes(script: str, ranks: int, *arguments: str, timeout: float = 200) -> str:
    """Standard output; fails the test with everything that was said otherwise."""
    done = torchrun(script, ranks, *arguments, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout
