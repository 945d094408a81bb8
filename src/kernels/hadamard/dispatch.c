/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/hadamard/hadamard.h"

const cst_hadamard_kernels *cst_hadamard_kernels_for(int cpu_level)
{
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return &cst_hadamard_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return &cst_hadamard_avx2;
#endif
    (void)cpu_level;
    return &cst_hadamard_scalar;
}
