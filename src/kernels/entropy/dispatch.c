/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/entropy/entropy.h"

const cst_entropy_kernels *cst_entropy_kernels_for(int cpu_level)
{
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return &cst_entropy_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return &cst_entropy_avx2;
#endif
    (void)cpu_level;
    return &cst_entropy_scalar;
}
