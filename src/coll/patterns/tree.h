/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two binary trees over the same ranks, each of which carries one half of the vector up (sums) and down (results).
 *
 * In one tree half of the ranks are leaves, whose links idle in one direction. In the second tree those are the inner
 * nodes, so that together nearly every rank receives about one vector, and sends about one, in each direction: the
 * depth of a tree with the volume of a chain. Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan", 2009.
 *
 * The tree is over labels 0..n-1. Label 0 is the root and has one child, the largest power of two below n. A label m
 * with lowest set bit b has, for b > 1, the child m - b/2 and the child m + b/2, or, where that is no label, m + b/4,
 * m + b/8, ... the first that is one. Odd labels are leaves. Every subtree is a range of labels and a left child's range
 * lies just below its parent. Tree 0 labels ranks by themselves. Tree 1 mirrors (label n-1-rank) for even n and shifts
 * (label rank-1 mod n) for odd n: either way odd labels become even ones, except one.
 */
#ifndef CST_COLL_PATTERNS_TREE_H
#define CST_COLL_PATTERNS_TREE_H
#include "chunk.h"
#include "ranks.h"

#define CST_TREES 2

/* -1 where there is none; a single child may be in either place. */
typedef struct {
    int parent;
    int child[2];
} cst_tree_node;

static inline int cst_tree_label(int n, int tree, int rank)
{
    if (tree == 0)
        return rank;
    return n % 2 == 0 ? n - 1 - rank : cst_mod(rank - 1, n);
}
static inline int cst_tree_rank(int n, int tree, int label)
{
    if (tree == 0)
        return label;
    return n % 2 == 0 ? n - 1 - label : cst_mod(label + 1, n);
}
static inline int cst_tree_label_parent(int n, int label)
{
    int bit = label & -label;
    if (label == 0)
        return -1;
    int up = (label ^ bit) | bit << 1;
    return up < n ? up : label ^ bit;
}
static inline int cst_tree_label_left(int label)
{
    int half = (label & -label) / 2;
    return half > 0 ? label - half : -1;
}
static inline int cst_tree_label_right(int n, int label)
{
    int half = label == 0 ? cst_pow2_floor(n) : (label & -label) / 2;
    while (half > 0 && label + half >= n)
        half /= 2;
    return half > 0 ? label + half : -1;
}
/* The neighbours of `rank` in tree 0 or 1. */
static inline cst_tree_node cst_tree(int n, int tree, int rank)
{
    int label = cst_tree_label(n, tree, rank);
    int link[3] = {cst_tree_label_parent(n, label), cst_tree_label_left(label), cst_tree_label_right(n, label)};
    for (int i = 0; i < 3; i++)
        link[i] = link[i] < 0 ? -1 : cst_tree_rank(n, tree, link[i]);
    return (cst_tree_node){link[0], {link[1], link[2]}};
}
/* Links from `rank` up to the root. */
static inline int cst_tree_depth(int n, int tree, int rank)
{
    int depth = 0;
    for (int r = cst_tree(n, tree, rank).parent; r >= 0; r = cst_tree(n, tree, r).parent)
        depth++;
    return depth;
}
/* Steps on the longest way of one piece, up and down. */
static inline int cst_tree_steps(int n)
{
    int deepest = 0;
    for (int rank = 0; rank < n; rank++) {
        int depth = cst_tree_depth(n, 0, rank);
        deepest = depth > deepest ? depth : deepest;
    }
    return 2 * deepest;
}
static inline size_t cst_tree_sent(int n, int rank, size_t count)
{
    size_t sent = 0;
    for (int tree = 0; tree < CST_TREES; tree++) {
        cst_tree_node node = cst_tree(n, tree, rank);
        int links = (node.parent >= 0) + (node.child[0] >= 0) + (node.child[1] >= 0);
        sent += (size_t)links * cst_range_size(cst_chunk(count, CST_TREES, tree));
    }
    return sent;
}
#endif
