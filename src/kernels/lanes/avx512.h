/* SPDX-License-Identifier: Apache-2.0 */
/* The 16 lanes of a block's vectors (block.h) in one AVX-512 register. Names and meanings: README.md. */
#ifndef CST_KERNELS_LANES_AVX512_H
#define CST_KERNELS_LANES_AVX512_H
#include <immintrin.h>
#include <stdint.h>

#define CST_LANE_INLINE static inline __attribute__((always_inline))

typedef __m512 fvec;
typedef __m512i ivec;
typedef struct {
    __m512d low, high;
} dvec;
enum { VEC_LANES = 16 };

CST_LANE_INLINE fvec f_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
CST_LANE_INLINE void f_store(float *p, fvec a)
{
    _mm512_storeu_ps(p, a);
}
CST_LANE_INLINE void f_stream(float *p, fvec a)
{
    _mm512_stream_ps(p, a);
}
CST_LANE_INLINE ivec i_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
CST_LANE_INLINE void i_store(void *p, ivec a)
{
    _mm512_storeu_si512(p, a);
}
CST_LANE_INLINE fvec f_set(float a)
{
    return _mm512_set1_ps(a);
}
CST_LANE_INLINE ivec i_set(int32_t a)
{
    return _mm512_set1_epi32(a);
}
CST_LANE_INLINE ivec q_set(uint64_t a)
{
    return _mm512_set1_epi64((long long)a);
}
CST_LANE_INLINE ivec i_zero(void)
{
    return _mm512_setzero_si512();
}
CST_LANE_INLINE ivec q_count(void)
{
    return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
}

CST_LANE_INLINE fvec f_add(fvec a, fvec b)
{
    return _mm512_add_ps(a, b);
}
CST_LANE_INLINE fvec f_sub(fvec a, fvec b)
{
    return _mm512_sub_ps(a, b);
}
CST_LANE_INLINE fvec f_mul(fvec a, fvec b)
{
    return _mm512_mul_ps(a, b);
}
CST_LANE_INLINE fvec f_fma(fvec a, fvec b, fvec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
CST_LANE_INLINE fvec f_fnma(fvec a, fvec b, fvec c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
CST_LANE_INLINE fvec f_max(fvec a, fvec b)
{
    return _mm512_max_ps(a, b);
}
CST_LANE_INLINE fvec f_min(fvec a, fvec b)
{
    return _mm512_min_ps(a, b);
}
CST_LANE_INLINE ivec f_bits(fvec a)
{
    return _mm512_castps_si512(a);
}
CST_LANE_INLINE fvec f_from_bits(ivec a)
{
    return _mm512_castsi512_ps(a);
}
CST_LANE_INLINE ivec f_round(fvec a)
{
    return _mm512_cvtps_epi32(a);
}
CST_LANE_INLINE fvec i_to_f(ivec a)
{
    return _mm512_cvtepi32_ps(a);
}

CST_LANE_INLINE ivec i_add(ivec a, ivec b)
{
    return _mm512_add_epi32(a, b);
}
CST_LANE_INLINE ivec i_sub(ivec a, ivec b)
{
    return _mm512_sub_epi32(a, b);
}
CST_LANE_INLINE ivec i_mul(ivec a, ivec b)
{
    return _mm512_mullo_epi32(a, b);
}
CST_LANE_INLINE ivec i_and(ivec a, ivec b)
{
    return _mm512_and_si512(a, b);
}
CST_LANE_INLINE ivec i_or(ivec a, ivec b)
{
    return _mm512_or_si512(a, b);
}
CST_LANE_INLINE ivec i_xor(ivec a, ivec b)
{
    return _mm512_xor_si512(a, b);
}
CST_LANE_INLINE ivec i_xor3(ivec a, ivec b, ivec c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
CST_LANE_INLINE ivec i_and_or(ivec a, ivec mask, ivec c)
{
    return _mm512_ternarylogic_epi32(a, mask, c, 0xEA);
}
CST_LANE_INLINE ivec i_and_xor(ivec a, ivec mask, ivec c)
{
    return _mm512_ternarylogic_epi32(a, mask, c, 0x6A);
}
CST_LANE_INLINE ivec i_select(ivec mask, ivec a, ivec b)
{
    return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}
CST_LANE_INLINE ivec i_max(ivec a, ivec b)
{
    return _mm512_max_epi32(a, b);
}
CST_LANE_INLINE ivec i_min(ivec a, ivec b)
{
    return _mm512_min_epi32(a, b);
}
CST_LANE_INLINE ivec i_add_where_equal(ivec base, ivec a, ivec b, ivec increment)
{
    return _mm512_mask_add_epi32(base, _mm512_cmpeq_epi32_mask(a, b), base, increment);
}
CST_LANE_INLINE ivec i_shl(ivec a, unsigned n)
{
    return _mm512_slli_epi32(a, n);
}
CST_LANE_INLINE ivec i_shr(ivec a, unsigned n)
{
    return _mm512_srli_epi32(a, n);
}
CST_LANE_INLINE ivec i_sar(ivec a, unsigned n)
{
    return _mm512_srai_epi32(a, n);
}
CST_LANE_INLINE ivec i_shl_by(ivec a, uint32_t n)
{
    return _mm512_sll_epi32(a, _mm_cvtsi32_si128((int)n));
}
CST_LANE_INLINE ivec i_shr_by(ivec a, uint32_t n)
{
    return _mm512_srl_epi32(a, _mm_cvtsi32_si128((int)n));
}
CST_LANE_INLINE ivec i_sar_by(ivec a, uint32_t n)
{
    return _mm512_sra_epi32(a, _mm_cvtsi32_si128((int)n));
}

CST_LANE_INLINE ivec q_add(ivec a, ivec b)
{
    return _mm512_add_epi64(a, b);
}
CST_LANE_INLINE ivec q_mul_even_signed(ivec a, ivec b)
{
    return _mm512_mul_epi32(a, b);
}
CST_LANE_INLINE ivec q_mul_even(ivec a, ivec b)
{
    return _mm512_mul_epu32(a, b);
}
CST_LANE_INLINE ivec q_shl(ivec a, unsigned n)
{
    return _mm512_slli_epi64(a, n);
}
CST_LANE_INLINE ivec q_shr(ivec a, unsigned n)
{
    return _mm512_srli_epi64(a, n);
}
CST_LANE_INLINE ivec i_even_odd(ivec even, ivec odd)
{
    return _mm512_mask_mov_epi32(even, 0xAAAA, odd);
}
CST_LANE_INLINE uint64_t q_sum(ivec a)
{
    uint64_t lane[8], sum = 0; /* not _mm512_reduce_add_epi64, whose signed addition must not wrap */
    i_store(lane, a);
    for (int l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

CST_LANE_INLINE dvec d_zero(void)
{
    return (dvec){_mm512_setzero_pd(), _mm512_setzero_pd()};
}
CST_LANE_INLINE dvec d_widen(fvec x)
{
    return (dvec){_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
}
CST_LANE_INLINE dvec d_add_products(dvec sum, dvec x, dvec y)
{
    return (dvec){_mm512_fmadd_pd(x.low, y.low, sum.low), _mm512_fmadd_pd(x.high, y.high, sum.high)};
}
CST_LANE_INLINE void d_store(double *p, dvec a)
{
    _mm512_storeu_pd(p, a.low);
    _mm512_storeu_pd(p + 8, a.high);
}

CST_LANE_INLINE void i_store_bytes(uint8_t *p, ivec a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a));
}
CST_LANE_INLINE ivec i_load_bytes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
CST_LANE_INLINE ivec i_load_halves(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#endif
