/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/link.h"

#include "base/clock.h"
#include "base/log.h"
#include "comm/comm.h"
#include "mean/internal.h"

#include <string.h>

/* Long enough to be carried by bandwidth rather than latency; a slow link is known after the short one. */
#define SHORT_BYTES ((size_t)256 << 10)
#define LONG_BYTES  ((size_t)4 << 20)
#define SLOW_S      5e-3
enum { TRIES = 3 };

static int planner_may_choose(const coset_mean_options *o)
{
    return (!o->codec || !strncmp(o->codec, "lattice", 7)) && (!o->protocol || !strcmp(o->protocol, "sharded-star"));
}

/* The least time over a few all-reduces, of the slowest rank. */
static coset_status time_allreduce(coset_comm *c, void *memory, size_t bytes, double *seconds)
{
    *seconds = 1e30;
    for (int i = 0; i < 1 + TRIES; i++) {
        uint64_t start = cst_now_ns();
        coset_status status = coset_allreduce(memory, memory, bytes / sizeof(float), COSET_F32, COSET_SUM, c);
        if (status != COSET_OK)
            return status;
        double took = (double)(cst_now_ns() - start) * 1e-9;
        if (i && took < *seconds) /* the first touches memory and opens the path */
            *seconds = took;
    }
    return coset_allreduce(seconds, seconds, 1, COSET_F64, COSET_MAX, c);
}

/* The ends of the wires that an all-reduce crosses: hosts where the codec works between them, else ranks. */
static int ends_of(const coset_comm *c)
{
    return cst_mean_hosts_possible(c) ? c->nodes.nodes : c->size;
}

/* What an exact all-reduce sends and receives per second and end, 10^9 bytes. */
static coset_status measure(coset_comm *c, double *gbps)
{
    void *memory;
    size_t bytes = SHORT_BYTES;
    double seconds;
    coset_status status = coset_alloc(c, LONG_BYTES, &memory);
    if (status != COSET_OK)
        return status;
    status = time_allreduce(c, memory, bytes, &seconds);
    if (status == COSET_OK && seconds < SLOW_S) {
        bytes = LONG_BYTES;
        status = time_allreduce(c, memory, bytes, &seconds);
    }
    coset_status freed = coset_free(c, memory);
    double share = (ends_of(c) - 1.0) / ends_of(c);
    *gbps = 2 * share * (double)bytes / seconds * 1e-9;
    return status == COSET_OK ? freed : status;
}

coset_status cst_link_settle(coset_comm *c, coset_mean_options *o, int *pays)
{
    *pays = 1;
    if (!planner_may_choose(o) || coset_comm_size(c) == 1)
        return COSET_OK;
    if (o->objective == COSET_OBJECTIVE_DEFAULT)
        o->objective = COSET_OBJECTIVE_TIME;
    if (o->objective != COSET_OBJECTIVE_TIME)
        return COSET_OK;
    coset_status status = o->link_gbps > 0 ? COSET_OK : measure(c, &o->link_gbps);
    if (status != COSET_OK)
        return status;
    /* the ranks of a host share its link, and the work */
    double breakeven = cst_mean_breakeven_gbps(ends_of(c)) * (coset_comm_size(c) / ends_of(c));
    *pays = o->link_gbps < breakeven;
    if (coset_comm_rank(c) == 0)
        cst_log(*pays ? CST_LOG_INFO : CST_LOG_WARN,
                "coset_ddp: an all-reduce moves %.2f GB/s here and codes pay below %.2f: gradients are sent %s%s",
                o->link_gbps, breakeven, *pays ? "compressed" : "exactly",
                *pays ? "" : " (COSET_OBJECTIVE_BITS compresses them all the same)");
    return COSET_OK;
}
