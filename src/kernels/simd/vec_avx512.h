/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 64 bytes, AVX-512 (F, BW, VL, DQ). The names and meanings are those of vec_avx2.h. */
#ifndef CST_KERNELS_SIMD_VEC_AVX512_H
#define CST_KERNELS_SIMD_VEC_AVX512_H
#include "kernels/simd/pass.h"

#include <immintrin.h>

typedef __m512i vec;
typedef __m256i half_vec;
#define VEC_BYTES 64

#define PS(v)      _mm512_castsi512_ps(v)
#define PD(v)      _mm512_castsi512_pd(v)
#define FROM_PS(v) _mm512_castps_si512(v)
#define FROM_PD(v) _mm512_castpd_si512(v)

/* --- memory --- */
static inline __mmask64 first_bytes(size_t bytes)
{
    return bytes < 64 ? (1ull << bytes) - 1 : ~0ull;
}
static inline vec load(const void *p)
{
    return _mm512_loadu_si512(p);
}
static inline vec load_part(const void *p, size_t bytes)
{
    return _mm512_maskz_loadu_epi8(first_bytes(bytes), p);
}
static inline void store(void *p, vec v)
{
    _mm512_storeu_si512(p, v);
}
static inline void store_part(void *p, vec v, size_t bytes)
{
    _mm512_mask_storeu_epi8(p, first_bytes(bytes), v);
}
static inline void stream(void *p, vec v)
{
    _mm512_stream_si512(p, v);
}
static inline void vec_fence(void)
{
    _mm_sfence();
}

/* --- 16-bit floats: 16 of them (32 bytes) in memory, 16 f32 in the register --- */
static inline vec widen_f16(half_vec h)
{
    return FROM_PS(_mm512_cvtph_ps(h));
}
static inline half_vec narrow_f16(vec v)
{
    return _mm512_cvtps_ph(PS(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vec widen_bf16(half_vec h)
{
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
}
/* Nearest even: add half a unit, less one where the kept part is even. */
static inline half_vec narrow_bf16(vec v)
{
    vec odd = _mm512_and_si512(_mm512_srli_epi32(v, 16), _mm512_set1_epi32(1));
    vec rounded = _mm512_add_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
static inline half_vec load_half(const void *p)
{
    return _mm256_loadu_si256(p);
}
static inline half_vec load_half_part(const void *p, size_t bytes)
{
    return _mm256_maskz_loadu_epi8((__mmask32)first_bytes(bytes), p);
}
static inline vec as_low_half(half_vec h)
{
    return _mm512_castsi256_si512(h);
}
static inline half_vec low_half(vec v)
{
    return _mm512_castsi512_si256(v);
}
static inline void store_half(void *p, half_vec h)
{
    _mm256_storeu_si256(p, h);
}
static inline void stream_half(void *p, half_vec h)
{
    _mm256_stream_si256(p, h);
}

/* --- f32 --- */
static inline vec add_f32(vec a, vec b)
{
    return FROM_PS(_mm512_add_ps(PS(a), PS(b)));
}
static inline vec mul_f32(vec a, vec b)
{
    return FROM_PS(_mm512_mul_ps(PS(a), PS(b)));
}
static inline vec min_f32(vec a, vec b)
{
    return _mm512_or_si512(FROM_PS(_mm512_min_ps(PS(a), PS(b))), FROM_PS(_mm512_min_ps(PS(b), PS(a))));
}
static inline vec max_f32(vec a, vec b)
{
    vec m = _mm512_and_si512(FROM_PS(_mm512_max_ps(PS(a), PS(b))), FROM_PS(_mm512_max_ps(PS(b), PS(a))));
    return _mm512_mask_mov_epi32(m, _mm512_cmp_ps_mask(PS(a), PS(b), _CMP_UNORD_Q), _mm512_set1_epi32(-1));
}
static inline vec scale_f32(vec v, const cst_divisor *by)
{
    return FROM_PS(_mm512_mul_ps(PS(v), _mm512_set1_ps(by->f32_inverse)));
}
static inline vec divide_f32(vec v, const cst_divisor *by)
{
    return FROM_PS(_mm512_div_ps(PS(v), _mm512_set1_ps(by->f32)));
}
static inline vec settle_f32(vec v)
{
    return _mm512_mask_mov_epi32(v, _mm512_cmp_ps_mask(PS(v), PS(v), _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc00000));
}

/* --- f64 --- */
static inline vec add_f64(vec a, vec b)
{
    return FROM_PD(_mm512_add_pd(PD(a), PD(b)));
}
static inline vec mul_f64(vec a, vec b)
{
    return FROM_PD(_mm512_mul_pd(PD(a), PD(b)));
}
static inline vec min_f64(vec a, vec b)
{
    return _mm512_or_si512(FROM_PD(_mm512_min_pd(PD(a), PD(b))), FROM_PD(_mm512_min_pd(PD(b), PD(a))));
}
static inline vec max_f64(vec a, vec b)
{
    vec m = _mm512_and_si512(FROM_PD(_mm512_max_pd(PD(a), PD(b))), FROM_PD(_mm512_max_pd(PD(b), PD(a))));
    return _mm512_mask_mov_epi64(m, _mm512_cmp_pd_mask(PD(a), PD(b), _CMP_UNORD_Q), _mm512_set1_epi64(-1));
}
static inline vec scale_f64(vec v, const cst_divisor *by)
{
    return FROM_PD(_mm512_mul_pd(PD(v), _mm512_set1_pd(1 / by->f64)));
}
static inline vec divide_f64(vec v, const cst_divisor *by)
{
    return FROM_PD(_mm512_div_pd(PD(v), _mm512_set1_pd(by->f64)));
}
static inline vec settle_f64(vec v)
{
    return _mm512_mask_mov_epi64(v, _mm512_cmp_pd_mask(PD(v), PD(v), _CMP_UNORD_Q),
                                 _mm512_set1_epi64(0x7ff8000000000000));
}

/* --- 8-bit integers --- */
static inline vec add_i8(vec a, vec b)
{
    return _mm512_add_epi8(a, b);
}
static inline vec mul_i8(vec a, vec b)
{
    vec even = _mm512_mullo_epi16(a, b);
    vec odd = _mm512_mullo_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8));
    return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaa, _mm512_slli_epi16(odd, 8));
}
static inline vec min_i8(vec a, vec b)
{
    return _mm512_min_epi8(a, b);
}
static inline vec max_i8(vec a, vec b)
{
    return _mm512_max_epi8(a, b);
}
static inline vec min_u8(vec a, vec b)
{
    return _mm512_min_epu8(a, b);
}
static inline vec max_u8(vec a, vec b)
{
    return _mm512_max_epu8(a, b);
}
/* 16-bit magnitudes times the reciprocal, then the sign again. */
static inline __m256i divide_i8_half(__m256i x, const cst_divisor *by)
{
    vec wide = _mm512_cvtepi8_epi16(x), sign = _mm512_srai_epi16(wide, 15);
    vec q = _mm512_mulhi_epu16(_mm512_abs_epi16(wide), _mm512_set1_epi16((short)by->reciprocal8));
    return _mm512_cvtepi16_epi8(_mm512_sub_epi16(_mm512_xor_si512(q, sign), sign));
}
static inline __m256i divide_u8_half(__m256i x, const cst_divisor *by)
{
    return _mm512_cvtepi16_epi8(_mm512_mulhi_epu16(_mm512_cvtepu8_epi16(x), _mm512_set1_epi16((short)by->reciprocal8)));
}
static inline vec divide_i8(vec v, const cst_divisor *by)
{
    __m256i low = divide_i8_half(_mm512_castsi512_si256(v), by);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), divide_i8_half(_mm512_extracti64x4_epi64(v, 1), by), 1);
}
static inline vec divide_u8(vec v, const cst_divisor *by)
{
    __m256i low = divide_u8_half(_mm512_castsi512_si256(v), by);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), divide_u8_half(_mm512_extracti64x4_epi64(v, 1), by), 1);
}

/* --- 32-bit integers --- */
static inline vec add_i32(vec a, vec b)
{
    return _mm512_add_epi32(a, b);
}
static inline vec mul_i32(vec a, vec b)
{
    return _mm512_mullo_epi32(a, b);
}
static inline vec min_i32(vec a, vec b)
{
    return _mm512_min_epi32(a, b);
}
static inline vec max_i32(vec a, vec b)
{
    return _mm512_max_epi32(a, b);
}
static inline vec min_u32(vec a, vec b)
{
    return _mm512_min_epu32(a, b);
}
static inline vec max_u32(vec a, vec b)
{
    return _mm512_max_epu32(a, b);
}
/* In f64 (vec_avx2.h says why that is exact). */
static inline __m256i divide_i32_half(__m256i x, const cst_divisor *by)
{
    return _mm512_cvttpd_epi32(_mm512_div_pd(_mm512_cvtepi32_pd(x), _mm512_set1_pd(by->f64)));
}
static inline __m256i divide_u32_half(__m256i x, const cst_divisor *by)
{
    return _mm512_cvttpd_epu32(_mm512_div_pd(_mm512_cvtepu32_pd(x), _mm512_set1_pd(by->f64)));
}
static inline vec divide_i32(vec v, const cst_divisor *by)
{
    __m256i low = divide_i32_half(_mm512_castsi512_si256(v), by);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), divide_i32_half(_mm512_extracti64x4_epi64(v, 1), by), 1);
}
static inline vec divide_u32(vec v, const cst_divisor *by)
{
    __m256i low = divide_u32_half(_mm512_castsi512_si256(v), by);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), divide_u32_half(_mm512_extracti64x4_epi64(v, 1), by), 1);
}
static inline vec scale_i32(vec v, const cst_divisor *by)
{
    vec bias = _mm512_and_si512(_mm512_srai_epi32(v, 31), _mm512_set1_epi32((int)(by->n - 1)));
    return _mm512_sra_epi32(_mm512_add_epi32(v, bias), _mm_cvtsi32_si128(by->shift));
}
static inline vec scale_u32(vec v, const cst_divisor *by)
{
    return _mm512_srl_epi32(v, _mm_cvtsi32_si128(by->shift));
}

/* --- 64-bit integers --- */
static inline vec add_i64(vec a, vec b)
{
    return _mm512_add_epi64(a, b);
}
static inline vec mul_i64(vec a, vec b)
{
    return _mm512_mullo_epi64(a, b);
}
static inline vec min_i64(vec a, vec b)
{
    return _mm512_min_epi64(a, b);
}
static inline vec max_i64(vec a, vec b)
{
    return _mm512_max_epi64(a, b);
}
static inline vec min_u64(vec a, vec b)
{
    return _mm512_min_epu64(a, b);
}
static inline vec max_u64(vec a, vec b)
{
    return _mm512_max_epu64(a, b);
}
static inline vec scale_i64(vec v, const cst_divisor *by)
{
    vec bias = _mm512_and_si512(_mm512_srai_epi64(v, 63), _mm512_set1_epi64((long long)by->n - 1));
    return _mm512_sra_epi64(_mm512_add_epi64(v, bias), _mm_cvtsi32_si128(by->shift));
}
static inline vec scale_u64(vec v, const cst_divisor *by)
{
    return _mm512_srl_epi64(v, _mm_cvtsi32_si128(by->shift));
}
#include "kernels/simd/divide64.h"
#endif
