/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

const unsigned char cst_dtype_bytes[COSET_DTYPE_COUNT] = {
    [COSET_F32] = 4, [COSET_F64] = 8, [COSET_F16] = 2, [COSET_BF16] = 2, [COSET_I8] = 1,
    [COSET_U8] = 1,  [COSET_I32] = 4, [COSET_U32] = 4, [COSET_I64] = 8,  [COSET_U64] = 8,
};
static const char *const dtypes[COSET_DTYPE_COUNT] = {
    [COSET_F32] = "f32", [COSET_F64] = "f64", [COSET_F16] = "f16", [COSET_BF16] = "bf16", [COSET_I8] = "i8",
    [COSET_U8] = "u8",   [COSET_I32] = "i32", [COSET_U32] = "u32", [COSET_I64] = "i64",   [COSET_U64] = "u64",
};
static const char *const ops[COSET_OP_COUNT] = {
    [COSET_SUM] = "sum", [COSET_AVG] = "avg", [COSET_MIN] = "min", [COSET_MAX] = "max", [COSET_PROD] = "prod",
};

bool cst_dtype_valid(int dtype)
{
    return dtype >= 0 && dtype < COSET_DTYPE_COUNT;
}

bool cst_op_valid(int op)
{
    return op >= 0 && op < COSET_OP_COUNT;
}

bool cst_dtype_is_half(coset_dtype dtype)
{
    return dtype == COSET_F16 || dtype == COSET_BF16;
}

bool cst_dtype_is_float(coset_dtype dtype)
{
    return dtype == COSET_F32 || dtype == COSET_F64 || cst_dtype_is_half(dtype);
}

size_t coset_dtype_size(coset_dtype dtype)
{
    return cst_dtype_valid((int)dtype) ? cst_dtype_bytes[dtype] : 0;
}

const char *coset_dtype_name(coset_dtype dtype)
{
    return cst_dtype_valid((int)dtype) ? dtypes[dtype] : "?";
}

const char *coset_op_name(coset_op op)
{
    return cst_op_valid((int)op) ? ops[op] : "?";
}
