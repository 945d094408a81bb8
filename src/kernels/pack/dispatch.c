/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pack/pack.h"

const cst_pack_kernels *cst_pack_kernels_for(int cpu_level)
{
    (void)cpu_level;
    return &cst_pack_scalar;
}
