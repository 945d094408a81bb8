/* SPDX-License-Identifier: Apache-2.0 */
/* How each element type goes through the loops, in terms of the shim included before. */
#ifndef CST_KERNELS_SIMD_KINDS_H
#define CST_KERNELS_SIMD_KINDS_H
#include "kernels/simd/loops.h"

/* 16-bit floats pass through the registers as f32; the last step narrows, once for all destinations, into the lower
 * half of a register. */
static inline vec load_f16(const void *p)
{
    return widen_f16(load_half(p));
}
static inline vec load_f16_part(const void *p, size_t bytes)
{
    return widen_f16(load_half_part(p, bytes));
}
static inline vec load_bf16(const void *p)
{
    return widen_bf16(load_half(p));
}
static inline vec load_bf16_part(const void *p, size_t bytes)
{
    return widen_bf16(load_half_part(p, bytes));
}
static inline vec settle_f16(vec v)
{
    return as_low_half(narrow_f16(settle_f32(v)));
}
static inline vec settle_bf16(vec v)
{
    return as_low_half(narrow_bf16(settle_f32(v)));
}
static inline void store_low(void *p, vec v)
{
    store_half(p, low_half(v));
}
static inline void stream_low(void *p, vec v)
{
    stream_half(p, low_half(v));
}
static inline vec settle_integer(vec v)
{
    return v;
}

#define F32_LANES (VEC_BYTES / 4)

/* Sources in F32, F16 or BF16, destinations in one of them: these parts of a pass_kind are put together below. */
#define SOURCE_F32  .load = load, .load_part = load_part, .in = 4
#define SOURCE_F16  .load = load_f16, .load_part = load_f16_part, .in = 2
#define SOURCE_BF16 .load = load_bf16, .load_part = load_bf16_part, .in = 2
#define TARGET_F32  .store = store, .store_part = store_part, .stream = stream, .out = 4, .settle = settle_f32
#define TARGET_LOW  .store = store_low, .store_part = store_part, .stream = stream_low, .out = 2
#define TARGET_F16  TARGET_LOW, .settle = settle_f16
#define TARGET_BF16 TARGET_LOW, .settle = settle_bf16
#define VIA_F32     .lanes = F32_LANES, .scale = scale_f32, .divide = divide_f32

#define PLAIN(bytes)                                                                                                   \
    .lanes = VEC_BYTES / bytes, .in = bytes, .out = bytes, .load = load, .load_part = load_part, .store = store,       \
    .store_part = store_part, .stream = stream

static const pass_kind kind_f32 = {VIA_F32, SOURCE_F32, TARGET_F32};
static const pass_kind kind_f16 = {VIA_F32, SOURCE_F16, TARGET_F16};
static const pass_kind kind_bf16 = {VIA_F32, SOURCE_BF16, TARGET_BF16};
static const pass_kind kind_f64 = {PLAIN(8), .scale = scale_f64, .divide = divide_f64, .settle = settle_f64};
static const pass_kind kind_i8 = {PLAIN(1), .scale = divide_i8, .divide = divide_i8, .settle = settle_integer};
static const pass_kind kind_u8 = {PLAIN(1), .scale = divide_u8, .divide = divide_u8, .settle = settle_integer};
static const pass_kind kind_i32 = {PLAIN(4), .scale = scale_i32, .divide = divide_i32, .settle = settle_integer};
static const pass_kind kind_u32 = {PLAIN(4), .scale = scale_u32, .divide = divide_u32, .settle = settle_integer};
static const pass_kind kind_i64 = {PLAIN(8), .scale = scale_i64, .divide = divide_i64, .settle = settle_integer};
static const pass_kind kind_u64 = {PLAIN(8), .scale = scale_u64, .divide = divide_u64, .settle = settle_integer};
#endif
