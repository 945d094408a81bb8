/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a pass, written once for all instruction sets. The including file includes a shim first (vec_avx2.h,
 * vec_avx512.h, vec_neon.h) that defines `vec`, VEC_BYTES and the operations.
 *
 * Everything here is forced inline into a kernel, where `kind` and `op` are constants; the calls through their function
 * pointers then turn into plain instructions. That replaces a macro per loop and can be stepped through.
 *
 * Shape of a pass: single vectors until the leading destination is aligned, tiles of four vectors (four independent
 * chains, at least a whole cache line, and the loops over sources and destinations cost little per byte), then single
 * vectors again; a part of a vector is read and written without touching a byte outside.
 */
#ifndef CST_KERNELS_SIMD_LOOPS_H
#define CST_KERNELS_SIMD_LOOPS_H
#include "kernels/simd/pass.h"

#define CST_INLINE static inline __attribute__((always_inline))
/* Ends one of two branches that make alike calls: clang would merge them into one call through a chosen pointer, which
 * is then never inlined. */
#define CST_APART() __asm__ volatile("")

/* How elements of one type go between memory and registers. A vector holds `lanes` elements. */
typedef struct {
    size_t lanes;
    size_t in, out; /* bytes of an element in the sources and in the destinations */
    vec (*load)(const void *p);
    vec (*load_part)(const void *p, size_t bytes); /* fewer than a vector's; the other lanes are 0 */
    void (*store)(void *p, vec v);
    void (*store_part)(void *p, vec v, size_t bytes);
    void (*stream)(void *p, vec v);              /* non-temporal; p is aligned to lanes * out */
    vec (*scale)(vec v, const cst_divisor *by);  /* division by a power of two */
    vec (*divide)(vec v, const cst_divisor *by); /* division by any number */
    vec (*settle)(vec v);                        /* the last step: canonical NaN, narrowing */
} pass_kind;
typedef vec pass_op(vec so_far, vec next);

typedef struct {
    vec a, b, c, d;
} tile;
#define TILE 4

CST_INLINE tile tile_load(const pass_kind *kind, const char *p)
{
    const size_t step = kind->lanes * kind->in;
    return (tile){kind->load(p), kind->load(p + step), kind->load(p + 2 * step), kind->load(p + 3 * step)};
}

CST_INLINE tile tile_combine(const pass_kind *kind, pass_op *op, tile t, const char *p)
{
    tile x = tile_load(kind, p);
    return (tile){op(t.a, x.a), op(t.b, x.b), op(t.c, x.c), op(t.d, x.d)};
}

CST_INLINE vec divide_one(const pass_kind *kind, vec v, const cst_divisor *by)
{
    if (!by->power_of_two)
        return kind->divide(v, by);
    v = kind->scale(v, by);
    CST_APART();
    return v;
}

CST_INLINE tile tile_divide(const pass_kind *kind, tile t, const cst_divisor *by)
{
    if (!by->power_of_two)
        return (tile){kind->divide(t.a, by), kind->divide(t.b, by), kind->divide(t.c, by), kind->divide(t.d, by)};
    t = (tile){kind->scale(t.a, by), kind->scale(t.b, by), kind->scale(t.c, by), kind->scale(t.d, by)};
    CST_APART();
    return t;
}

CST_INLINE tile tile_settle(const pass_kind *kind, tile t)
{
    return (tile){kind->settle(t.a), kind->settle(t.b), kind->settle(t.c), kind->settle(t.d)};
}

CST_INLINE void tile_store(const pass_kind *kind, char *p, tile t, bool non_temporal)
{
    const size_t step = kind->lanes * kind->out;
    if (non_temporal) {
        kind->stream(p, t.a), kind->stream(p + step, t.b);
        kind->stream(p + 2 * step, t.c), kind->stream(p + 3 * step, t.d);
        CST_APART();
    } else {
        kind->store(p, t.a), kind->store(p + step, t.b);
        kind->store(p + 2 * step, t.c), kind->store(p + 3 * step, t.d);
    }
}

CST_INLINE vec load_some(const pass_kind *kind, const char *p, size_t m)
{
    return m == kind->lanes ? kind->load(p) : kind->load_part(p, m * kind->in);
}

/* One vector, or a part of one: elements i to i + m. */
CST_INLINE void pass_step(const cst_pass *pass, const pass_kind *kind, pass_op *op, size_t i, size_t m)
{
    vec v = load_some(kind, (const char *)pass->src[0] + i * kind->in, m);
    for (int s = 1; op && s < pass->nsrc; s++)
        v = op(v, load_some(kind, (const char *)pass->src[s] + i * kind->in, m));
    if (pass->by)
        v = divide_one(kind, v, pass->by);
    v = kind->settle(v);
    for (int d = 0; d < pass->ndst; d++) {
        char *p = (char *)pass->dst[d] + i * kind->out;
        if (m == kind->lanes)
            kind->store(p, v);
        else
            kind->store_part(p, v, m * kind->out);
    }
}

/* Which destinations get non-temporal stores. */
typedef struct {
    bool first, rest;
} pass_streams;

CST_INLINE bool is_aligned(const void *p, size_t i, const pass_kind *kind)
{
    return ((uintptr_t)p + i * kind->out) % (kind->lanes * kind->out) == 0;
}

CST_INLINE pass_streams streams_from(const cst_pass *pass, const pass_kind *kind, size_t i)
{
    pass_streams nt = {(pass->flags & CST_REDUCE_NT_FIRST) && is_aligned(pass->dst[0], i, kind),
                       (pass->flags & CST_REDUCE_NT_REST) != 0};
    for (int d = 1; nt.rest && d < pass->ndst; d++)
        nt.rest = is_aligned(pass->dst[d], i, kind);
    return nt;
}

/* Tiles from element i on; returns where the last one ends. `known` is the number of sources if it is below 5, so that
 * their addresses stay in registers, else 5. */
CST_INLINE size_t pass_tiles(const cst_pass *pass, const pass_kind *kind, pass_op *op, size_t i, const int known)
{
    const char *s0 = pass->src[0], *s1 = known > 1 ? pass->src[1] : NULL, *s2 = known > 2 ? pass->src[2] : NULL,
               *s3 = known > 3 ? pass->src[3] : NULL;
    char *d0 = pass->dst[0];
    const cst_divisor *const by = pass->by;
    const int ndst = pass->ndst, nsrc = pass->nsrc;
    const size_t step = TILE * kind->lanes, end = pass->count - (pass->count - i) % step;
    const pass_streams nt = streams_from(pass, kind, i);
    for (; i < end; i += step) {
        tile t = tile_load(kind, s0 + i * kind->in);
        if (known > 1)
            t = tile_combine(kind, op, t, s1 + i * kind->in);
        if (known > 2)
            t = tile_combine(kind, op, t, s2 + i * kind->in);
        if (known > 3)
            t = tile_combine(kind, op, t, s3 + i * kind->in);
        for (int s = 4; known > 4 && s < nsrc; s++)
            t = tile_combine(kind, op, t, (const char *)pass->src[s] + i * kind->in);
        if (by)
            t = tile_divide(kind, t, by);
        t = tile_settle(kind, t);
        tile_store(kind, d0 + i * kind->out, t, nt.first);
        for (int d = 1; d < ndst; d++)
            tile_store(kind, (char *)pass->dst[d] + i * kind->out, t, nt.rest);
    }
    return i;
}

/* Elements before the leading destination is aligned to a cache line; 0 where that is impossible or not worth it. */
CST_INLINE size_t pass_head(const cst_pass *pass, const pass_kind *kind)
{
    enum { LINE = 64, WORTH = 16 * LINE };
    const int second = pass->ndst > 1 && pass->flags == CST_REDUCE_NT_REST;
    const size_t past = (uintptr_t)pass->dst[second] % LINE;
    if (!past || past % kind->out || pass->count * kind->out < WORTH)
        return 0;
    return (LINE - past) / kind->out;
}

/* A whole pass. op NULL: there is but one source. */
CST_INLINE void pass_run(const cst_pass *pass, const pass_kind *kind, pass_op *op)
{
    size_t i = 0, stop = pass->count < TILE * kind->lanes ? pass->count : pass_head(pass, kind);
    for (;;) {
        for (size_t m; i < stop; i += m) {
            m = stop - i < kind->lanes ? stop - i : kind->lanes;
            pass_step(pass, kind, op, i, m);
        }
        if (stop == pass->count)
            break;
        switch (op ? pass->nsrc : 1) {
        case 1: i = pass_tiles(pass, kind, op, i, 1); break;
        case 2: i = pass_tiles(pass, kind, op, i, 2); break;
        case 3: i = pass_tiles(pass, kind, op, i, 3); break;
        case 4: i = pass_tiles(pass, kind, op, i, 4); break;
        default: i = pass_tiles(pass, kind, op, i, 5); break;
        }
        stop = pass->count;
    }
    if (pass->flags)
        vec_fence();
}
#endif
