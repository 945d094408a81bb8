#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles the kernels for AArch64 and runs kernel tests under qemu-user.
#
#   neon_qemu.sh SOURCE_DIR BUILD_DIR TEST.c...
#
# Exit status 77 (skipped), after saying why, where the cross compiler, its C library or qemu is missing.
set -eu
source=$1
build=$2
shift 2

skip() { echo "skipped: $*"; exit 77; }
compiler=aarch64-linux-gnu-gcc
command -v "$compiler" >/dev/null 2>&1 || skip "no $compiler (Debian: gcc-aarch64-linux-gnu)"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip 'no qemu-aarch64 (Debian: qemu-user)'
mkdir -p "$build"
printf '#include <math.h>\nint main(int c, char **v) { (void)v; return (int)sqrt(c) - 1; }\n' >"$build/try.c"
"$compiler" -static "$build/try.c" -o "$build/try" -lm 2>/dev/null ||
  skip "$compiler cannot link a static program (Debian: libc6-dev-arm64-cross)"
"$qemu" "$build/try" || skip "$qemu does not run an AArch64 program here"

flags="-std=c17 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DCOSET_HAVE_NEON=1 -ffp-contract=off -fno-strict-aliasing
  -Wall -Wextra -Werror"
compile() {
  # shellcheck disable=SC2086 # a list of words
  "$compiler" $flags -I"$source/include" -I"$source/src" -I"$source/tests" "$@"
}

# The library from the bottom up to the kernels that have NEON files, without those for other processors.
rm -rf "$build/objects"
mkdir "$build/objects"
cd "$build/objects"
kernels=$source/src/kernels
find "$source/src/base" "$source/src/cpu" "$kernels/simd" "$kernels/reduce" "$kernels/convert" -name '*.c' \
  ! -name '*_avx2.c' ! -name '*_avx512.c' | while read -r file; do
  compile -c "$file" -o "$(echo "${file#"$source/"}" | tr / -).o"
done
for test in "$@"; do
  name=$(basename "$test" .c)
  compile -static "$test" ./*.o -lm -lpthread -o "../$name"
  echo "== $name"
  "$qemu" "../$name" --quick
done
