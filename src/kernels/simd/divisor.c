/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/pass.h"

cst_divisor cst_divisor_of(unsigned n)
{
    cst_divisor by = {.how = CST_DIVIDE_NONE, .n = n};
    if (n <= 1)
        return by;
    by.how = n & (n - 1) ? CST_DIVIDE_ANY : CST_DIVIDE_SHIFT;
    by.shift = 31 - __builtin_clz(n);
    by.f32 = (float)n;
    by.f64 = (double)n;
    by.f64_inverse = 1.0 / by.f64;
    by.f32_inverse = (float)by.f64_inverse;
    /* Rounded up; the excess is below 255 / 65536 < 1 / n, too little to reach the next integer. */
    by.reciprocal8 = n <= 255 ? (uint16_t)(65536 / n + 1) : 0;
    return by;
}
