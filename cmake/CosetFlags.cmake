# SPDX-License-Identifier: Apache-2.0
# Compiler flags that every target of the project shares. Targets get them through coset_flags.
add_library(coset_flags INTERFACE)
target_compile_features(coset_flags INTERFACE c_std_17)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS OFF)
target_compile_definitions(coset_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(coset_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wwrite-strings -Werror
  # Bit-identical kernels: no a*b+c may be fused unless the source says fma (DESIGN of numbers: docs/kernels.md).
  -ffp-contract=off -fno-strict-aliasing)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  # These follow the optimiser's view of the flow and are wrong now and then, differently in each version of gcc: they
  # stay warnings, so that a new compiler does not break a build.
  foreach(doubt maybe-uninitialized stringop-overflow stringop-overread array-bounds alloc-size-larger-than= restrict
      free-nonheap-object format-truncation)
    target_compile_options(coset_flags INTERFACE -Wno-error=${doubt})
  endforeach()
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
if(COSET_SANITIZE)
  target_compile_options(coset_flags INTERFACE -fsanitize=${COSET_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(coset_flags INTERFACE -fsanitize=${COSET_SANITIZE})
endif()
if(COSET_FUZZ)
  target_compile_options(coset_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
find_package(Threads REQUIRED)
