# SPDX-License-Identifier: Apache-2.0
"""Runs a script on several ranks under torchrun, on this machine."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def cases(script: str) -> int:
    """How many case_ functions (rank_cases.py) the script has."""
    return len(re.findall(r"^def case_", (HERE / script).read_text(), re.MULTILINE))


def torchrun(script: str, ranks: int, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """--standalone takes a free port. The script lies beside this file or has an absolute path. Each rank's output goes to a file of
    its own, since lines that several processes write into one pipe may mix; stdout and stderr are these, in rank order, torchrun's
    own words last."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "COSET_LATE_MS": "60000"}
    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}",
                               f"--log-dir={logs}", "--redirects=3", str(HERE / script), *arguments],
                              env=env, timeout=timeout, capture_output=True, text=True, check=False)
        for stream in ("stdout", "stderr"):
            said = [file.read_text() for file in sorted(Path(logs).rglob(f"{stream}.log"))]
            setattr(done, stream, "".join([*said, getattr(done, stream)]))
    return done


def passes(script: str, ranks: int, *arguments: str, timeout: float = 600) -> str:
    """Standard output; fails the test with everything that was said otherwise."""
    done = torchrun(script, ranks, *arguments, timeout=timeout)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout
