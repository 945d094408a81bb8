# SPDX-License-Identifier: Apache-2.0
"""The package as others meet it: types, metadata, `pip install ./python` in a clone on a machine that has nothing."""
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coset

PYTHON = Path(__file__).parents[1]
# Writes nothing but what it prints: works in the fresh environment, where pytest is not.
USE = """
import numpy as np, coset
a = [np.linspace(0, 1, 5000) + k for k in range(3)]
print(coset.__version__, float(abs(coset.mean(a) - (a[0] + 1)).max()), sorted(coset.report())[0])
"""


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=800)


def test_the_types_are_consistent():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = run(sys.executable, "-m", "mypy", cwd=PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_metadata():
    facts = importlib.metadata.metadata("coset")
    assert facts["Requires-Python"] == ">=3.10" and facts["Version"] == coset.__version__
    assert (Path(coset.__file__).parent / "py.typed").exists()
    assert set(coset.__all__) <= set(dir(coset))


def test_pip_installs_it_from_a_clone(tmp_path):
    """In an environment of its own, without anything of this one."""
    if not shutil.which("git") or run("git", "rev-parse", "HEAD", cwd=PYTHON).returncode:
        pytest.skip("not a git checkout")
    python = str(tmp_path / "venv" / "bin" / "python")
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    cloned = run("git", "clone", "-q", str(PYTHON.parent), "clone", cwd=tmp_path)
    assert cloned.returncode == 0, cloned.stderr
    if run(python, "-m", "pip", "install", "-q", "scikit-build-core", cwd=tmp_path).returncode:
        pytest.skip("pip finds no packages here")
    done = run(python, "-m", "pip", "install", "-q", "./clone/python", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    used = run(python, "-c", USE, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
    version, error, first = used.stdout.split()
    assert version == coset.__version__ and float(error) < 3 and first == "bits_per_coord_received"
