/* SPDX-License-Identifier: Apache-2.0 */
/* Every reduction kernel of every level of this machine gives the bytes that the scalar one gives: all types and
 * operators, numbers of sources and destinations, lengths around the vector and tile sizes, misaligned, in place, with
 * non-temporal stores, and under a caller's odd floating-point mode. */
#include "kernels/reduce/reduce.h"
#include "values.h"

enum { MAX_SRC = 9, MAX_DST = 4, MAX_BYTES = 4096, POOL = 1 << 15 };

typedef struct {
    coset_dtype dtype;
    coset_op op;
    int nsrc, ndst;
    size_t count;
    unsigned divide, flags;
    bool in_place, odd_mode;
} test_case;

static ca_buffer sources[MAX_SRC], targets[MAX_DST], reference;
static char pool[COSET_DTYPE_COUNT][POOL];

static const char *describe(const test_case *c, int target)
{
    static char text[160];
    snprintf(text, sizeof text, "%s %s, %d sources, target %d of %d, count %zu, divide %u, flags %u%s%s",
             coset_dtype_name(c->dtype), coset_op_name(c->op), c->nsrc, target, c->ndst, c->count, c->divide, c->flags,
             c->in_place ? ", in place" : "", c->odd_mode ? ", odd mode" : "");
    return text;
}

/* Distance of the data's end from the forbidden page: flush with it, element-aligned, or not aligned at all. */
static size_t pick_offset(size_t size)
{
    switch (ca_below(4)) {
    case 0: return 0;
    case 1: return 64;
    case 2: return size * ca_below(64 / size);
    default: return ca_below(64);
    }
}

/* In place, target j is source j while both exist. */
static void place(const test_case *c, void **dst, const void **src)
{
    const size_t size = coset_dtype_size(c->dtype), bytes = c->count * size;
    const size_t same = pick_offset(size);
    const bool all_alike = ca_below(2);
    for (int s = 0; s < c->nsrc; s++) {
        char *p = ca_place(&sources[s], bytes, all_alike ? same : pick_offset(size));
        memcpy(p, pool[c->dtype] + size * ca_below((POOL - MAX_BYTES) / size), bytes);
        src[s] = p;
    }
    for (int d = 0; d < c->ndst; d++) {
        bool shared = c->in_place && d < c->nsrc;
        dst[d] = shared ? sources[d].data : ca_place(&targets[d], bytes, all_alike ? same : pick_offset(size));
        if (!shared)
            memset(dst[d], 0x77, bytes);
    }
}

static void check(const test_case *c)
{
    void *dst[MAX_DST], *ref[1];
    const void *src[MAX_SRC];
    const size_t size = coset_dtype_size(c->dtype);
    place(c, dst, src);
    ref[0] = ca_place(&reference, c->count * size, 0);
    ca_use_scalar();
    cst_reduce(c->dtype, c->op, ref, 1, src, c->nsrc, c->count, c->divide, 0);
    ca_use_variant();
    const uint64_t mode = c->odd_mode ? ca_set_odd_fpmode() : ca_fpmode();
    cst_reduce(c->dtype, c->op, dst, c->ndst, src, c->nsrc, c->count, c->divide, c->flags);
    const uint64_t mode_after = ca_fpmode();
    ca_set_default_fpmode();
    if (mode_after != mode)
        ca_fail("%s: the caller's floating-point mode was not restored", describe(c, 0));
    for (int d = 0; d < c->ndst; d++) {
        ca.cases++;
        if (memcmp(ref[0], dst[d], c->count * size))
            ca_same(ref[0], dst[d], c->count, size, describe(c, d));
    }
    for (int s = 0; s < c->nsrc; s++)
        if (!ca_intact(&sources[s]))
            ca_fail("%s: wrote outside source %d", describe(c, 0), s);
    for (int d = 0; d < c->ndst; d++)
        if (!(c->in_place && d < c->nsrc) && !ca_intact(&targets[d]))
            ca_fail("%s: wrote outside", describe(c, d));
}

static unsigned pick_divide(coset_op op)
{
    static const unsigned some[] = {2,   3,   4,   5,   7,    8,     10,       64,         127,
                                    128, 200, 255, 256, 1000, 65537, 1u << 31, 4000000000u};
    return op == COSET_AVG || ca_below(8) == 0 ? some[ca_below(sizeof some / sizeof *some)] : 1;
}

static void check_length(coset_dtype dtype, coset_op op, int nsrc, int ndst, size_t count)
{
    test_case c = {.dtype = dtype, .op = op, .nsrc = nsrc, .ndst = ndst, .count = count};
    c.divide = pick_divide(op);
    c.flags = ca_below(2) ? (unsigned)ca_below(4) : 0;
    c.in_place = ca_below(2);
    c.odd_mode = ca_below(4) == 0;
    check(&c);
}

/* Lengths 0 to 4 vectors + 1 (of the widest level), then random ones with several tiles. */
static void check_lengths(coset_dtype dtype, coset_op op, int nsrc, int ndst)
{
    const size_t size = coset_dtype_size(dtype), four_vectors = 4 * 64 / size;
    const size_t stride = ca_quick() ? 1 + ca_below(13) : 1;
    for (size_t count = 0; count <= four_vectors + 1; count += stride)
        check_length(dtype, op, nsrc, ndst, count);
    for (int i = 0; i < (ca_quick() ? 4 : 20); i++)
        check_length(dtype, op, nsrc, ndst, four_vectors + ca_below(MAX_BYTES / size - four_vectors));
}

static void check_dtype(coset_dtype dtype)
{
    static const int nsrc[] = {1, 2, 3, 4, 5, 9}, ndst[] = {1, 2, 4};
    for (int op = 0; op < COSET_OP_COUNT; op++)
        for (size_t s = 0; s < sizeof nsrc / sizeof *nsrc; s++)
            for (size_t d = 0; d < sizeof ndst / sizeof *ndst; d++)
                check_lengths(dtype, (coset_op)op, nsrc[s], ndst[d]);
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    for (int i = 0; i < MAX_SRC; i++)
        sources[i] = ca_open(MAX_BYTES);
    for (int i = 0; i < MAX_DST; i++)
        targets[i] = ca_open(MAX_BYTES);
    reference = ca_open(MAX_BYTES);
    for (int t = 0; t < COSET_DTYPE_COUNT; t++)
        ca_fill(pool[t], (coset_dtype)t, POOL / coset_dtype_size((coset_dtype)t));
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            for (int t = 0; t < COSET_DTYPE_COUNT; t++)
                check_dtype((coset_dtype)t);
    return ca_end();
}
