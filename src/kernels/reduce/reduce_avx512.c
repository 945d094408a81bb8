/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx512.h"

#include "kernels/reduce/kernels.h"

const cst_reduce_table cst_reduce_avx512 = CST_REDUCE_TABLE;
