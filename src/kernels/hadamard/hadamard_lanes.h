/* SPDX-License-Identifier: Apache-2.0 */
/* What the two vector rotations share: butterflies, signs, prefetching, and the stages of short blocks. */
#ifndef CST_KERNELS_HADAMARD_HADAMARD_LANES_H
#define CST_KERNELS_HADAMARD_HADAMARD_LANES_H
#include <stdbool.h>
#include <string.h>

#include "kernels/hadamard/hadamard.h"
#include "kernels/lanes/lanes.h"

CST_LANE_INLINE int log2_of_length(uint32_t n)
{
    return 31 - __builtin_clz(n);
}
CST_LANE_INLINE float power_of_half(int e)
{
    return 1.0f / (float)(1 << e);
}
/* 2^-floor(m/2) and 2^-ceil(m/2), n = 2^m (hadamard.h). */
CST_LANE_INLINE float forward_scale(uint32_t n)
{
    return power_of_half(log2_of_length(n) / 2);
}
CST_LANE_INLINE float inverse_scale(uint32_t n)
{
    return power_of_half((log2_of_length(n) + 1) / 2);
}

/* 1.0 that the compiler cannot see through: u * 1 + v is then an fma indeed, which runs on the multipliers' ports while
 * plain additions run on the adders'; the result is the same. */
CST_LANE_INLINE fvec opaque_one(void)
{
    fvec one = f_set(1.0f);
    __asm__("" : "+v"(one));
    return one;
}
CST_LANE_INLINE void butterfly(fvec *u, fvec *v, fvec one, bool on_multipliers)
{
    fvec a = *u, b = *v;
    *u = on_multipliers ? f_fma(a, one, b) : f_add(a, b);
    *v = on_multipliers ? f_fnma(b, one, a) : f_sub(a, b);
}

/* Flips the signs that `signs` says, of this part of vector `vector`. */
CST_LANE_INLINE fvec apply_signs(fvec v, const uint32_t *signs, uint32_t vector, uint32_t part)
{
    ivec words = i_load(signs + CST_LANES * (vector >> 5) + VEC_LANES * part);
    return f_from_bits(i_and_xor(i_shl_by(words, vector & 31), i_set(INT32_MIN), f_bits(v)));
}

/* Lines `first` .. first + count of the block that comes next. Spread evenly over a rotation, for the strides of the
 * first pass defeat the prefetcher of the hardware. */
CST_LANE_INLINE void prefetch_lines(const float *next, uint32_t first, uint32_t count)
{
    CST_UNROLL
    for (uint32_t i = 0; i < count; i++)
        _mm_prefetch((const char *)(next + CST_LANES * (first + i)), _MM_HINT_T1);
}

CST_LANE_INLINE void put(float *out, fvec v, bool stream)
{
    if (stream)
        f_stream(out, v);
    else
        f_store(out, v);
}

/* --- short blocks --- */

CST_LANE_INLINE void copy_with_signs(const float *x, float *y, uint32_t n, const uint32_t *signs)
{
    for (uint32_t v = 0; v < n / CST_LANES; v++)
        for (uint32_t part = 0; part < PARTS; part++) {
            uint32_t at = CST_LANES * v + VEC_LANES * part;
            fvec w = f_load(x + at);
            f_store(y + at, signs ? apply_signs(w, signs, v, part) : w);
        }
}
CST_LANE_INLINE void stage(float *y, uint32_t n, uint32_t half)
{
    for (uint32_t block = 0; block < n; block += 2 * half)
        for (uint32_t i = block; i < block + half; i += VEC_LANES) {
            fvec a = f_load(y + i), b = f_load(y + i + half);
            f_store(y + i, f_add(a, b));
            f_store(y + i + half, f_sub(a, b));
        }
}
/* Index bits 8.. below m, then 4..7 below m. */
CST_LANE_INLINE void outer_stages(float *y, uint32_t n)
{
    for (uint32_t half = 256; half < n; half *= 2)
        stage(y, n, half);
    for (uint32_t half = 16; half < 256 && half < n; half *= 2)
        stage(y, n, half);
}
#endif
