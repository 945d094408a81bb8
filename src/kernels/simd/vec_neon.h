/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 16 bytes, AArch64 NEON. The names and meanings are those of vec_avx2.h. */
#ifndef CST_KERNELS_SIMD_VEC_NEON_H
#define CST_KERNELS_SIMD_VEC_NEON_H
#include "kernels/simd/pass.h"

#include <arm_neon.h>
#include <string.h>

typedef uint8x16_t vec;
typedef uint16x4_t half_vec;
#define VEC_BYTES 16

#define F32(v)      vreinterpretq_f32_u8(v)
#define F64(v)      vreinterpretq_f64_u8(v)
#define S8(v)       vreinterpretq_s8_u8(v)
#define S32(v)      vreinterpretq_s32_u8(v)
#define U32(v)      vreinterpretq_u32_u8(v)
#define S64(v)      vreinterpretq_s64_u8(v)
#define U64(v)      vreinterpretq_u64_u8(v)
#define FROM_F32(v) vreinterpretq_u8_f32(v)
#define FROM_F64(v) vreinterpretq_u8_f64(v)
#define FROM_S8(v)  vreinterpretq_u8_s8(v)
#define FROM_S32(v) vreinterpretq_u8_s32(v)
#define FROM_U32(v) vreinterpretq_u8_u32(v)
#define FROM_S64(v) vreinterpretq_u8_s64(v)
#define FROM_U64(v) vreinterpretq_u8_u64(v)

/* --- memory --- */
static inline vec load(const void *p)
{
    return vld1q_u8(p);
}
static inline void store(void *p, vec v)
{
    vst1q_u8(p, v);
}
/* AArch64 has only a hint for pairs of registers (STNP): plain stores. */
static inline void stream(void *p, vec v)
{
    store(p, v);
}
static inline void vec_fence(void)
{
}
static inline vec load_part(const void *p, size_t bytes)
{
    char t[VEC_BYTES] = {0};
    memcpy(t, p, bytes);
    return load(t);
}
static inline void store_part(void *p, vec v, size_t bytes)
{
    char t[VEC_BYTES];
    store(t, v);
    memcpy(p, t, bytes);
}

/* --- 16-bit floats: 4 of them (8 bytes) in memory, 4 f32 in the register --- */
static inline vec widen_f16(half_vec h)
{
    return FROM_F32(vcvt_f32_f16(vreinterpret_f16_u16(h)));
}
static inline half_vec narrow_f16(vec v)
{
    return vreinterpret_u16_f16(vcvt_f16_f32(F32(v)));
}
static inline vec widen_bf16(half_vec h)
{
    return FROM_U32(vshll_n_u16(h, 16));
}
static inline half_vec narrow_bf16(vec v)
{
    uint32x4_t odd = vandq_u32(vshrq_n_u32(U32(v), 16), vdupq_n_u32(1));
    return vshrn_n_u32(vaddq_u32(vaddq_u32(U32(v), vdupq_n_u32(0x7fff)), odd), 16);
}
static inline half_vec load_half(const void *p)
{
    return vreinterpret_u16_u8(vld1_u8(p));
}
static inline half_vec load_half_part(const void *p, size_t bytes)
{
    char t[VEC_BYTES / 2] = {0};
    memcpy(t, p, bytes);
    return load_half(t);
}
static inline vec as_low_half(half_vec h)
{
    return vcombine_u8(vreinterpret_u8_u16(h), vdup_n_u8(0));
}
static inline half_vec low_half(vec v)
{
    return vreinterpret_u16_u8(vget_low_u8(v));
}
static inline void store_half(void *p, half_vec h)
{
    vst1_u8(p, vreinterpret_u8_u16(h));
}
static inline void stream_half(void *p, half_vec h)
{
    store_half(p, h);
}

/* --- f32: FMIN and FMAX order the zeros and keep NaN --- */
static inline vec add_f32(vec a, vec b)
{
    return FROM_F32(vaddq_f32(F32(a), F32(b)));
}
static inline vec mul_f32(vec a, vec b)
{
    return FROM_F32(vmulq_f32(F32(a), F32(b)));
}
static inline vec min_f32(vec a, vec b)
{
    return FROM_F32(vminq_f32(F32(a), F32(b)));
}
static inline vec max_f32(vec a, vec b)
{
    return FROM_F32(vmaxq_f32(F32(a), F32(b)));
}
static inline vec scale_f32(vec v, const cst_divisor *by)
{
    return FROM_F32(vmulq_n_f32(F32(v), by->f32_inverse));
}
static inline vec divide_f32(vec v, const cst_divisor *by)
{
    return FROM_F32(vdivq_f32(F32(v), vdupq_n_f32(by->f32)));
}
static inline vec settle_f32(vec v)
{
    uint32x4_t number = vceqq_f32(F32(v), F32(v));
    return FROM_U32(vbslq_u32(number, U32(v), vdupq_n_u32(0x7fc00000)));
}

/* --- f64 --- */
static inline vec add_f64(vec a, vec b)
{
    return FROM_F64(vaddq_f64(F64(a), F64(b)));
}
static inline vec mul_f64(vec a, vec b)
{
    return FROM_F64(vmulq_f64(F64(a), F64(b)));
}
static inline vec min_f64(vec a, vec b)
{
    return FROM_F64(vminq_f64(F64(a), F64(b)));
}
static inline vec max_f64(vec a, vec b)
{
    return FROM_F64(vmaxq_f64(F64(a), F64(b)));
}
static inline vec scale_f64(vec v, const cst_divisor *by)
{
    return FROM_F64(vmulq_n_f64(F64(v), 1 / by->f64));
}
static inline vec divide_f64(vec v, const cst_divisor *by)
{
    return FROM_F64(vdivq_f64(F64(v), vdupq_n_f64(by->f64)));
}
static inline vec settle_f64(vec v)
{
    uint64x2_t number = vceqq_f64(F64(v), F64(v));
    return FROM_U64(vbslq_u64(number, U64(v), vdupq_n_u64(0x7ff8000000000000)));
}

/* --- 8-bit integers --- */
static inline vec add_i8(vec a, vec b)
{
    return vaddq_u8(a, b);
}
static inline vec mul_i8(vec a, vec b)
{
    return vmulq_u8(a, b);
}
static inline vec min_i8(vec a, vec b)
{
    return FROM_S8(vminq_s8(S8(a), S8(b)));
}
static inline vec max_i8(vec a, vec b)
{
    return FROM_S8(vmaxq_s8(S8(a), S8(b)));
}
static inline vec min_u8(vec a, vec b)
{
    return vminq_u8(a, b);
}
static inline vec max_u8(vec a, vec b)
{
    return vmaxq_u8(a, b);
}
/* x * reciprocal >> 16 of eight 8-bit magnitudes. */
static inline uint8x8_t divide_u8_half(uint8x8_t x, const cst_divisor *by)
{
    uint16x8_t wide = vmovl_u8(x);
    uint16x4_t low = vshrn_n_u32(vmull_n_u16(vget_low_u16(wide), by->reciprocal8), 16);
    uint16x4_t high = vshrn_n_u32(vmull_n_u16(vget_high_u16(wide), by->reciprocal8), 16);
    return vmovn_u16(vcombine_u16(low, high));
}
static inline vec divide_u8(vec v, const cst_divisor *by)
{
    return vcombine_u8(divide_u8_half(vget_low_u8(v), by), divide_u8_half(vget_high_u8(v), by));
}
static inline vec divide_i8(vec v, const cst_divisor *by)
{
    vec sign = FROM_S8(vshrq_n_s8(S8(v), 7));
    vec q = divide_u8(FROM_S8(vabsq_s8(S8(v))), by);
    return vsubq_u8(veorq_u8(q, sign), sign);
}

/* --- 32-bit integers --- */
static inline vec add_i32(vec a, vec b)
{
    return FROM_U32(vaddq_u32(U32(a), U32(b)));
}
static inline vec mul_i32(vec a, vec b)
{
    return FROM_U32(vmulq_u32(U32(a), U32(b)));
}
static inline vec min_i32(vec a, vec b)
{
    return FROM_S32(vminq_s32(S32(a), S32(b)));
}
static inline vec max_i32(vec a, vec b)
{
    return FROM_S32(vmaxq_s32(S32(a), S32(b)));
}
static inline vec min_u32(vec a, vec b)
{
    return FROM_U32(vminq_u32(U32(a), U32(b)));
}
static inline vec max_u32(vec a, vec b)
{
    return FROM_U32(vmaxq_u32(U32(a), U32(b)));
}
/* In f64 (vec_avx2.h says why that is exact). */
static inline int32x2_t divide_i32_half(int32x2_t x, const cst_divisor *by)
{
    float64x2_t q = vdivq_f64(vcvtq_f64_s64(vmovl_s32(x)), vdupq_n_f64(by->f64));
    return vmovn_s64(vcvtq_s64_f64(q));
}
static inline uint32x2_t divide_u32_half(uint32x2_t x, const cst_divisor *by)
{
    float64x2_t q = vdivq_f64(vcvtq_f64_u64(vmovl_u32(x)), vdupq_n_f64(by->f64));
    return vmovn_u64(vcvtq_u64_f64(q));
}
static inline vec divide_i32(vec v, const cst_divisor *by)
{
    return FROM_S32(
        vcombine_s32(divide_i32_half(vget_low_s32(S32(v)), by), divide_i32_half(vget_high_s32(S32(v)), by)));
}
static inline vec divide_u32(vec v, const cst_divisor *by)
{
    return FROM_U32(
        vcombine_u32(divide_u32_half(vget_low_u32(U32(v)), by), divide_u32_half(vget_high_u32(U32(v)), by)));
}
static inline vec scale_i32(vec v, const cst_divisor *by)
{
    int32x4_t bias = vandq_s32(vshrq_n_s32(S32(v), 31), vdupq_n_s32((int32_t)(by->n - 1)));
    return FROM_S32(vshlq_s32(vaddq_s32(S32(v), bias), vdupq_n_s32(-by->shift)));
}
static inline vec scale_u32(vec v, const cst_divisor *by)
{
    return FROM_U32(vshlq_u32(U32(v), vdupq_n_s32(-by->shift)));
}

/* --- 64-bit integers --- */
static inline vec add_i64(vec a, vec b)
{
    return FROM_U64(vaddq_u64(U64(a), U64(b)));
}
/* NEON has no 64-bit multiplication. */
static inline vec mul_i64(vec a, vec b)
{
    uint64x2_t x = U64(a), y = U64(b);
    return FROM_U64(vcombine_u64(vcreate_u64(vgetq_lane_u64(x, 0) * vgetq_lane_u64(y, 0)),
                                 vcreate_u64(vgetq_lane_u64(x, 1) * vgetq_lane_u64(y, 1))));
}
static inline vec min_i64(vec a, vec b)
{
    return vbslq_u8(FROM_U64(vcgtq_s64(S64(a), S64(b))), b, a);
}
static inline vec max_i64(vec a, vec b)
{
    return vbslq_u8(FROM_U64(vcgtq_s64(S64(a), S64(b))), a, b);
}
static inline vec min_u64(vec a, vec b)
{
    return vbslq_u8(FROM_U64(vcgtq_u64(U64(a), U64(b))), b, a);
}
static inline vec max_u64(vec a, vec b)
{
    return vbslq_u8(FROM_U64(vcgtq_u64(U64(a), U64(b))), a, b);
}
static inline vec scale_i64(vec v, const cst_divisor *by)
{
    int64x2_t bias = vandq_s64(vshrq_n_s64(S64(v), 63), vdupq_n_s64((int64_t)by->n - 1));
    return FROM_S64(vshlq_s64(vaddq_s64(S64(v), bias), vdupq_n_s64(-by->shift)));
}
static inline vec scale_u64(vec v, const cst_divisor *by)
{
    return FROM_U64(vshlq_u64(U64(v), vdupq_n_s64(-by->shift)));
}
#include "kernels/simd/divide64.h"
#endif
