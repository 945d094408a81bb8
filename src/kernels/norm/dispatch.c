/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/norm/norm.h"

const cst_norm_kernels *cst_norm_kernels_for(int cpu_level)
{
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return &cst_norm_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return &cst_norm_avx2;
#endif
    (void)cpu_level;
    return &cst_norm_scalar;
}
