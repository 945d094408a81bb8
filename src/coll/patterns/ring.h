/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: N - 1 steps in which sums travel (reduce-scatter), then N - 1 in which results travel (all-gather).
 *
 * The vector is cut into N chunks. In step k of the first phase rank i sends chunk (i - k) mod N to rank (i + 1) mod N,
 * receives chunk (i - k - 1) mod N from rank (i - 1) mod N and adds its own part to it. So chunk c starts at rank c,
 * goes once around, and is complete at rank (c - 1) mod N, that is, rank i ends with chunk (i + 1) mod N. In the second
 * phase rank i begins by passing that chunk on, and in each step passes on what it received in the step before.
 *
 * Every rank sends 2(N - 1)/N of the vector, the least possible. Patarasuk and Yuan, "Bandwidth optimal all-reduce
 * algorithms for clusters of workstations", 2009.
 *
 * The order of the additions is that of the journey: chunk c is ((x_c + x_(c+1)) + x_(c+2)) + ..., ranks mod N.
 */
#ifndef CST_COLL_PATTERNS_RING_H
#define CST_COLL_PATTERNS_RING_H
#include "chunk.h"
#include "ranks.h"

typedef struct {
    int to, from;               /* neighbours: the same in every step */
    int send_chunk, recv_chunk; /* 0..n-1 */
    int add;                    /* 1: the received chunk is added to the own part; 0: it is final and is stored */
} cst_ring_step;

static inline int cst_ring_phase_steps(int n)
{
    return n - 1;
}
static inline int cst_ring_steps(int n)
{
    return 2 * cst_ring_phase_steps(n);
}
/* Step k of reduce-scatter, 0 <= k < n - 1. */
static inline cst_ring_step cst_ring_reduce_scatter(int n, int rank, int k)
{
    return (cst_ring_step){cst_mod(rank + 1, n), cst_mod(rank - 1, n), cst_mod(rank - k, n), cst_mod(rank - k - 1, n),
                           1};
}
/* The chunk that `rank` holds complete after the reduce-scatter phase. */
static inline int cst_ring_owned_chunk(int n, int rank)
{
    return cst_mod(rank + 1, n);
}
/* Step k of all-gather, 0 <= k < n - 1, when rank i starts with chunk (i + shift) mod n: shift 1 after the
 * reduce-scatter above, 0 for an all-gather of its own, where rank i starts with chunk i. */
static inline cst_ring_step cst_ring_allgather(int n, int rank, int k, int shift)
{
    return (cst_ring_step){cst_mod(rank + 1, n), cst_mod(rank - 1, n), cst_mod(rank + shift - k, n),
                           cst_mod(rank + shift - k - 1, n), 0};
}
/* Step k of the whole all-reduce, 0 <= k < 2(n - 1). */
static inline cst_ring_step cst_ring(int n, int rank, int k)
{
    return k < n - 1 ? cst_ring_reduce_scatter(n, rank, k) : cst_ring_allgather(n, rank, k - (n - 1), 1);
}
/* Elements that `rank` sends in the whole all-reduce: every chunk twice, except, in each phase, the one it never sends. */
static inline size_t cst_ring_sent(int n, int rank, size_t count)
{
    size_t not_reduced = cst_range_size(cst_chunk(count, n, cst_mod(rank + 1, n)));
    size_t not_gathered = cst_range_size(cst_chunk(count, n, cst_mod(rank + 2, n)));
    return n == 1 ? 0 : 2 * count - not_reduced - not_gathered;
}
#endif
