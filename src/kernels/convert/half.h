/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One 16-bit float to f32 and back, in integer arithmetic: the definition of the conversions.
 *
 * f16 is IEEE binary16; bf16 is the upper half of an f32. Widening is exact. Narrowing rounds to nearest even, keeps
 * denormals, and gives infinity from half a unit above the largest number on. Every NaN becomes the canonical quiet
 * NaN: 0x7e00 in f16, 0x7fc0 in bf16, 0x7fc00000 in f32.
 */
#ifndef CST_KERNELS_CONVERT_HALF_H
#define CST_KERNELS_CONVERT_HALF_H
#include "kernels/scalar.h"

#define CST_NAN_F16  0x7e00u
#define CST_NAN_BF16 0x7fc0u
#define CST_NAN_F32  0x7fc00000u
#define CST_NAN_F64  0x7ff8000000000000u
#define CST_INF_F32  0x7f800000u

static inline float cst_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
    if (exponent == 0x1f)
        return cst_float_from_bits(fraction ? CST_NAN_F32 : sign | CST_INF_F32);
    if (exponent == 0) /* zero or denormal: fraction units of 2^-24, exact in f32 */
        return cst_float_from_bits(sign | cst_float_bits((float)fraction * 0x1p-24f));
    return cst_float_from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* u without its `drop` low bits, rounded to nearest even: add half a unit, less one where the kept part is even. */
static inline uint32_t cst_round_bits(uint32_t u, int drop)
{
    return (u + (1u << (drop - 1)) - 1 + (u >> drop & 1)) >> drop;
}

static inline uint16_t cst_f32_to_f16(float x)
{
    const uint32_t u = cst_float_bits(x), magnitude = u & 0x7fffffff;
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (magnitude > CST_INF_F32)
        return CST_NAN_F16;
    if (magnitude >= cst_float_bits(0x1.ffep15f)) /* 65520, halfway between the largest number and the next */
        return sign | 0x7c00;
    if (magnitude < cst_float_bits(0x1p-14f)) {
        /* Denormal. One unit of a float in [0.5, 1) is 2^-24, that of the result: let the addition round. */
        float shifted = cst_float_from_bits(magnitude) + 0.5f;
        return sign | (uint16_t)(cst_float_bits(shifted) - cst_float_bits(0.5f));
    }
    return sign | (uint16_t)cst_round_bits(magnitude - ((127u - 15) << 23), 13);
}

static inline float cst_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    return cst_float_from_bits((u & 0x7fffffff) > CST_INF_F32 ? CST_NAN_F32 : u);
}

static inline uint16_t cst_f32_to_bf16(float x)
{
    uint32_t u = cst_float_bits(x);
    return (u & 0x7fffffff) > CST_INF_F32 ? CST_NAN_BF16 : (uint16_t)cst_round_bits(u, 16);
}
#endif
