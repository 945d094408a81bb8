/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/hadamard/hadamard.h"

const cst_hadamard_kernels *cst_hadamard_kernels_for(int cpu_level)
{
    (void)cpu_level;
    return &cst_hadamard_scalar;
}
