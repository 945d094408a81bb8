/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct: two rounds. In the first, everybody sends chunk j to rank j, which sums the N versions in rank order; in the
 * second, rank j sends the finished chunk to everybody.
 *
 * Per rank it moves as little as the ring, 2(N - 1)/N of the vector, in two rounds rather than 2(N - 1), but to N - 1
 * peers at once. The sums are taken in rank order, so the result does not depend on how messages are cut.
 */
#ifndef CST_COLL_PATTERNS_DIRECT_H
#define CST_COLL_PATTERNS_DIRECT_H
#include "chunk.h"
#include "ranks.h"

static inline int cst_direct_steps(int n)
{
    return n == 1 ? 0 : 2;
}
/* The k-th peer that `rank` sends to and, mirrored, receives from, 0 <= k < n - 1. Everybody starts with another
 * peer, so that nobody has to take N - 1 messages while others have none. */
static inline int cst_direct_to(int n, int rank, int k)
{
    return cst_mod(rank + 1 + k, n);
}
static inline int cst_direct_from(int n, int rank, int k)
{
    return cst_mod(rank - 1 - k, n);
}
/* Elements that `rank` sends: in the first round all but its own chunk, in the second its own n - 1 times. */
static inline size_t cst_direct_sent(int n, int rank, size_t count)
{
    size_t own = cst_range_size(cst_chunk(count, n, rank));
    return n == 1 ? 0 : count - own + (size_t)(n - 1) * own;
}
#endif
