/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast, segment after segment: down the binomial tree (patterns/binomial.h), where the root sends log2 N vectors,
 * or, for long vectors, along a chain in rank order from the root on, where everybody sends one.
 */
#include "coll/build.h"

#include "coll/patterns/binomial.h"
#include "coll/segment.h"

typedef struct {
    int parent, children; /* -1 for the root */
    bool chain;
} links;

static int child(const cst_plan *plan, const links *at, int j)
{
    if (at->chain)
        return cst_mod(plan->rank + 1, plan->size);
    /* The child with the largest subtree first. */
    return cst_binomial_child(plan->size, plan->rank, at->children - 1 - j);
}

static void build(cst_schedule *s, const links *at)
{
    const cst_plan *plan = &s->plan;
    cst_range all = {0, plan->call.count};
    cst_cut cut = cst_cut_for(plan, all.end, coset_dtype_size(plan->call.dtype));
    for (int i = 0; i < cut.segments; i++) {
        cst_range r = cst_segment(all, cut, i);
        cst_place from = at->parent < 0 ? cst_input(plan, r.begin) : cst_result(plan, r.begin);
        int got = -1;
        s->segment = i;
        if (at->parent >= 0)
            got = cst_add_recv(s, at->parent, (uint32_t)i, from, cst_range_size(r));
        for (int j = 0; j < at->children; j++) {
            cst_add_send(s, child(plan, at, j), (uint32_t)i, from, cst_range_size(r));
            cst_after(s, got);
        }
        if (at->parent < 0)
            cst_copy_own(s, r);
    }
}

void cst_build_broadcast(cst_schedule *s)
{
    int n = s->plan.size, rank = s->plan.rank, root = s->plan.call.root;
    build(s, &(links){cst_binomial_parent(n, root, rank), cst_binomial_children(n, root, rank), false});
}

void cst_build_chain(cst_schedule *s)
{
    int n = s->plan.size, rank = s->plan.rank, place = cst_mod(rank - s->plan.call.root, n);
    build(s, &(links){place == 0 ? -1 : cst_mod(rank - 1, n), place < n - 1, true});
}
