/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dissemination barrier: in round k rank i signals rank (i + 2^k) mod N and waits for rank (i - 2^k) mod N. After
 * ceil(log2 N) rounds every rank has heard, through others, of all. Hensgen, Finkel and Manber, "Two algorithms for
 * barrier synchronization", 1988.
 */
#ifndef CST_COLL_PATTERNS_DISSEMINATION_H
#define CST_COLL_PATTERNS_DISSEMINATION_H
#include "ranks.h"

static inline int cst_dissemination_steps(int n)
{
    return cst_log2_ceil(n);
}
static inline int cst_dissemination_to(int n, int rank, int k)
{
    return cst_mod(rank + (1 << k), n);
}
static inline int cst_dissemination_from(int n, int rank, int k)
{
    return cst_mod(rank - (1 << k), n);
}
#endif
