/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions n>m: n sources, m destinations. In place, destination j is source j, as in an all-reduce in shared memory. */
#include "bench_kernels/row.h"
#include "kernels/convert/convert.h"
#include "kernels/reduce/reduce.h"

#include <string.h>

/* number: dtype, op, sources, destinations, 1 for in place, flags */
static void run_reduce(const kernel_row *row, char *const buffer[], size_t bytes)
{
    const int *n = row->number, first = n[4] ? 0 : n[2];
    const coset_dtype dtype = (coset_dtype)n[0];
    const coset_op op = (coset_op)n[1];
    cst_reduce(dtype, op, (void *const *)(buffer + first), n[3], (const void *const *)buffer, n[2],
               bytes / coset_dtype_size(dtype), op == COSET_AVG ? (unsigned)n[2] : 1, (unsigned)n[5]);
}

/* number: dtype; `bytes` are those of the f32 side */
static void run_widen(const kernel_row *row, char *const buffer[], size_t bytes)
{
    cst_widen((coset_dtype)row->number[0], (float *)(void *)buffer[0], buffer[1], bytes / sizeof(float));
}
static void run_narrow(const kernel_row *row, char *const buffer[], size_t bytes)
{
    cst_narrow((coset_dtype)row->number[0], buffer[1], (const float *)(const void *)buffer[0], bytes / sizeof(float),
               1);
}

/* For comparison: the C library's copy. */
static void run_memcpy(const kernel_row *row, char *const buffer[], size_t bytes)
{
    (void)row;
    memcpy(buffer[1], buffer[0], bytes);
}

#define REDUCE(name, dtype, op, nsrc, ndst, flags)                                                                     \
    {                                                                                                                  \
        "reduce " name, nsrc + ndst, nsrc + ndst, 4, run_reduce, NULL, NULL,                                           \
        {                                                                                                              \
            dtype, op, nsrc, ndst, 0, flags                                                                            \
        }                                                                                                              \
    }
#define IN_PLACE(name, dtype, op, nsrc, ndst, flags)                                                                   \
    {                                                                                                                  \
        "reduce " name " in place", nsrc, nsrc + ndst, 4, run_reduce, NULL, NULL,                                      \
        {                                                                                                              \
            dtype, op, nsrc, ndst, 1, flags                                                                            \
        }                                                                                                              \
    }

const kernel_row kernel_rows_reduce[] = {
    {"memcpy", 2, 2, 4, run_memcpy, NULL, NULL, {0}},
    REDUCE("f32 sum 2>1", COSET_F32, COSET_SUM, 2, 1, 0),
    IN_PLACE("f32 sum 2>1", COSET_F32, COSET_SUM, 2, 1, 0),
    IN_PLACE("f32 sum 2>2", COSET_F32, COSET_SUM, 2, 2, 0),
    REDUCE("f32 sum 2>2", COSET_F32, COSET_SUM, 2, 2, 0),
    REDUCE("f32 sum 2>2 nt rest", COSET_F32, COSET_SUM, 2, 2, CST_REDUCE_NT_REST),
    REDUCE("f32 sum 2>2 nt", COSET_F32, COSET_SUM, 2, 2, CST_REDUCE_NT_FIRST | CST_REDUCE_NT_REST),
    IN_PLACE("f32 sum 3>3", COSET_F32, COSET_SUM, 3, 3, 0),
    IN_PLACE("f32 sum 4>4", COSET_F32, COSET_SUM, 4, 4, 0),
    REDUCE("f32 sum 4>4", COSET_F32, COSET_SUM, 4, 4, 0),
    REDUCE("f32 sum 8>1", COSET_F32, COSET_SUM, 8, 1, 0),
    IN_PLACE("f32 avg 2>2", COSET_F32, COSET_AVG, 2, 2, 0),
    IN_PLACE("f32 avg 3>3", COSET_F32, COSET_AVG, 3, 3, 0),
    IN_PLACE("f32 min 2>2", COSET_F32, COSET_MIN, 2, 2, 0),
    IN_PLACE("f32 max 2>2", COSET_F32, COSET_MAX, 2, 2, 0),
    IN_PLACE("f64 sum 2>2", COSET_F64, COSET_SUM, 2, 2, 0),
    IN_PLACE("f16 sum 2>2", COSET_F16, COSET_SUM, 2, 2, 0),
    IN_PLACE("f16 avg 3>3", COSET_F16, COSET_AVG, 3, 3, 0),
    IN_PLACE("bf16 sum 2>2", COSET_BF16, COSET_SUM, 2, 2, 0),
    IN_PLACE("bf16 max 4>4", COSET_BF16, COSET_MAX, 4, 4, 0),
    IN_PLACE("i8 sum 2>2", COSET_I8, COSET_SUM, 2, 2, 0),
    IN_PLACE("u8 avg 3>3", COSET_U8, COSET_AVG, 3, 3, 0),
    IN_PLACE("i32 sum 2>2", COSET_I32, COSET_SUM, 2, 2, 0),
    IN_PLACE("i32 avg 2>2", COSET_I32, COSET_AVG, 2, 2, 0),
    IN_PLACE("i32 avg 3>3", COSET_I32, COSET_AVG, 3, 3, 0),
    IN_PLACE("i64 sum 2>2", COSET_I64, COSET_SUM, 2, 2, 0),
    IN_PLACE("i64 max 2>2", COSET_I64, COSET_MAX, 2, 2, 0),
    IN_PLACE("i64 avg 3>3", COSET_I64, COSET_AVG, 3, 3, 0),
    {"widen f16", 2, 1.5, 4, run_widen, NULL, NULL, {COSET_F16}},
    {"widen bf16", 2, 1.5, 4, run_widen, NULL, NULL, {COSET_BF16}},
    {"narrow f16", 2, 1.5, 4, run_narrow, NULL, NULL, {COSET_F16}},
    {"narrow bf16", 2, 1.5, 4, run_narrow, NULL, NULL, {COSET_BF16}},
    {NULL, 0, 0, 0, NULL, NULL, NULL, {0}},
};
