/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion kernels of each CPU level; only convert.c calls them. */
#ifndef CST_KERNELS_CONVERT_TABLE_H
#define CST_KERNELS_CONVERT_TABLE_H
#include "kernels/simd/pass.h"

typedef struct {
    cst_pass_fn *widen_f16, *widen_bf16, *narrow_f16, *narrow_bf16;
} cst_convert_table;

extern const cst_convert_table cst_convert_scalar, cst_convert_avx2, cst_convert_avx512, cst_convert_neon;
#endif
