#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./dev python: build/venv with the package and what its tests need. Run again after a change of the C or Python sources.
set -eu
cd "$(dirname "$0")/.."
venv=build/venv
say() { printf '%s\n' "$*" >&2; }

[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
quiet() { said=$(pip "$@" 2>&1) || { say "$said"; return 1; }; }

"$venv/bin/python" -c 'import scikit_build_core, cffi, numpy, pytest, hypothesis, expecttest, mypy' 2>/dev/null ||
  quiet install numpy pytest hypothesis expecttest mypy scikit-build-core cffi
if ! "$venv/bin/python" -c 'import torch; assert torch.__version__.startswith("2.13.0")' 2>/dev/null; then
  say 'installing PyTorch into build/venv (with CUDA some gigabytes; PIP_EXTRA_INDEX_URL may name an index without)'
  quiet install torch==2.13.0 || say 'torch 2.13.0 cannot be had here: the tests of coset.torch will be skipped'
fi
# Without isolation, so that the compiled objects are used again.
quiet install --no-build-isolation --no-deps --force-reinstall ./python
"$venv/bin/python" -c 'import coset; print("coset", coset.__version__, "in build/venv")'
