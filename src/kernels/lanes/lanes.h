/* SPDX-License-Identifier: Apache-2.0 */
/* What the bodies of vector kernels share. Included after a shim (README.md). */
#ifndef CST_KERNELS_LANES_LANES_H
#define CST_KERNELS_LANES_LANES_H
#include "kernels/block.h"

/* Registers that hold the 16 lanes; a body runs once for each `part` < PARTS, on lanes VEC_LANES * part and up. */
enum { PARTS = CST_LANES / VEC_LANES };

/* Loops over registers in an array: unrolled, so that the array is registers indeed (gcc at -O2 does not by itself).
 * clang warns where it has nothing to unroll, having done so already or being told not to optimise. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#define CST_UNROLL _Pragma("GCC unroll 16")

CST_LANE_INLINE fvec f_magnitude(fvec a)
{
    return f_from_bits(i_and(f_bits(a), i_set(0x7fffffff)));
}
/* High 32 bits of the products of unsigned 32-bit lanes. */
CST_LANE_INLINE ivec i_mul_high(ivec a, ivec b)
{
    return i_even_odd(q_shr(q_mul_even(a, b), 32), q_mul_even(q_shr(a, 32), q_shr(b, 32)));
}
#endif
