/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a vector of `count` elements is cut into n chunks, one per rank.
 *
 * Chunk i is [i * count / n, (i + 1) * count / n): the sizes differ by at most one, the chunks cover the vector
 * exactly and in order, and with count < n some are empty. When the chunks are long (at least CST_CHUNK_LONG
 * elements on average) both ends are rounded down to a multiple of CST_CHUNK_ALIGN elements, the last end excepted:
 * every chunk then starts on a cache line of its own (for any element type, given an aligned vector), and the sizes
 * differ by less than 2 * CST_CHUNK_ALIGN elements, 3% of the shortest long chunk.
 */
#ifndef CST_COLL_PATTERNS_CHUNK_H
#define CST_COLL_PATTERNS_CHUNK_H
#include <stddef.h>

#define CST_CHUNK_ALIGN 64
#define CST_CHUNK_LONG  4096

/* Elements [begin, end). */
typedef struct {
    size_t begin, end;
} cst_range;

static inline size_t cst_range_size(cst_range r)
{
    return r.end - r.begin;
}

/* Where chunk i begins, 0 <= i <= n; count for i == n. */
static inline size_t cst_chunk_begin(size_t count, int n, int i)
{
    size_t ranks = (size_t)n, index = (size_t)i;
    /* index * count / ranks without a product that could overflow. */
    size_t begin = index * (count / ranks) + index * (count % ranks) / ranks;
    if (i == n || count / ranks < CST_CHUNK_LONG)
        return begin;
    return begin / CST_CHUNK_ALIGN * CST_CHUNK_ALIGN;
}

/* Chunk i of n, 0 <= i < n. */
static inline cst_range cst_chunk(size_t count, int n, int i)
{
    return (cst_range){cst_chunk_begin(count, n, i), cst_chunk_begin(count, n, i + 1)};
}

/* Chunks first .. first + chunks - 1 of n, which lie side by side. */
static inline cst_range cst_chunks(size_t count, int n, int first, int chunks)
{
    return (cst_range){cst_chunk_begin(count, n, first), cst_chunk_begin(count, n, first + chunks)};
}
#endif
