/* SPDX-License-Identifier: Apache-2.0 */
/* The dissemination barrier (patterns/dissemination.h), of empty messages. */
#include "coll/build.h"

#include "coll/patterns/dissemination.h"

void cst_build_barrier(cst_schedule *s)
{
    const cst_place nothing = {0, CST_IN_SCRATCH, false};
    int n = s->plan.size, rank = s->plan.rank, heard = -1;
    for (int k = 0; k < cst_dissemination_steps(n); k++) {
        s->round = k;
        int recv = cst_add_recv(s, cst_dissemination_from(n, rank, k), (uint32_t)k, nothing, 0);
        cst_after(s, heard); /* so that `heard` stands for all earlier rounds too */
        cst_add_send(s, cst_dissemination_to(n, rank, k), (uint32_t)k, nothing, 0);
        cst_after(s, heard);
        heard = recv;
    }
}
