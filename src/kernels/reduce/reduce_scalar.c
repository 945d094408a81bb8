/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of every reduction: plain C, one element at a time. Three families, by what the accumulator is: float
 * (f32, f16, bf16), double (f64), 64-bit integer (all integers: sums and products modulo 2^64 are right modulo 2^8 and
 * 2^32 as well).
 *
 * The loops are forced inline so that the function pointers are constants in each kernel.
 */
#include "kernels/convert/half.h"
#include "kernels/reduce/table.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#define INLINE static inline __attribute__((always_inline))

_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must round to float at every step");

static const char *source(const cst_pass *pass, int s, size_t i, size_t size)
{
    return (const char *)pass->src[s] + i * size;
}

static void store_all(const cst_pass *pass, size_t i, size_t size, const void *value)
{
    for (int d = 0; d < pass->ndst; d++)
        memcpy((char *)pass->dst[d] + i * size, value, size);
}

/* --- float --- */
typedef struct {
    size_t size;
    float (*load)(const char *p);
    void (*pack)(float x, void *out);
} float_type;

static float load_f32(const char *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}
static float load_f16(const char *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return cst_f16_to_f32(h);
}
static float load_bf16(const char *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return cst_bf16_to_f32(h);
}
static void pack_f32(float x, void *out)
{
    uint32_t u = isnan(x) ? CST_NAN_F32 : cst_float_bits(x);
    memcpy(out, &u, sizeof u);
}
static void pack_f16(float x, void *out)
{
    uint16_t h = cst_f32_to_f16(x);
    memcpy(out, &h, sizeof h);
}
static void pack_bf16(float x, void *out)
{
    uint16_t h = cst_f32_to_bf16(x);
    memcpy(out, &h, sizeof h);
}

static float sum_float(float a, float b)
{
    return a + b;
}
static float prod_float(float a, float b)
{
    return a * b;
}
static float min_float(float a, float b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b; /* -0 before +0 */
    return a < b ? a : b;
}
static float max_float(float a, float b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? b : a;
    return a < b ? b : a;
}

INLINE void reduce_float(const cst_pass *pass, const float_type *type, float (*op)(float, float))
{
    for (size_t i = 0; i < pass->count; i++) {
        float x = type->load(source(pass, 0, i, type->size));
        for (int s = 1; s < pass->nsrc; s++)
            x = op(x, type->load(source(pass, s, i, type->size)));
        if (pass->by)
            x /= pass->by->f32;
        uint32_t packed;
        type->pack(x, &packed);
        store_all(pass, i, type->size, &packed);
    }
}

static const float_type f32 = {4, load_f32, pack_f32};
static const float_type f16 = {2, load_f16, pack_f16};
static const float_type bf16 = {2, load_bf16, pack_bf16};

/* --- double --- */
static double sum_double(double a, double b)
{
    return a + b;
}
static double prod_double(double a, double b)
{
    return a * b;
}
static double min_double(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}
static double max_double(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? b : a;
    return a < b ? b : a;
}

static double load_f64(const char *p)
{
    double x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE void reduce_double(const cst_pass *pass, double (*op)(double, double))
{
    for (size_t i = 0; i < pass->count; i++) {
        double x = load_f64(source(pass, 0, i, sizeof x));
        for (int s = 1; s < pass->nsrc; s++)
            x = op(x, load_f64(source(pass, s, i, sizeof x)));
        if (pass->by)
            x /= pass->by->f64;
        const uint64_t nan = CST_NAN_F64;
        store_all(pass, i, sizeof x, isnan(x) ? (const void *)&nan : (const void *)&x);
    }
}

/* --- integers --- */
typedef struct {
    size_t size;
    bool is_signed;
} integer_type;

/* The low bytes of x as a number of the type, extended to 64 bits. */
INLINE int64_t wrap(const integer_type *type, int64_t x)
{
    switch (type->size) {
    case 1: return type->is_signed ? (int8_t)x : (uint8_t)x;
    case 4: return type->is_signed ? (int32_t)x : (int64_t)(uint32_t)x;
    default: return x;
    }
}

INLINE int64_t load_integer(const integer_type *type, const char *p)
{
    uint8_t u8;
    uint32_t u32;
    int64_t x;
    switch (type->size) {
    case 1: memcpy(&u8, p, 1); return wrap(type, u8);
    case 4: memcpy(&u32, p, 4); return wrap(type, u32);
    default: memcpy(&x, p, 8); return x;
    }
}

static int64_t sum_integer(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t prod_integer(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static bool below(int64_t a, int64_t b, bool is_signed)
{
    return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}
static int64_t min_integer(int64_t a, int64_t b, bool is_signed)
{
    return below(b, a, is_signed) ? b : a;
}
static int64_t max_integer(int64_t a, int64_t b, bool is_signed)
{
    return below(a, b, is_signed) ? b : a;
}

INLINE void reduce_integer(const cst_pass *pass, const integer_type *type, int64_t (*op)(int64_t, int64_t, bool))
{
    for (size_t i = 0; i < pass->count; i++) {
        int64_t x = load_integer(type, source(pass, 0, i, type->size));
        for (int s = 1; s < pass->nsrc; s++)
            x = op(x, load_integer(type, source(pass, s, i, type->size)), type->is_signed);
        if (pass->by) {
            x = wrap(type, x);
            x = type->is_signed ? x / (int64_t)pass->by->n : (int64_t)((uint64_t)x / pass->by->n);
        }
        switch (type->size) {
        case 1: store_all(pass, i, 1, &(uint8_t){(uint8_t)x}); break;
        case 4: store_all(pass, i, 4, &(uint32_t){(uint32_t)x}); break;
        default: store_all(pass, i, 8, &x); break;
        }
    }
}

static const integer_type i8 = {1, true}, u8 = {1, false}, i32 = {4, true}, u32 = {4, false}, i64 = {8, true},
                          u64 = {8, false};

/* --- the kernels --- */
#define FLOAT(type, op)                                                                                                \
    static void type##_##op(const cst_pass *pass)                                                                      \
    {                                                                                                                  \
        reduce_float(pass, &type, op##_float);                                                                         \
    }
#define DOUBLE(op)                                                                                                     \
    static void f64_##op(const cst_pass *pass)                                                                         \
    {                                                                                                                  \
        reduce_double(pass, op##_double);                                                                              \
    }
#define INTEGER(type, op)                                                                                              \
    static void type##_##op(const cst_pass *pass)                                                                      \
    {                                                                                                                  \
        reduce_integer(pass, &type, op##_integer);                                                                     \
    }
#define EVERY_OP(family, type) family(type, sum) family(type, min) family(type, max) family(type, prod)

EVERY_OP(FLOAT, f32)
EVERY_OP(FLOAT, f16)
EVERY_OP(FLOAT, bf16)
DOUBLE(sum)
DOUBLE(min)
DOUBLE(max)
DOUBLE(prod)
EVERY_OP(INTEGER, i8)
EVERY_OP(INTEGER, u8)
EVERY_OP(INTEGER, i32)
EVERY_OP(INTEGER, u32)
EVERY_OP(INTEGER, i64)
EVERY_OP(INTEGER, u64)

#define ROW(type)                                                                                                      \
    {                                                                                                                  \
        type##_sum, type##_sum, type##_min, type##_max, type##_prod                                                    \
    }
const cst_reduce_table cst_reduce_scalar = {{[COSET_F32] = ROW(f32),
                                             [COSET_F64] = ROW(f64),
                                             [COSET_F16] = ROW(f16),
                                             [COSET_BF16] = ROW(bf16),
                                             [COSET_I8] = ROW(i8),
                                             [COSET_U8] = ROW(u8),
                                             [COSET_I32] = ROW(i32),
                                             [COSET_U32] = ROW(u32),
                                             [COSET_I64] = ROW(i64),
                                             [COSET_U64] = ROW(u64)}};
