/* SPDX-License-Identifier: Apache-2.0 */
/* The 16 lanes of a block's vectors (block.h) in two AVX2 registers, one half at a time. Names and meanings: README.md. */
#ifndef CST_KERNELS_LANES_AVX2_H
#define CST_KERNELS_LANES_AVX2_H
#include <immintrin.h>
#include <stdint.h>

#define CST_LANE_INLINE static inline __attribute__((always_inline))

typedef __m256 fvec;
typedef __m256i ivec;
typedef struct {
    __m256d low, high;
} dvec;
enum { VEC_LANES = 8 };

CST_LANE_INLINE fvec f_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
CST_LANE_INLINE void f_store(float *p, fvec a)
{
    _mm256_storeu_ps(p, a);
}
CST_LANE_INLINE void f_stream(float *p, fvec a)
{
    _mm256_stream_ps(p, a);
}
CST_LANE_INLINE ivec i_load(const void *p)
{
    return _mm256_loadu_si256(p);
}
CST_LANE_INLINE void i_store(void *p, ivec a)
{
    _mm256_storeu_si256(p, a);
}
CST_LANE_INLINE fvec f_set(float a)
{
    return _mm256_set1_ps(a);
}
CST_LANE_INLINE ivec i_set(int32_t a)
{
    return _mm256_set1_epi32(a);
}
CST_LANE_INLINE ivec q_set(uint64_t a)
{
    return _mm256_set1_epi64x((long long)a);
}
CST_LANE_INLINE ivec i_zero(void)
{
    return _mm256_setzero_si256();
}
CST_LANE_INLINE ivec q_count(void)
{
    return _mm256_setr_epi64x(0, 1, 2, 3);
}

CST_LANE_INLINE fvec f_add(fvec a, fvec b)
{
    return _mm256_add_ps(a, b);
}
CST_LANE_INLINE fvec f_sub(fvec a, fvec b)
{
    return _mm256_sub_ps(a, b);
}
CST_LANE_INLINE fvec f_mul(fvec a, fvec b)
{
    return _mm256_mul_ps(a, b);
}
CST_LANE_INLINE fvec f_fma(fvec a, fvec b, fvec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
CST_LANE_INLINE fvec f_fnma(fvec a, fvec b, fvec c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
CST_LANE_INLINE fvec f_max(fvec a, fvec b)
{
    return _mm256_max_ps(a, b);
}
CST_LANE_INLINE fvec f_min(fvec a, fvec b)
{
    return _mm256_min_ps(a, b);
}
CST_LANE_INLINE ivec f_bits(fvec a)
{
    return _mm256_castps_si256(a);
}
CST_LANE_INLINE fvec f_from_bits(ivec a)
{
    return _mm256_castsi256_ps(a);
}
CST_LANE_INLINE ivec f_round(fvec a)
{
    return _mm256_cvtps_epi32(a);
}
CST_LANE_INLINE fvec i_to_f(ivec a)
{
    return _mm256_cvtepi32_ps(a);
}

CST_LANE_INLINE ivec i_add(ivec a, ivec b)
{
    return _mm256_add_epi32(a, b);
}
CST_LANE_INLINE ivec i_sub(ivec a, ivec b)
{
    return _mm256_sub_epi32(a, b);
}
CST_LANE_INLINE ivec i_mul(ivec a, ivec b)
{
    return _mm256_mullo_epi32(a, b);
}
CST_LANE_INLINE ivec i_and(ivec a, ivec b)
{
    return _mm256_and_si256(a, b);
}
CST_LANE_INLINE ivec i_or(ivec a, ivec b)
{
    return _mm256_or_si256(a, b);
}
CST_LANE_INLINE ivec i_xor(ivec a, ivec b)
{
    return _mm256_xor_si256(a, b);
}
CST_LANE_INLINE ivec i_xor3(ivec a, ivec b, ivec c)
{
    return i_xor(i_xor(a, b), c);
}
CST_LANE_INLINE ivec i_and_or(ivec a, ivec mask, ivec c)
{
    return i_or(i_and(a, mask), c);
}
CST_LANE_INLINE ivec i_and_xor(ivec a, ivec mask, ivec c)
{
    return i_xor(i_and(a, mask), c);
}
CST_LANE_INLINE ivec i_select(ivec mask, ivec a, ivec b)
{
    return _mm256_blendv_epi8(b, a, mask);
}
CST_LANE_INLINE ivec i_max(ivec a, ivec b)
{
    return _mm256_max_epi32(a, b);
}
CST_LANE_INLINE ivec i_min(ivec a, ivec b)
{
    return _mm256_min_epi32(a, b);
}
CST_LANE_INLINE ivec i_add_where_equal(ivec base, ivec a, ivec b, ivec increment)
{
    return i_add(base, i_and(_mm256_cmpeq_epi32(a, b), increment));
}
CST_LANE_INLINE ivec i_shl(ivec a, unsigned n)
{
    return _mm256_slli_epi32(a, (int)n);
}
CST_LANE_INLINE ivec i_shr(ivec a, unsigned n)
{
    return _mm256_srli_epi32(a, (int)n);
}
CST_LANE_INLINE ivec i_sar(ivec a, unsigned n)
{
    return _mm256_srai_epi32(a, (int)n);
}
CST_LANE_INLINE ivec i_shl_by(ivec a, uint32_t n)
{
    return _mm256_sll_epi32(a, _mm_cvtsi32_si128((int)n));
}
CST_LANE_INLINE ivec i_shr_by(ivec a, uint32_t n)
{
    return _mm256_srl_epi32(a, _mm_cvtsi32_si128((int)n));
}
CST_LANE_INLINE ivec i_sar_by(ivec a, uint32_t n)
{
    return _mm256_sra_epi32(a, _mm_cvtsi32_si128((int)n));
}

CST_LANE_INLINE ivec q_add(ivec a, ivec b)
{
    return _mm256_add_epi64(a, b);
}
CST_LANE_INLINE ivec q_mul_even_signed(ivec a, ivec b)
{
    return _mm256_mul_epi32(a, b);
}
CST_LANE_INLINE ivec q_mul_even(ivec a, ivec b)
{
    return _mm256_mul_epu32(a, b);
}
CST_LANE_INLINE ivec q_shl(ivec a, unsigned n)
{
    return _mm256_slli_epi64(a, (int)n);
}
CST_LANE_INLINE ivec q_shr(ivec a, unsigned n)
{
    return _mm256_srli_epi64(a, (int)n);
}
CST_LANE_INLINE ivec i_even_odd(ivec even, ivec odd)
{
    return _mm256_blend_epi32(even, odd, 0xAA);
}
CST_LANE_INLINE uint64_t q_sum(ivec a)
{
    uint64_t lane[4], sum = 0;
    i_store(lane, a);
    for (int l = 0; l < 4; l++)
        sum += lane[l];
    return sum;
}

CST_LANE_INLINE dvec d_zero(void)
{
    return (dvec){_mm256_setzero_pd(), _mm256_setzero_pd()};
}
CST_LANE_INLINE dvec d_widen(fvec x)
{
    return (dvec){_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}
CST_LANE_INLINE dvec d_add_products(dvec sum, dvec x, dvec y)
{
    return (dvec){_mm256_fmadd_pd(x.low, y.low, sum.low), _mm256_fmadd_pd(x.high, y.high, sum.high)};
}
CST_LANE_INLINE void d_store(double *p, dvec a)
{
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}

CST_LANE_INLINE void i_store_bytes(uint8_t *p, ivec a)
{
    const ivec low_bytes = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                                            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    ivec packed =
        _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(a, low_bytes), _mm256_setr_epi32(0, 4, 0, 0, 0, 0, 0, 0));
    _mm_storel_epi64((__m128i *)(void *)p, _mm256_castsi256_si128(packed));
}
CST_LANE_INLINE ivec i_load_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
CST_LANE_INLINE ivec i_load_halves(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#endif
