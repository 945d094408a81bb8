/* SPDX-License-Identifier: Apache-2.0 */
/* Point to point: one vector to one peer, in segments. */
#include "coll/build.h"

#include "coll/segment.h"

void cst_build_point(cst_schedule *s)
{
    const cst_plan *plan = &s->plan;
    cst_range all = {0, plan->call.count};
    cst_cut cut = cst_cut_for(plan, all.end, coset_dtype_size(plan->call.dtype));
    for (int i = 0; i < cut.segments; i++) {
        cst_range r = cst_segment(all, cut, i);
        s->segment = i;
        if (plan->call.kind == CST_SEND)
            cst_add_send(s, plan->call.root, (uint32_t)i, cst_input(plan, r.begin), cst_range_size(r));
        else
            cst_add_recv(s, plan->call.root, (uint32_t)i, cst_result(plan, r.begin), cst_range_size(r));
    }
}
