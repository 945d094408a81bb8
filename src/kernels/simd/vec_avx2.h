/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of 32 bytes, AVX2 with FMA and F16C, and what the loops do with them. One register type serves all element
 * types: casts between them cost nothing.
 *
 *   load, store, load_part, store_part, stream (aligned, non-temporal), vec_fence (after the last stream)
 *   half_vec: the 16-bit floats that fill a vec when widened to f32; load_half ..., widen_f16, narrow_f16 (and bf16);
 *   as_low_half, low_half: a half_vec in the lower half of a vec, and back
 *   OP_TYPE(a, b): add, mul, min, max
 *   divide_TYPE(v, by): the quotient, integers truncated towards zero; scale_TYPE: the same for powers of two
 *   settle_f32, settle_f64: canonical NaN
 *
 * min and max of floats: the processor's min(a, b) is b when a and b are equal or one is NaN. So min(a, b) | min(b, a)
 * is the minimum with -0 below +0, and NaN if either is NaN (exponent all ones, some mantissa bit set). For max the
 * operator is &, which does not keep NaN: the unordered mask is put on top.
 */
#ifndef CST_KERNELS_SIMD_VEC_AVX2_H
#define CST_KERNELS_SIMD_VEC_AVX2_H
#include "kernels/simd/pass.h"

#include <immintrin.h>
#include <string.h>

typedef __m256i vec;
typedef __m128i half_vec;
#define VEC_BYTES 32

#define PS(v)           _mm256_castsi256_ps(v)
#define PD(v)           _mm256_castsi256_pd(v)
#define FROM_PS(v)      _mm256_castps_si256(v)
#define FROM_PD(v)      _mm256_castpd_si256(v)
#define LOW(v)          _mm256_castsi256_si128(v)
#define HIGH(v)         _mm256_extracti128_si256(v, 1)
#define JOIN(low, high) _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1)

/* --- memory --- */
static inline vec load(const void *p)
{
    return _mm256_loadu_si256(p);
}
static inline void store(void *p, vec v)
{
    _mm256_storeu_si256(p, v);
}
static inline void stream(void *p, vec v)
{
    _mm256_stream_si256(p, v);
}
static inline void vec_fence(void)
{
    _mm_sfence();
}
/* The first `bytes` / 4 lanes of 4 bytes. */
static inline vec first_words(size_t bytes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(bytes / 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec load_part(const void *p, size_t bytes)
{
    if (bytes % 4 == 0)
        return _mm256_maskload_epi32(p, first_words(bytes));
    char t[VEC_BYTES] = {0};
    memcpy(t, p, bytes);
    return load(t);
}
static inline void store_part(void *p, vec v, size_t bytes)
{
    if (bytes % 4 == 0) {
        _mm256_maskstore_epi32(p, first_words(bytes), v);
    } else {
        char t[VEC_BYTES];
        store(t, v);
        memcpy(p, t, bytes);
    }
}

/* --- 16-bit floats: 8 of them (16 bytes) in memory, 8 f32 in the register --- */
static inline vec widen_f16(half_vec h)
{
    return FROM_PS(_mm256_cvtph_ps(h));
}
static inline half_vec narrow_f16(vec v)
{
    return _mm256_cvtps_ph(PS(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vec widen_bf16(half_vec h)
{
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
}
/* Nearest even: add half a unit, less one where the kept part is even. */
static inline half_vec narrow_bf16(vec v)
{
    vec odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    vec rounded = _mm256_add_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(0x7fff)), odd);
    vec kept = _mm256_srli_epi32(rounded, 16);
    return _mm_packus_epi32(LOW(kept), HIGH(kept));
}
static inline half_vec load_half(const void *p)
{
    return _mm_loadu_si128(p);
}
static inline half_vec load_half_part(const void *p, size_t bytes)
{
    return LOW(load_part(p, bytes));
}
static inline vec as_low_half(half_vec h)
{
    return _mm256_castsi128_si256(h);
}
static inline half_vec low_half(vec v)
{
    return LOW(v);
}
static inline void store_half(void *p, half_vec h)
{
    _mm_storeu_si128(p, h);
}
static inline void stream_half(void *p, half_vec h)
{
    _mm_stream_si128(p, h);
}

/* --- f32 --- */
static inline vec add_f32(vec a, vec b)
{
    return FROM_PS(_mm256_add_ps(PS(a), PS(b)));
}
static inline vec mul_f32(vec a, vec b)
{
    return FROM_PS(_mm256_mul_ps(PS(a), PS(b)));
}
static inline vec min_f32(vec a, vec b)
{
    return FROM_PS(_mm256_or_ps(_mm256_min_ps(PS(a), PS(b)), _mm256_min_ps(PS(b), PS(a))));
}
static inline vec max_f32(vec a, vec b)
{
    __m256 m = _mm256_and_ps(_mm256_max_ps(PS(a), PS(b)), _mm256_max_ps(PS(b), PS(a)));
    return FROM_PS(_mm256_or_ps(m, _mm256_cmp_ps(PS(a), PS(b), _CMP_UNORD_Q)));
}
static inline vec scale_f32(vec v, const cst_divisor *by)
{
    return FROM_PS(_mm256_mul_ps(PS(v), _mm256_set1_ps(by->f32_inverse)));
}
static inline vec divide_f32(vec v, const cst_divisor *by)
{
    return FROM_PS(_mm256_div_ps(PS(v), _mm256_set1_ps(by->f32)));
}
static inline vec settle_f32(vec v)
{
    __m256 nan = _mm256_cmp_ps(PS(v), PS(v), _CMP_UNORD_Q);
    return FROM_PS(_mm256_blendv_ps(PS(v), PS(_mm256_set1_epi32(0x7fc00000)), nan));
}

/* --- f64 --- */
static inline vec add_f64(vec a, vec b)
{
    return FROM_PD(_mm256_add_pd(PD(a), PD(b)));
}
static inline vec mul_f64(vec a, vec b)
{
    return FROM_PD(_mm256_mul_pd(PD(a), PD(b)));
}
static inline vec min_f64(vec a, vec b)
{
    return FROM_PD(_mm256_or_pd(_mm256_min_pd(PD(a), PD(b)), _mm256_min_pd(PD(b), PD(a))));
}
static inline vec max_f64(vec a, vec b)
{
    __m256d m = _mm256_and_pd(_mm256_max_pd(PD(a), PD(b)), _mm256_max_pd(PD(b), PD(a)));
    return FROM_PD(_mm256_or_pd(m, _mm256_cmp_pd(PD(a), PD(b), _CMP_UNORD_Q)));
}
static inline vec scale_f64(vec v, const cst_divisor *by)
{
    return FROM_PD(_mm256_mul_pd(PD(v), _mm256_set1_pd(1 / by->f64)));
}
static inline vec divide_f64(vec v, const cst_divisor *by)
{
    return FROM_PD(_mm256_div_pd(PD(v), _mm256_set1_pd(by->f64)));
}
static inline vec settle_f64(vec v)
{
    __m256d nan = _mm256_cmp_pd(PD(v), PD(v), _CMP_UNORD_Q);
    return FROM_PD(_mm256_blendv_pd(PD(v), PD(_mm256_set1_epi64x(0x7ff8000000000000)), nan));
}

/* --- 8-bit integers --- */
static inline vec add_i8(vec a, vec b)
{
    return _mm256_add_epi8(a, b);
}
static inline vec mul_i8(vec a, vec b)
{
    vec even = _mm256_and_si256(_mm256_mullo_epi16(a, b), _mm256_set1_epi16(0xff));
    vec odd = _mm256_mullo_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    return _mm256_or_si256(even, _mm256_slli_epi16(odd, 8));
}
static inline vec min_i8(vec a, vec b)
{
    return _mm256_min_epi8(a, b);
}
static inline vec max_i8(vec a, vec b)
{
    return _mm256_max_epi8(a, b);
}
static inline vec min_u8(vec a, vec b)
{
    return _mm256_min_epu8(a, b);
}
static inline vec max_u8(vec a, vec b)
{
    return _mm256_max_epu8(a, b);
}
/* 16-bit magnitudes times the reciprocal, then the sign again. */
static inline vec divide_i8_half(__m128i x, const cst_divisor *by)
{
    vec wide = _mm256_cvtepi8_epi16(x);
    vec q = _mm256_mulhi_epu16(_mm256_abs_epi16(wide), _mm256_set1_epi16((short)by->reciprocal8));
    return _mm256_sign_epi16(q, wide);
}
static inline vec divide_u8_half(__m128i x, const cst_divisor *by)
{
    return _mm256_mulhi_epu16(_mm256_cvtepu8_epi16(x), _mm256_set1_epi16((short)by->reciprocal8));
}
static inline vec divide_i8(vec v, const cst_divisor *by)
{
    /* packs works within 128-bit lanes: put the quarters in order again. */
    vec packed = _mm256_packs_epi16(divide_i8_half(LOW(v), by), divide_i8_half(HIGH(v), by));
    return _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0));
}
static inline vec divide_u8(vec v, const cst_divisor *by)
{
    vec packed = _mm256_packus_epi16(divide_u8_half(LOW(v), by), divide_u8_half(HIGH(v), by));
    return _mm256_permute4x64_epi64(packed, _MM_SHUFFLE(3, 1, 2, 0));
}

/* --- 32-bit integers --- */
static inline vec add_i32(vec a, vec b)
{
    return _mm256_add_epi32(a, b);
}
static inline vec mul_i32(vec a, vec b)
{
    return _mm256_mullo_epi32(a, b);
}
static inline vec min_i32(vec a, vec b)
{
    return _mm256_min_epi32(a, b);
}
static inline vec max_i32(vec a, vec b)
{
    return _mm256_max_epi32(a, b);
}
static inline vec min_u32(vec a, vec b)
{
    return _mm256_min_epu32(a, b);
}
static inline vec max_u32(vec a, vec b)
{
    return _mm256_max_epu32(a, b);
}
/* In f64: x / n is an integer or at least 1 / n away from one, and the rounding error of the quotient, at most
 * 2^32 / n * 2^-53, is less: truncation gives the exact result. */
static inline __m128i divide_i32_half(__m128i x, const cst_divisor *by)
{
    return _mm256_cvttpd_epi32(_mm256_div_pd(_mm256_cvtepi32_pd(x), _mm256_set1_pd(by->f64)));
}
/* n is 2 or more, so the quotient fits into 31 bits. */
static inline __m128i divide_u32_half(__m128i x, const cst_divisor *by)
{
    __m256d moved = _mm256_cvtepi32_pd(_mm_xor_si128(x, _mm_set1_epi32(INT32_MIN)));
    __m256d value = _mm256_add_pd(moved, _mm256_set1_pd(0x1p31));
    return _mm256_cvttpd_epi32(_mm256_div_pd(value, _mm256_set1_pd(by->f64)));
}
static inline vec divide_i32(vec v, const cst_divisor *by)
{
    return JOIN(divide_i32_half(LOW(v), by), divide_i32_half(HIGH(v), by));
}
static inline vec divide_u32(vec v, const cst_divisor *by)
{
    return JOIN(divide_u32_half(LOW(v), by), divide_u32_half(HIGH(v), by));
}
static inline vec scale_i32(vec v, const cst_divisor *by)
{
    vec bias = _mm256_and_si256(_mm256_srai_epi32(v, 31), _mm256_set1_epi32((int)(by->n - 1)));
    return _mm256_sra_epi32(_mm256_add_epi32(v, bias), _mm_cvtsi32_si128(by->shift));
}
static inline vec scale_u32(vec v, const cst_divisor *by)
{
    return _mm256_srl_epi32(v, _mm_cvtsi32_si128(by->shift));
}

/* --- 64-bit integers --- */
static inline vec add_i64(vec a, vec b)
{
    return _mm256_add_epi64(a, b);
}
/* Modulo 2^64 the product of the high words falls away. */
static inline vec mul_i64(vec a, vec b)
{
    vec cross =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b), _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
    return _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64(cross, 32));
}
/* a > b as unsigned numbers. */
static inline vec above_u64(vec a, vec b)
{
    const vec top = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, top), _mm256_xor_si256(b, top));
}
static inline vec min_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b));
}
static inline vec max_i64(vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
}
static inline vec min_u64(vec a, vec b)
{
    return _mm256_blendv_epi8(a, b, above_u64(a, b));
}
static inline vec max_u64(vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, above_u64(a, b));
}
/* AVX2 has no arithmetic shift of 64-bit lanes: shift the complement of negative numbers. */
static inline vec scale_i64(vec v, const cst_divisor *by)
{
    const __m128i shift = _mm_cvtsi32_si128(by->shift);
    vec sign = _mm256_cmpgt_epi64(_mm256_setzero_si256(), v);
    vec biased = _mm256_add_epi64(v, _mm256_and_si256(sign, _mm256_set1_epi64x((long long)by->n - 1)));
    /* The bias may have made a negative number 0, never positive: its own sign decides. */
    vec still = _mm256_cmpgt_epi64(_mm256_setzero_si256(), biased);
    return _mm256_xor_si256(_mm256_srl_epi64(_mm256_xor_si256(biased, still), shift), still);
}
static inline vec scale_u64(vec v, const cst_divisor *by)
{
    return _mm256_srl_epi64(v, _mm_cvtsi32_si128(by->shift));
}
#include "kernels/simd/divide64.h"
#endif
