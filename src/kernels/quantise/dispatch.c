/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/cpu.h"
#include "kernels/quantise/quantise.h"
#include "kernels/quantise/sum.h"

const cst_quantise_kernels *cst_quantise_kernels_for(cst_lattice_kind lattice, int cpu_level)
{
    const bool e8 = lattice == CST_LATTICE_E8;
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return e8 ? &cst_e8_avx512 : &cst_z_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return e8 ? &cst_e8_avx2 : &cst_z_avx2;
#endif
    (void)cpu_level;
    return e8 ? &cst_e8_scalar : &cst_z_scalar;
}

const cst_sum_kernels *cst_sum_kernels_for(cst_lattice_kind lattice, int cpu_level)
{
    const bool e8 = lattice == CST_LATTICE_E8;
#ifdef COSET_HAVE_X86
    if (cpu_level == CST_CPU_AVX512)
        return e8 ? &cst_sum_e8_avx512 : &cst_sum_z_avx512;
    if (cpu_level == CST_CPU_AVX2)
        return e8 ? &cst_sum_e8_avx2 : &cst_sum_z_avx2;
#endif
    (void)cpu_level;
    return e8 ? &cst_sum_e8_scalar : &cst_sum_z_scalar;
}
