/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/reduce.h"

#include "cpu/cpu.h"
#include "cpu/fpmode.h"
#include "kernels/reduce/table.h"

static const cst_reduce_table *table(void)
{
    switch (cst_cpu_level()) {
#ifdef COSET_HAVE_X86
    case CST_CPU_AVX512: return &cst_reduce_avx512;
    case CST_CPU_AVX2: return &cst_reduce_avx2;
#endif
#ifdef COSET_HAVE_NEON
    case CST_CPU_NEON: return &cst_reduce_neon;
#endif
    default: return &cst_reduce_scalar;
    }
}

void cst_reduce(coset_dtype dtype, coset_op op, void *const dst[], int ndst, const void *const src[], int nsrc,
                size_t count, unsigned divide, unsigned flags)
{
    if (!count)
        return;
    const cst_pass pass = {dst, src, ndst, nsrc, count, flags, cst_divisor_of(divide)};
    cst_fpmode saved = cst_fpmode_enter();
    table()->kernel[dtype][op](&pass);
    cst_fpmode_leave(saved);
}

const char *cst_reduce_variant(void)
{
    return cst_cpu_name(cst_cpu_level());
}
