/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions of the scalar reference, spelled out so that they do what the vector instructions do, for every input and
 * without regard to the rounding mode: what does not fit an int32 (NaN included) becomes INT32_MIN.
 */
#ifndef CST_KERNELS_SCALAR_H
#define CST_KERNELS_SCALAR_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t cst_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float cst_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline float cst_magnitude(float value)
{
    return cst_float_from_bits(cst_float_bits(value) & 0x7fffffffu);
}
/* Nearest integer, ties to even. */
static inline int32_t cst_round_even(float value)
{
    if (!(value >= -0x1p31f && value < 0x1p31f))
        return INT32_MIN;
    int32_t whole = (int32_t)value;
    float rest = value - (float)whole;
    bool odd = whole & 1;
    if (rest > 0.5f || (rest == 0.5f && odd))
        return whole + 1;
    if (rest < -0.5f || (rest == -0.5f && odd))
        return whole - 1;
    return whole;
}
/* a + b, a - b and a * b modulo 2^32, as vector integers do. */
static inline int32_t cst_wrap_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static inline int32_t cst_wrap_sub(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}
static inline int32_t cst_wrap_mul(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
#endif
