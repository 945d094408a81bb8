/* SPDX-License-Identifier: Apache-2.0 */
/* Random elements of every type, with the extreme ones often among them. */
#ifndef CST_TESTS_VALUES_H
#define CST_TESTS_VALUES_H
#include "checkasm.h"

#include <coset.h>

static inline uint64_t ca_pick(const uint64_t *list, size_t n)
{
    return list[ca_below(n)];
}
#define CA_PICK(...)                                                                                                   \
    ca_pick((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Bits of a special value of the type, sign aside: zeros, denormals, ends of the ranges, infinity, quiet and
 * signalling NaNs with payload. */
static inline uint64_t ca_special(coset_dtype type)
{
    switch (type) {
    case COSET_F32:
        return CA_PICK(0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
                       0x7fedcba9);
    case COSET_F64:
        return CA_PICK(0, 1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0x7fefffffffffffff,
                       0x7ff0000000000000, 0x7ff0000000000001, 0x7ff8000000000000, 0x7ffedcba98765432);
    case COSET_F16: return CA_PICK(0, 1, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7edc);
    case COSET_BF16: return CA_PICK(0, 1, 0x7f, 0x80, 0x3f80, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fdc);
    default: return CA_PICK(0, 1, ~0ull, ~0ull >> 1, 0x7f, 0x80, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull << 31);
    }
}

/* Bits of an ordinary number: magnitudes near 1, so that sums round and cancel. */
static inline uint64_t ca_ordinary(coset_dtype type)
{
    const uint64_t r = ca_random();
    switch (type) {
    case COSET_F32: return (r & 0x7fffff) | (uint64_t)(120 + ca_below(14)) << 23;
    case COSET_F64: return (r & 0xfffffffffffff) | (uint64_t)(1016 + ca_below(14)) << 52;
    case COSET_F16: return (r & 0x3ff) | (uint64_t)(8 + ca_below(14)) << 10;
    case COSET_BF16: return (r & 0x7f) | (uint64_t)(120 + ca_below(14)) << 7;
    default: return r >> ca_below(64);
    }
}

/* n elements at p, which may have any alignment. */
static inline void ca_fill(void *p, coset_dtype type, size_t n)
{
    const size_t size = coset_dtype_size(type);
    const bool is_float = type <= COSET_BF16;
    for (size_t i = 0; i < n; i++) {
        const unsigned kind = (unsigned)ca_below(16);
        uint64_t bits = kind == 0 ? ca_special(type) : kind < 4 ? ca_random() : ca_ordinary(type);
        if (is_float && kind != 1)
            bits ^= (uint64_t)ca_below(2) << (8 * size - 1);
        memcpy((char *)p + i * size, &bits, size); /* little-endian: the low bytes */
    }
}
#endif
