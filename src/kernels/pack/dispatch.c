/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/pack/pack.h"

const cst_pack_kernels *cst_pack_kernels_for(int cpu_level)
{
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return &cst_pack_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return &cst_pack_avx2;
#endif
    (void)cpu_level;
    return &cst_pack_scalar;
}
