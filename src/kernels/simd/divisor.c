/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/pass.h"

cst_divisor cst_divisor_of(unsigned n)
{
    return (cst_divisor){
        .power_of_two = (n & (n - 1)) == 0,
        .n = n,
        .shift = 31 - __builtin_clz(n),
        .f32 = (float)n,
        .f32_inverse = (float)(1.0 / n), /* exact where it is used: for powers of two */
        .f64 = n,
        /* Rounded up; the excess is below 255 / 65536 < 1 / n, too little to reach the next integer. */
        .reciprocal8 = n <= 255 ? (uint16_t)(65536 / n + 1) : 0,
    };
}
