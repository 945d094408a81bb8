/* SPDX-License-Identifier: Apache-2.0 */
/* The vector kernels of one instruction set, whose shim the including file has included before. */
#ifndef CST_KERNELS_CONVERT_KERNELS_H
#define CST_KERNELS_CONVERT_KERNELS_H
#include "kernels/convert/table.h"
#include "kernels/simd/kinds.h"

static const pass_kind kind_widen_f16 = {VIA_F32, SOURCE_F16, TARGET_F32};
static const pass_kind kind_widen_bf16 = {VIA_F32, SOURCE_BF16, TARGET_F32};
static const pass_kind kind_narrow_f16 = {VIA_F32, SOURCE_F32, TARGET_F16};
static const pass_kind kind_narrow_bf16 = {VIA_F32, SOURCE_F32, TARGET_BF16};

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

#define CST_CONVERT_TABLE                                                                                              \
    {                                                                                                                  \
        widen_f16_pass, widen_bf16_pass, narrow_f16_pass, narrow_bf16_pass                                             \
    }
#endif
