/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/convert/convert.h"

#include "cpu/cpu.h"
#include "cpu/fpmode.h"
#include "kernels/convert/table.h"

static const cst_convert_table *table(void)
{
    switch (cst_cpu_level()) {
#ifdef COSET_HAVE_X86
    case CST_CPU_AVX512: return &cst_convert_avx512;
    case CST_CPU_AVX2: return &cst_convert_avx2;
#endif
#ifdef COSET_HAVE_NEON
    case CST_CPU_NEON: return &cst_convert_neon;
#endif
    default: return &cst_convert_scalar;
    }
}

static void run(cst_pass_fn *kernel, void *dst, const void *src, size_t count, unsigned divide)
{
    if (!count)
        return;
    const cst_divisor by = cst_divisor_of(divide);
    const cst_pass pass = {&dst, &src, 1, 1, count, 0, divide > 1 ? &by : NULL};
    cst_fpmode saved = cst_fpmode_enter();
    kernel(&pass);
    cst_fpmode_leave(saved);
}

void cst_widen(coset_dtype half, float *dst, const void *src, size_t count)
{
    run(half == COSET_F16 ? table()->widen_f16 : table()->widen_bf16, dst, src, count, 1);
}

void cst_narrow(coset_dtype half, void *dst, const float *src, size_t count, unsigned divide)
{
    run(half == COSET_F16 ? table()->narrow_f16 : table()->narrow_bf16, dst, src, count, divide);
}
