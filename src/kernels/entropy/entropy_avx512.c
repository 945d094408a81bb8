/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/lanes/lanes.h"

typedef __mmask16 vmask;

CST_LANE_INLINE vmask mask_not_below(ivec a, ivec b)
{
    return _mm512_cmpge_epi32_mask(a, b);
}
CST_LANE_INLINE vmask mask_equal(ivec a, ivec b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
CST_LANE_INLINE uint32_t mask_bits(vmask m)
{
    return m;
}
CST_LANE_INLINE ivec mask_select(vmask m, ivec a, ivec b)
{
    return _mm512_mask_mov_epi32(b, m, a);
}
CST_LANE_INLINE ivec look_up(const ivec table[2], ivec symbol)
{
    return _mm512_permutex2var_epi32(table[0], symbol, table[1]);
}
CST_LANE_INLINE ivec gather(const uint32_t *base, ivec index)
{
    return _mm512_i32gather_epi32(index, (const int *)base, 4);
}
CST_LANE_INLINE ivec shift_right_each(ivec a, ivec n)
{
    return _mm512_srlv_epi32(a, n);
}
CST_LANE_INLINE ivec min_unsigned(ivec a, ivec b)
{
    return _mm512_min_epu32(a, b);
}
/* Compressed in the register and rotated to its top: compressing stores are slow. */
CST_LANE_INLINE uint8_t *push_words(uint8_t *next, ivec x, uint32_t bits)
{
    const ivec lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int count = __builtin_popcount(bits);
    ivec words = _mm512_maskz_compress_epi32((vmask)bits, x);
    words = _mm512_permutexvar_epi32(i_add(lane, i_set(count)), words); /* indices are modulo 16 */
    _mm256_storeu_si256((__m256i *)(void *)(next - 32), _mm512_cvtepi32_epi16(words));
    return next - 2 * count;
}
CST_LANE_INLINE ivec spread_words(const uint8_t *p, uint32_t bits)
{
    const ivec words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_maskz_expand_epi32((vmask)bits, words);
}

#include "kernels/entropy/entropy_lanes.h"

const cst_entropy_kernels cst_entropy_avx512 = {.encode = encode_lanes, .decode = decode_lanes};
