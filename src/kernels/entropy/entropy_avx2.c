/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/entropy/lane_tables.h"
#include "kernels/lanes/avx2.h"
#include "kernels/lanes/lanes.h"

typedef ivec vmask; /* all ones or all zeros */

CST_LANE_INLINE vmask mask_not_below(ivec a, ivec b)
{
    return _mm256_xor_si256(_mm256_cmpgt_epi32(b, a), i_set(-1));
}
CST_LANE_INLINE vmask mask_equal(ivec a, ivec b)
{
    return _mm256_cmpeq_epi32(a, b);
}
CST_LANE_INLINE uint32_t mask_bits(vmask m)
{
    return (uint32_t)_mm256_movemask_ps(f_from_bits(m));
}
CST_LANE_INLINE ivec mask_select(vmask m, ivec a, ivec b)
{
    return _mm256_blendv_epi8(b, a, m);
}
/* Four look-ups of 8 entries by the low three bits, and a choice by the other two: faster than gathering. */
CST_LANE_INLINE ivec look_up(const ivec table[4], ivec symbol)
{
    const fvec bit3 = f_from_bits(i_shl(symbol, 28)), bit4 = f_from_bits(i_shl(symbol, 27));
    fvec entry[4];
    CST_UNROLL
    for (int j = 0; j < 4; j++)
        entry[j] = f_from_bits(_mm256_permutevar8x32_epi32(table[j], symbol));
    fvec low = _mm256_blendv_ps(entry[0], entry[1], bit3), high = _mm256_blendv_ps(entry[2], entry[3], bit3);
    return f_bits(_mm256_blendv_ps(low, high, bit4));
}
CST_LANE_INLINE ivec gather(const uint32_t *base, ivec index)
{
    return _mm256_i32gather_epi32((const int *)base, index, 4);
}
CST_LANE_INLINE ivec shift_right_each(ivec a, ivec n)
{
    return _mm256_srlv_epi32(a, n);
}
CST_LANE_INLINE ivec min_unsigned(ivec a, ivec b)
{
    return _mm256_min_epu32(a, b);
}

CST_LANE_INLINE ivec permutation(const uint64_t *entry)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)entry));
}
CST_LANE_INLINE uint8_t *push_words(uint8_t *next, ivec x, uint32_t bits)
{
    ivec words = _mm256_permutevar8x32_epi32(i_and(x, i_set(0xffff)), permutation(&lanes_to_top[bits]));
    words = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    _mm_storeu_si128((__m128i *)(void *)(next - 16), _mm256_castsi256_si128(words));
    return next - 2 * __builtin_popcount(bits);
}
CST_LANE_INLINE ivec spread_words(const uint8_t *p, uint32_t bits)
{
    const ivec words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_permutevar8x32_epi32(words, permutation(&ranks_of_lanes[bits]));
}

#include "kernels/entropy/entropy_lanes.h"

const cst_entropy_kernels cst_entropy_avx2 = {.encode = encode_lanes, .decode = decode_lanes};
