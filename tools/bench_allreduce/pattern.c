/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_allreduce/pattern.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Few enough bits that sums over many ranks are exact in f32 and that every input is exact in bf16. */
enum { STEP = 97, RANK_STEPS = 32, SHIFT = 40, FACTOR_STEP = 5, FACTOR_RANKS = 7 };

static bool is_unsigned(coset_dtype dtype)
{
    return dtype == COSET_U8 || dtype == COSET_U32 || dtype == COSET_U64;
}

static int64_t input(coset_dtype dtype, coset_op op, int rank, int i)
{
    if (op == COSET_PROD) /* powers of two, few of them: exact everywhere */
        return rank < FACTOR_RANKS && (i + rank) % FACTOR_STEP == 0 ? 2 : 1;
    return i % STEP + rank % RANK_STEPS - (is_unsigned(dtype) ? 0 : SHIFT);
}

/* Rounds to nearest even at `bits` of significand (with the leading one), then returns the float: enough for small
 * normal numbers, which is all that a pattern holds. */
static float round_to_bits(double x, int bits)
{
    int exponent;
    double m = frexp(x, &exponent);
    return (float)ldexp(nearbyint(ldexp(m, bits)), exponent - bits);
}

static uint16_t f16_bits(double x)
{
    float f = round_to_bits(x, 11);
    if (f == 0)
        return 0;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t sign = u >> 16 & 0x8000u, exponent = (u >> 23 & 0xffu) - 127 + 15, fraction = u >> 13 & 0x3ffu;
    return (uint16_t)(sign | exponent << 10 | fraction);
}

static uint16_t bf16_bits(double x)
{
    float f = round_to_bits(x, 8);
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

/* Stores element i: a float dtype from `real`, an integer dtype from the low bits of `whole`. */
static void put(pattern *p, coset_dtype dtype, int i, double real, int64_t whole)
{
    unsigned char *to = p->values + (size_t)i * p->element;
    float f = (float)real;
    uint16_t half;
    switch (dtype) {
    case COSET_F32: memcpy(to, &f, sizeof f); break;
    case COSET_F64: memcpy(to, &real, sizeof real); break;
    case COSET_F16:
    case COSET_BF16:
        half = dtype == COSET_F16 ? f16_bits(real) : bf16_bits(real);
        memcpy(to, &half, sizeof half);
        break;
    default: memcpy(to, &whole, p->element); break; /* little endian: the low bytes */
    }
}

/* `value` as the dtype holds it after wrapping. */
static int64_t wrapped(coset_dtype dtype, int64_t value)
{
    switch (dtype) {
    case COSET_I8: return (int8_t)value;
    case COSET_U8: return (uint8_t)value;
    case COSET_I32: return (int32_t)value;
    case COSET_U32: return (uint32_t)value;
    default: return value;
    }
}

static int64_t combine(coset_op op, int64_t a, int64_t b)
{
    switch (op) {
    case COSET_MIN: return a < b ? a : b;
    case COSET_MAX: return a > b ? a : b;
    case COSET_PROD: return a * b;
    default: return a + b;
    }
}

pattern pattern_of_rank(coset_dtype dtype, coset_op op, int rank)
{
    pattern p = {.element = coset_dtype_size(dtype)};
    for (int i = 0; i < PATTERN_PERIOD; i++) {
        int64_t v = input(dtype, op, rank, i);
        put(&p, dtype, i, (double)v, v);
    }
    return p;
}

pattern pattern_of_result(coset_dtype dtype, coset_op op, int ranks)
{
    pattern p = {.element = coset_dtype_size(dtype)};
    for (int i = 0; i < PATTERN_PERIOD; i++) {
        int64_t whole = input(dtype, op, 0, i);
        for (int r = 1; r < ranks; r++)
            whole = combine(op, whole, input(dtype, op, r, i));
        double real = (double)whole;
        if (op == COSET_AVG) {
            real /= ranks;
            whole = wrapped(dtype, whole) / ranks;
        }
        put(&p, dtype, i, real, whole);
    }
    return p;
}

void pattern_write(const pattern *p, void *to, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t n = count - done < PATTERN_PERIOD ? count - done : PATTERN_PERIOD;
        memcpy((char *)to + done * p->element, p->values, n * p->element);
        done += n;
    }
}

void pattern_read(const void *from, size_t bytes)
{
    const unsigned char *p = from;
    uint64_t sums[8] = {0};
    size_t i = 0;
    for (; i + sizeof sums <= bytes; i += sizeof sums)
        for (int k = 0; k < 8; k++) {
            uint64_t word;
            memcpy(&word, p + i + (size_t)k * sizeof word, sizeof word);
            sums[k] ^= word;
        }
    for (; i < bytes; i++)
        sums[0] += p[i];
    for (int k = 1; k < 8; k++)
        sums[0] ^= sums[k];
    __asm__ volatile("" : : "r"(sums[0])); /* the reading must not be optimised away */
}

size_t pattern_wrong(const pattern *p, const void *from, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong +=
            memcmp((const char *)from + i * p->element, p->values + i % PATTERN_PERIOD * p->element, p->element) != 0;
    return wrong;
}
