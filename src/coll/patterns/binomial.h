/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binomial tree: broadcast in ceil(log2 N) rounds, or reduce in as many, the same links backwards.
 *
 * Ranks are counted from the root: rel = (rank - root) mod N. The parent of rel is rel without its lowest set bit; its
 * children are rel + 2^j for all 2^j below its lowest set bit (the root: all 2^j below N), as far as they exist. The
 * subtree of a child rel + 2^j is the range of 2^j ranks that begins there.
 */
#ifndef CST_COLL_PATTERNS_BINOMIAL_H
#define CST_COLL_PATTERNS_BINOMIAL_H
#include "ranks.h"
#include <stddef.h>

static inline int cst_binomial_steps(int n)
{
    return cst_log2_ceil(n);
}
static inline int cst_binomial_relative(int n, int root, int rank)
{
    return cst_mod(rank - root, n);
}
/* -1 for the root. */
static inline int cst_binomial_parent(int n, int root, int rank)
{
    int rel = cst_binomial_relative(n, root, rank);
    return rel == 0 ? -1 : cst_mod(root + (rel & (rel - 1)), n);
}
static inline int cst_binomial_children(int n, int root, int rank)
{
    int rel = cst_binomial_relative(n, root, rank), children = 0;
    for (int bit = 1; rel + bit < n && (rel & bit) == 0; bit *= 2)
        children++;
    return children;
}
/* The j-th child, 0 <= j < cst_binomial_children: the one with the smallest subtree first, as a reduce takes them; a
 * broadcast serves the last one first. */
static inline int cst_binomial_child(int n, int rank, int j)
{
    return cst_mod(rank + (1 << j), n);
}
static inline size_t cst_binomial_broadcast_sent(int n, int root, int rank, size_t count)
{
    return count * (size_t)cst_binomial_children(n, root, rank);
}
static inline size_t cst_binomial_reduce_sent(int root, int rank, size_t count)
{
    return rank == root ? 0 : count;
}
#endif
