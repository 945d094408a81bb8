/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_neon.h"

#include "kernels/reduce/kernels.h"

const cst_reduce_table cst_reduce_neon = CST_REDUCE_TABLE;
