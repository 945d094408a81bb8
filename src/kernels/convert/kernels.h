/* SPDX-License-Identifier: Apache-2.0 */
/* The vector kernels of one instruction set, whose shim the including file has included before. */
#ifndef CST_KERNELS_CONVERT_KERNELS_H
#define CST_KERNELS_CONVERT_KERNELS_H
#include "kernels/convert/table.h"
#include "kernels/simd/kinds.h"

static const pass_kind kind_widen_f16 = {IN_F32, FROM_F16_LANES, TO_F32_LANES};
static const pass_kind kind_widen_bf16 = {IN_F32, FROM_BF16_LANES, TO_F32_LANES};
static const pass_kind kind_narrow_f16 = {IN_F32, FROM_F32_LANES, TO_F16_LANES};
static const pass_kind kind_narrow_bf16 = {IN_F32, FROM_F32_LANES, TO_BF16_LANES};

static void widen_f16_pass(const cst_pass *pass)
{
    pass_run(pass, &kind_widen_f16, NULL);
}

static void widen_bf16_pass(const cst_pass *pass)
{
    pass_run(pass, &kind_widen_bf16, NULL);
}

static void narrow_f16_pass(const cst_pass *pass)
{
    pass_run(pass, &kind_narrow_f16, NULL);
}

static void narrow_bf16_pass(const cst_pass *pass)
{
    pass_run(pass, &kind_narrow_bf16, NULL);
}

#define CST_CONVERT_TABLE {widen_f16_pass, widen_bf16_pass, narrow_f16_pass, narrow_bf16_pass}
#endif
