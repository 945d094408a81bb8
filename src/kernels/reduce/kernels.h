/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vector kernels of one instruction set, whose shim the including file has included before: every element type
 * with every operator. Sums and products of unsigned integers are those of signed ones; 16-bit floats combine as f32.
 */
#ifndef CST_KERNELS_REDUCE_KERNELS_H
#define CST_KERNELS_REDUCE_KERNELS_H
#include "kernels/reduce/table.h"
#include "kernels/simd/kinds.h"

/* The kernel NAME: elements of `kind` combined by `op`. */
#define KERNEL(name, kind, op)                                                                                         \
    static void name(const cst_pass *pass)                                                                             \
    {                                                                                                                  \
        pass_run(pass, &kind, op);                                                                                     \
    }

KERNEL(f32_sum, kind_f32, add_f32)
KERNEL(f32_min, kind_f32, min_f32)
KERNEL(f32_max, kind_f32, max_f32)
KERNEL(f32_prod, kind_f32, mul_f32)

KERNEL(f64_sum, kind_f64, add_f64)
KERNEL(f64_min, kind_f64, min_f64)
KERNEL(f64_max, kind_f64, max_f64)
KERNEL(f64_prod, kind_f64, mul_f64)

KERNEL(f16_sum, kind_f16, add_f32)
KERNEL(f16_min, kind_f16, min_f32)
KERNEL(f16_max, kind_f16, max_f32)
KERNEL(f16_prod, kind_f16, mul_f32)

KERNEL(bf16_sum, kind_bf16, add_f32)
KERNEL(bf16_min, kind_bf16, min_f32)
KERNEL(bf16_max, kind_bf16, max_f32)
KERNEL(bf16_prod, kind_bf16, mul_f32)

KERNEL(i8_sum, kind_i8, add_i8)
KERNEL(i8_min, kind_i8, min_i8)
KERNEL(i8_max, kind_i8, max_i8)
KERNEL(i8_prod, kind_i8, mul_i8)

KERNEL(u8_sum, kind_u8, add_i8)
KERNEL(u8_min, kind_u8, min_u8)
KERNEL(u8_max, kind_u8, max_u8)
KERNEL(u8_prod, kind_u8, mul_i8)

KERNEL(i32_sum, kind_i32, add_i32)
KERNEL(i32_min, kind_i32, min_i32)
KERNEL(i32_max, kind_i32, max_i32)
KERNEL(i32_prod, kind_i32, mul_i32)

KERNEL(u32_sum, kind_u32, add_i32)
KERNEL(u32_min, kind_u32, min_u32)
KERNEL(u32_max, kind_u32, max_u32)
KERNEL(u32_prod, kind_u32, mul_i32)

KERNEL(i64_sum, kind_i64, add_i64)
KERNEL(i64_min, kind_i64, min_i64)
KERNEL(i64_max, kind_i64, max_i64)
KERNEL(i64_prod, kind_i64, mul_i64)

KERNEL(u64_sum, kind_u64, add_i64)
KERNEL(u64_min, kind_u64, min_u64)
KERNEL(u64_max, kind_u64, max_u64)
KERNEL(u64_prod, kind_u64, mul_i64)

/* clang-format off */
#define ROW(type) {type##_sum, type##_sum, type##_min, type##_max, type##_prod}
#define CST_REDUCE_TABLE {{ \
    [COSET_F32] = ROW(f32), [COSET_F64] = ROW(f64), [COSET_F16] = ROW(f16), [COSET_BF16] = ROW(bf16), \
    [COSET_I8] = ROW(i8), [COSET_U8] = ROW(u8), [COSET_I32] = ROW(i32), [COSET_U32] = ROW(u32), \
    [COSET_I64] = ROW(i64), [COSET_U64] = ROW(u64)}}
/* clang-format on */
#endif
