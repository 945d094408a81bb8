/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive doubling: in step k a rank exchanges its whole vector with the one whose virtual rank differs in bit k,
 * and both add (the lower one's operand first, so both get the same bits). After log2 p steps everybody has the sum of
 * all. Few steps, but every one carries the whole vector: for short vectors. Other N than powers of two by folding.
 */
#ifndef CST_COLL_PATTERNS_RD_H
#define CST_COLL_PATTERNS_RD_H
#include "fold.h"
#include <stddef.h>

/* Exchanges, the fold apart. */
static inline int cst_rd_exchanges(int n)
{
    return cst_log2_floor(n);
}
/* All steps: exchanges, and two more to fold if n is no power of two. */
static inline int cst_rd_steps(int n)
{
    return cst_rd_exchanges(n) + (cst_fold_pairs(n) > 0 ? 2 : 0);
}
/* With whom `rank` exchanges in step k, 0 <= k < cst_rd_exchanges(n); -1 for a rank that has given its vector away. */
static inline int cst_rd_partner(int n, int rank, int k)
{
    int v = cst_fold_virtual(n, rank);
    return v < 0 ? -1 : cst_fold_real(n, v ^ (1 << k));
}
static inline size_t cst_rd_sent(int n, int rank, size_t count)
{
    cst_fold_role role = cst_fold(n, rank);
    if (role == CST_FOLD_GIVES)
        return count;
    return count * (size_t)(cst_rd_exchanges(n) + (role == CST_FOLD_TAKES));
}
#endif
