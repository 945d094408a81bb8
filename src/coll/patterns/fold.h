/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: how algorithms for p = 2^k ranks serve any N.
 *
 * With p the largest power of two up to N and r = N - p, the first 2r ranks form pairs (2j, 2j + 1). Before the
 * algorithm the even one of a pair gives its vector to the odd one, which adds it; after it the odd one gives the
 * result back. The p ranks that take part have virtual ranks 0..p-1 in the order of their ranks.
 */
#ifndef CST_COLL_PATTERNS_FOLD_H
#define CST_COLL_PATTERNS_FOLD_H
#include "ranks.h"

typedef enum { CST_FOLD_ALONE, CST_FOLD_GIVES, CST_FOLD_TAKES } cst_fold_role;

static inline int cst_fold_pairs(int n)
{
    return n - cst_pow2_floor(n);
}
static inline cst_fold_role cst_fold(int n, int rank)
{
    if (rank >= 2 * cst_fold_pairs(n))
        return CST_FOLD_ALONE;
    return rank % 2 == 0 ? CST_FOLD_GIVES : CST_FOLD_TAKES;
}
/* The other one of the pair; -1 for a rank in none. */
static inline int cst_fold_partner(int n, int rank)
{
    return rank >= 2 * cst_fold_pairs(n) ? -1 : rank ^ 1;
}
/* Virtual rank 0..p-1; -1 for a rank that gives. */
static inline int cst_fold_virtual(int n, int rank)
{
    int pairs = cst_fold_pairs(n);
    if (rank >= 2 * pairs)
        return rank - pairs;
    return rank % 2 == 0 ? -1 : rank / 2;
}
/* The rank behind virtual rank v. */
static inline int cst_fold_real(int n, int v)
{
    int pairs = cst_fold_pairs(n);
    return v < pairs ? 2 * v + 1 : v + pairs;
}
#endif
