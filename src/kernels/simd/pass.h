/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over memory: n source vectors are read once, combined element by element, and the result is written to m
 * destinations. Reductions and conversions are passes; a kernel is a function that runs one.
 */
#ifndef CST_KERNELS_SIMD_PASS_H
#define CST_KERNELS_SIMD_PASS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Non-temporal stores: past the caches, for memory that is not read again soon. Ignored where alignment forbids. */
enum {
    CST_REDUCE_NT_FIRST = 1u << 0, /* to dst[0] */
    CST_REDUCE_NT_REST = 1u << 1   /* to dst[1], dst[2], ... */
};

/* The number that results are divided by, at least 2, in the forms that kernels want. */
typedef struct {
    bool power_of_two; /* then x / n == x * (1 / n) exactly */
    unsigned n;
    int shift; /* log2 n, for a power of two */
    float f32, f32_inverse;
    double f64;
    uint16_t reciprocal8; /* x / n == x * reciprocal8 >> 16 for 0 <= x <= 255 */
} cst_divisor;
cst_divisor cst_divisor_of(unsigned n);

typedef struct {
    void *const *dst;
    const void *const *src;
    int ndst, nsrc;
    size_t count; /* elements, at least 1 */
    unsigned flags;
    const cst_divisor *by; /* NULL: no division */
} cst_pass;

typedef void cst_pass_fn(const cst_pass *pass);
#endif
