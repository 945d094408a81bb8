/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all, one peer after another (patterns/pairwise.h); the window lets a few of them overlap. */
#include "coll/build.h"

#include "coll/patterns/pairwise.h"
#include "coll/segment.h"

static void one_peer(cst_schedule *s, cst_cut cut, int k)
{
    const cst_plan *plan = &s->plan;
    int to = cst_pairwise_to(plan->size, plan->rank, k), from = cst_pairwise_from(plan->size, plan->rank, k);
    s->round = k - 1;
    for (int i = 0; i < cut.segments; i++) {
        cst_range in = cst_segment(cst_plan_chunk(plan, from), cut, i);
        cst_range out = cst_segment(cst_plan_chunk(plan, to), cut, i);
        s->segment = i;
        cst_add_recv(s, from, (uint32_t)i, cst_result(plan, in.begin), cst_range_size(in));
        cst_add_send(s, to, (uint32_t)i, cst_input(plan, out.begin), cst_range_size(out));
    }
}

void cst_build_pairwise(cst_schedule *s)
{
    cst_cut cut = cst_cut_chunks(&s->plan, false);
    for (int k = 1; k < s->plan.size; k++)
        one_peer(s, cut, k);
    for (int i = 0; i < cut.segments; i++) {
        s->segment = i;
        cst_copy_own(s, cst_segment(cst_plan_chunk(&s->plan, s->plan.rank), cut, i));
    }
}
