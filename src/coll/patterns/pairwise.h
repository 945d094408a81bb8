/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairwise all-to-all: in step k rank i sends block (i + k) mod N to that rank and receives from rank (i - k) mod N.
 * N - 1 steps, in each of which every rank sends one block and receives one, so no rank is flooded.
 */
#ifndef CST_COLL_PATTERNS_PAIRWISE_H
#define CST_COLL_PATTERNS_PAIRWISE_H
#include "ranks.h"
#include <stddef.h>

static inline int cst_pairwise_steps(int n)
{
    return n - 1;
}
/* Step k, 1 <= k < n: the own block (k = 0) is copied. */
static inline int cst_pairwise_to(int n, int rank, int k)
{
    return cst_mod(rank + k, n);
}
static inline int cst_pairwise_from(int n, int rank, int k)
{
    return cst_mod(rank - k, n);
}
static inline size_t cst_pairwise_sent(int n, size_t count_per_peer)
{
    return (size_t)(n - 1) * count_per_peer;
}
#endif
