/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Naive, and flat: one round in which everybody sends its whole vector to everybody, and everybody sums all N in rank
 * order. Each rank sends N - 1 vectors, which for long ones is the worst of all and for short ones, where only the
 * number of rounds counts, the best: `flat` is that for short vectors, `naive` shows the rest.
 */
#ifndef CST_COLL_PATTERNS_NAIVE_H
#define CST_COLL_PATTERNS_NAIVE_H
#include "direct.h"

static inline int cst_naive_steps(int n)
{
    return n == 1 ? 0 : 1;
}
/* The k-th peer, 0 <= k < n - 1: as in direct. */
static inline int cst_naive_to(int n, int rank, int k)
{
    return cst_direct_to(n, rank, k);
}
static inline int cst_naive_from(int n, int rank, int k)
{
    return cst_direct_from(n, rank, k);
}
static inline size_t cst_naive_sent(int n, size_t count)
{
    return (size_t)(n - 1) * count;
}
#endif
