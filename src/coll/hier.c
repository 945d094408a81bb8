/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/hier.h"

#include "base/clock.h"
#include "base/dtype.h"
#include "coll/patterns/chunk.h"
#include "coll/select.h"
#include "kernels/convert/convert.h"
#include "kernels/reduce/reduce.h"

#include <stdlib.h>

int cst_hier_possible(const coset_comm *c)
{
    return c->nodes.nodes > 1 && c->nodes.most > 1;
}

int cst_hier_wanted(const coset_comm *c, const cst_call *call)
{
    if (call->kind != CST_ALLREDUCE || !cst_hier_possible(c) || c->settings.rank_order)
        return 0;
    if (call->algorithm == CST_ALGO_HIER)
        return 1;
    /* 16-bit floats would cross the network as f32 sums: not by default */
    return call->algorithm == CST_ALGO_AUTO && !cst_dtype_is_half(call->dtype) &&
           call->count * coset_dtype_size(call->dtype) >= CST_HIER_BYTES;
}

/* A vector as the phases see it: never 16 bits wide. */
typedef struct {
    const char *send;
    char *recv;
    size_t count, size;
    coset_dtype dtype;
    coset_op op; /* never AVG: the division is one, at the end */
} work;

static coset_status phase_inside_reduce(coset_comm *c, const work *w)
{
    coset_status status = COSET_OK;
    for (int k = 0; k < c->nodes.fewest && status == COSET_OK; k++) {
        cst_range piece = cst_chunk(w->count, c->nodes.fewest, k);
        status = coset_reduce(w->send + piece.begin * w->size, w->recv + piece.begin * w->size, cst_range_size(piece),
                              w->dtype, w->op, k, c->nodes.node);
    }
    return status;
}

static coset_status phase_across(coset_comm *c, const work *w, unsigned divide)
{
    if (!c->nodes.cross)
        return COSET_OK;
    cst_range piece = cst_chunk(w->count, c->nodes.fewest, c->nodes.local[c->rank]);
    void *at = w->recv + piece.begin * w->size;
    coset_status status = coset_allreduce(at, at, cst_range_size(piece), w->dtype, w->op, c->nodes.cross);
    if (status == COSET_OK && divide > 1)
        cst_reduce(w->dtype, COSET_SUM, &at, 1, (const void *const[]){at}, 1, cst_range_size(piece), divide, 0);
    return status;
}

static coset_status phase_inside_broadcast(coset_comm *c, const work *w)
{
    coset_status status = COSET_OK;
    for (int k = 0; k < c->nodes.fewest && status == COSET_OK; k++) {
        cst_range piece = cst_chunk(w->count, c->nodes.fewest, k);
        void *at = w->recv + piece.begin * w->size;
        status = coset_broadcast(at, at, cst_range_size(piece), w->dtype, k, c->nodes.node);
    }
    return status;
}

static coset_status run_phases(coset_comm *c, const work *w, unsigned divide)
{
    coset_status status = phase_inside_reduce(c, w);
    if (status == COSET_OK)
        status = phase_across(c, w, divide);
    return status == COSET_OK ? phase_inside_broadcast(c, w) : status;
}

/* A 16-bit vector goes through the phases as f32 and is rounded once, after the division. */
static coset_status run_half(coset_comm *c, const cst_call *call, unsigned divide)
{
    float *wide = malloc((call->count ? call->count : 1) * sizeof *wide);
    if (!wide)
        return COSET_ERR_MEMORY;
    cst_widen(call->dtype, wide, call->send, call->count);
    work w = {(const char *)wide, (char *)wide, call->count,
              sizeof *wide,       COSET_F32,    call->op == COSET_AVG ? COSET_SUM : call->op};
    coset_status status = run_phases(c, &w, 1);
    if (status == COSET_OK)
        cst_narrow(call->dtype, call->recv, wide, call->count, divide);
    free(wide);
    return status;
}

/* The rank that a group of ours calls `peer`; -1. */
static int rank_of(const coset_comm *c, const coset_comm *group, int peer)
{
    const cst_nodes *n = &c->nodes;
    for (int r = 0; r < c->size && peer >= 0; r++)
        if (group == n->node ? n->node_of[r] == n->node_of[c->rank] && n->local[r] == peer
                             : n->local[r] == n->local[c->rank] && n->node_of[r] == peer)
            return r;
    return -1;
}

/* Somebody else has failed, and tells the whole group why as soon as it has told the small ones. */
static coset_status hear_why(coset_comm *c)
{
    const int bound_ms = 1000;
    cst_deadline end = cst_deadline_in(bound_ms);
    coset_status status = cst_comm_watch(c);
    while (status == COSET_OK && !cst_deadline_passed(end))
        status = cst_comm_breathe(c);
    return status;
}

coset_status cst_hier_fail(coset_comm *c, uint64_t sequence, coset_status status, const char *text)
{
    coset_error e = COSET_ERROR_INIT;
    coset_comm *groups[] = {c->nodes.node, c->nodes.cross};
    int peer = -1;
    for (int g = 0; g < 2 && e.status == COSET_OK; g++)
        if (groups[g] && coset_last_error(groups[g], &e) != COSET_OK)
            peer = rank_of(c, groups[g], e.peer);
    const char *why = text[0] ? text : e.text;
    for (int g = 0; g < 2; g++)
        if (groups[g])
            coset_comm_abort(groups[g], why);
    coset_status heard = status == COSET_ERR_ABORTED ? hear_why(c) : COSET_OK;
    if (heard != COSET_OK)
        return heard;
    return cst_comm_fail(c, status, peer, sequence, "inside or between hosts: %.200s", why);
}

coset_status cst_hier_run(coset_comm *c, cst_operation *op)
{
    const cst_call *call = &op->call;
    coset_status status = cst_nodes_make(c, op->sequence);
    if (status != COSET_OK)
        return cst_comm_fail(c, status, -1, op->sequence, "could not make groups of ranks by host: %s",
                             coset_strerror(status));
    unsigned divide = call->op == COSET_AVG ? (unsigned)c->size : 1;
    if (cst_dtype_is_half(call->dtype)) {
        status = run_half(c, call, divide);
    } else {
        work w = {call->send,  call->recv,
                  call->count, coset_dtype_size(call->dtype),
                  call->dtype, call->op == COSET_AVG ? COSET_SUM : call->op};
        status = run_phases(c, &w, divide);
    }
    return status == COSET_OK ? status : cst_hier_fail(c, op->sequence, status, "");
}
