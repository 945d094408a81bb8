/* SPDX-License-Identifier: Apache-2.0 */
/* How each element type goes through the loops, in terms of the shim included before. */
#ifndef CST_KERNELS_SIMD_KINDS_H
#define CST_KERNELS_SIMD_KINDS_H
#include "kernels/simd/loops.h"

/* 16-bit floats pass through the registers as f32. */
static inline vec load_f16(const void *p)
{
    return widen_f16(load_half(p));
}
static inline vec load_f16_part(const void *p, size_t bytes)
{
    return widen_f16(load_half_part(p, bytes));
}
static inline void store_f16(void *p, vec v)
{
    store_half(p, narrow_f16(v));
}
static inline void store_f16_part(void *p, vec v, size_t bytes)
{
    store_half_part(p, narrow_f16(v), bytes);
}
static inline void stream_f16(void *p, vec v)
{
    stream_half(p, narrow_f16(v));
}
static inline vec load_bf16(const void *p)
{
    return widen_bf16(load_half(p));
}
static inline vec load_bf16_part(const void *p, size_t bytes)
{
    return widen_bf16(load_half_part(p, bytes));
}
static inline void store_bf16(void *p, vec v)
{
    store_half(p, narrow_bf16(v));
}
static inline void store_bf16_part(void *p, vec v, size_t bytes)
{
    store_half_part(p, narrow_bf16(v), bytes);
}
static inline void stream_bf16(void *p, vec v)
{
    stream_half(p, narrow_bf16(v));
}
static inline vec settle_integer(vec v)
{
    return v;
}

#define F32_LANES (VEC_BYTES / 4)

/* Sources in F32, F16 or BF16, destinations in another of them: these parts of a pass_kind are put together below. */
#define FROM_F32_LANES .load = load, .load_part = load_part, .in = 4
#define FROM_F16_LANES .load = load_f16, .load_part = load_f16_part, .in = 2
#define FROM_BF16_LANES .load = load_bf16, .load_part = load_bf16_part, .in = 2
#define TO_F32_LANES .store = store, .store_part = store_part, .stream = stream, .out = 4
#define TO_F16_LANES .store = store_f16, .store_part = store_f16_part, .stream = stream_f16, .out = 2
#define TO_BF16_LANES .store = store_bf16, .store_part = store_bf16_part, .stream = stream_bf16, .out = 2
#define IN_F32 .lanes = F32_LANES, .scale = scale_f32, .divide = divide_f32, .settle = settle_f32

#define PLAIN(bytes) .lanes = VEC_BYTES / bytes, .in = bytes, .out = bytes, \
                     .load = load, .load_part = load_part, .store = store, .store_part = store_part, .stream = stream

static const pass_kind kind_f32 = {IN_F32, FROM_F32_LANES, TO_F32_LANES};
static const pass_kind kind_f16 = {IN_F32, FROM_F16_LANES, TO_F16_LANES};
static const pass_kind kind_bf16 = {IN_F32, FROM_BF16_LANES, TO_BF16_LANES};
static const pass_kind kind_f64 = {PLAIN(8), .scale = scale_f64, .divide = divide_f64, .settle = settle_f64};
static const pass_kind kind_i8 = {PLAIN(1), .scale = divide_i8, .divide = divide_i8, .settle = settle_integer};
static const pass_kind kind_u8 = {PLAIN(1), .scale = divide_u8, .divide = divide_u8, .settle = settle_integer};
static const pass_kind kind_i32 = {PLAIN(4), .scale = scale_i32, .divide = divide_i32, .settle = settle_integer};
static const pass_kind kind_u32 = {PLAIN(4), .scale = scale_u32, .divide = divide_u32, .settle = settle_integer};
static const pass_kind kind_i64 = {PLAIN(8), .scale = scale_i64, .divide = divide_i64, .settle = settle_integer};
static const pass_kind kind_u64 = {PLAIN(8), .scale = scale_u64, .divide = divide_u64, .settle = settle_integer};
#endif
