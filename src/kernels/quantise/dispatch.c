/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/quantise/quantise.h"
#include "kernels/quantise/sum.h"

const cst_quantise_kernels *cst_quantise_kernels_for(cst_lattice_kind lattice, int cpu_level)
{
    (void)cpu_level;
    return lattice == CST_LATTICE_E8 ? &cst_e8_scalar : &cst_z_scalar;
}

const cst_sum_kernels *cst_sum_kernels_for(cst_lattice_kind lattice, int cpu_level)
{
    (void)cpu_level;
    return lattice == CST_LATTICE_E8 ? &cst_sum_e8_scalar : &cst_sum_z_scalar;
}
