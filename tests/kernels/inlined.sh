#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The loops of src/kernels/simd/loops.h are written with function pointers that the compiler must turn into inline
# instructions. A call through a pointer in one of these objects means that it did not, and a kernel several times slower.
#
#   inlined.sh OBJECT...
set -eu
command -v objdump >/dev/null 2>&1 || { echo 'skipped: no objdump'; exit 77; }
[ $# -gt 0 ] || { echo 'no objects'; exit 1; }
status=0
for object in "$@"; do
  calls=$(objdump -d "$object" | grep -c 'call.*\*' || true)
  if [ "$calls" -ne 0 ]; then
    echo "$object: $calls calls through pointers"
    status=1
  fi
done
exit $status
