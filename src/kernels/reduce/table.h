/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction kernels of each CPU level; only reduce.c calls them. Every level has them all. */
#ifndef CST_KERNELS_REDUCE_TABLE_H
#define CST_KERNELS_REDUCE_TABLE_H
#include "kernels/simd/pass.h"

#include <coset.h>

typedef struct {
    cst_pass_fn *kernel[COSET_DTYPE_COUNT][COSET_OP_COUNT];
} cst_reduce_table;

extern const cst_reduce_table cst_reduce_scalar, cst_reduce_avx2, cst_reduce_avx512, cst_reduce_neon;
#endif
