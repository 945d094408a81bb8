#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh FILE: one test file of python/tests; exit status 77 (skipped) without build/venv.
cd "$(dirname "$0")/../../python" || exit 1
python=../build/venv/bin/python
if ! "$python" -c 'import coset, pytest' 2>/dev/null; then
  echo 'skipped: no Python package in build/venv; ./dev python makes it'
  exit 77
fi
"$python" -m pytest "tests/$1"
status=$?
# 5: no test was collected, since what the file needs is not installed (the line above says what)
[ $status -ne 5 ] || exit 77
exit $status
