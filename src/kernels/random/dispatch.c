/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/random/random.h"

const cst_random_kernels *cst_random_kernels_for(int cpu_level)
{
    (void)cpu_level;
    return &cst_random_scalar;
}
