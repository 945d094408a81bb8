/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/carry.h"

#include "base/error.h"
#include "coll/collective.h"
#include "comm/request.h"
#include "cpu/fpmode.h"
#include "mean/internal.h"
#include "mean/public.h"
#include "mean/cuts.h"

#include <stdlib.h>
#include <string.h>

static cst_operation operation(coset_comm *comm, cst_kind kind, const void *send, void *recv, size_t count,
                               coset_dtype dtype, int peer)
{
    cst_call call = {
        .kind = kind, .dtype = dtype, .op = COSET_SUM, .root = peer, .count = count, .send = send, .recv = recv};
    cst_operation op;
    cst_coll_prepare(comm, &call, &op);
    return op;
}

/*
 * Segments under way. While one is encoded or decoded here, the transfers of the others move: the loops over blocks look
 * after them (pace.h).
 *
 * Transfers move one after the other, so segments are served in the order in which they asked for theirs. That order is the
 * same on every rank: it follows from how many transfers each segment needs, repairs included, which all ranks know. A new
 * segment begins when fewer than FRESH wait for their first transfer, a long one: so the wire always has one to carry, and
 * short ones (checks, votes, repairs) come in between.
 *
 * Where ranks share memory a transfer is over as soon as it begins: there one segment at a time, on the caller's stack.
 */
enum { FRESH = 2, IN_FLIGHT = 6 };

typedef struct {
    coset_round *round;
    coset_xfer xfer;
    unsigned transfers;       /* asked for so far */
    coset_request **requests; /* of the transfer under way */
    size_t nrequests;
} flight;

typedef struct {
    coset_mean *mean;
    coset_comm *comm;
    coset_dtype dtype;
    cst_cuts segments;
    size_t begun;              /* segments */
    flight flights[IN_FLIGHT]; /* a queue: `count` of them from `oldest` on */
    size_t oldest, count, depth;
    size_t fresh; /* flights in their first transfer */
    coset_mean_report report;
} pipeline;

/* From within a codec, whose floating-point mode is not for others' operations and the callbacks at their ends. */
static void look_after_transfers(void *comm)
{
    cst_fpmode mode = cst_fpmode_enter();
    cst_comm_drive_once(comm);
    cst_fpmode_leave(mode);
}

static coset_status start(pipeline *p, flight *f, const cst_operation *op)
{
    coset_status status = cst_comm_queue(p->comm, op, &f->requests[f->nrequests]);
    f->nrequests += !status;
    look_after_transfers(p->comm);
    return status;
}

static coset_status collective(pipeline *p, flight *f, cst_kind kind, size_t count)
{
    const coset_xfer *x = &f->xfer;
    cst_operation op = operation(p->comm, kind, x->send, x->recv, count, x->unit, -1);
    return p->depth == 1 ? cst_comm_run(p->comm, &op) : start(p, f, &op);
}

/* All messages of a transfer at once. */
static coset_status route(pipeline *p, flight *f)
{
    coset_status status = COSET_OK;
    for (size_t i = 0; !status && i < f->xfer.nroutes; i++) {
        const coset_route *m = &f->xfer.routes[i];
        cst_operation op =
            operation(p->comm, m->recv ? CST_RECV : CST_SEND, m->send, m->recv, m->bytes, COSET_U8, m->peer);
        status = start(p, f, &op);
    }
    return status;
}

static coset_status launch(pipeline *p, flight *f)
{
    const coset_xfer *x = &f->xfer;
    size_t most = x->kind == COSET_XFER_ROUTE ? x->nroutes : x->kind != COSET_XFER_DONE;
    f->nrequests = 0;
    f->requests = most ? calloc(most, sizeof(coset_request *)) : NULL;
    if (most && !f->requests)
        return COSET_ERR_MEMORY;
    switch (x->kind) {
    case COSET_XFER_ALLTOALL: return collective(p, f, CST_ALLTOALL, x->bytes);
    case COSET_XFER_ALLGATHER: return collective(p, f, CST_ALLGATHER, x->bytes);
    case COSET_XFER_SUM_WRAP: return collective(p, f, CST_ALLREDUCE, x->bytes / coset_dtype_size(x->unit));
    case COSET_XFER_ROUTE: return route(p, f);
    default: return COSET_OK;
    }
}

/* Until every request that was started has ended, also after a failure. */
static coset_status land(flight *f)
{
    coset_status status = COSET_OK;
    for (size_t i = 0; i < f->nrequests; i++) {
        coset_status one = cst_request_wait(f->requests[i], CST_NEVER);
        status = status ? status : one;
        cst_request_free(f->requests[i]);
    }
    free(f->requests);
    f->requests = NULL;
    f->nrequests = 0;
    return status;
}

/* An error that only this rank knows of: the others must not wait for its next transfer. */
static coset_status give_up(coset_mean *mean, coset_comm *comm, coset_status status)
{
    coset_error why = COSET_ERROR_INIT;
    cst_mean_last_error(mean, &why);
    cst_comm_fail(comm, status, why.peer, UINT64_MAX, "compressed mean: %s", why.text);
    return status;
}

/* Takes in what the segment has received and sends what it asks for next. */
static coset_status advance(pipeline *p, flight *f)
{
    coset_status status = cst_mean_next(f->round, &f->xfer);
    p->fresh -= f->transfers == 1;
    p->fresh += ++f->transfers == 1;
    if (status)
        return give_up(p->mean, p->comm, status);
    status = launch(p, f);
    return status ? cst_comm_fail(p->comm, status, -1, UINT64_MAX, "compressed mean: a transfer could not begin: %s",
                                  coset_strerror(status))
                  : COSET_OK;
}

static coset_status begin_segment(pipeline *p)
{
    const size_t *first = p->segments.first + p->begun;
    flight *f = &p->flights[(p->oldest + p->count) % IN_FLIGHT];
    *f = (flight){.xfer = COSET_XFER_INIT};
    coset_status status =
        cst_mean_begin(p->mean, p->segments.spans + first[0], first[1] - first[0], p->dtype, &f->round);
    if (status)
        return give_up(p->mean, p->comm, status);
    p->begun++;
    p->count++;
    return advance(p, f);
}

static void add_report(coset_mean_report *sum, const coset_mean_report *r)
{
    double share = (double)r->coords / (double)(sum->coords + r->coords + (sum->coords + r->coords == 0));
    sum->spread2 += share * (r->spread2 - sum->spread2);
    sum->mean2 += share * (r->mean2 - sum->mean2);
    sum->predicted_excess += share * (r->predicted_excess - sum->predicted_excess);
    sum->coords += r->coords;
    sum->bits_sent += r->bits_sent;
    sum->bits_received += r->bits_received;
    sum->transfers = r->transfers > sum->transfers ? r->transfers : sum->transfers;
    sum->repaired += r->repaired;
    sum->corrected += r->corrected;
    sum->refined += r->refined;
    sum->exact += r->exact;
    sum->plain |= r->plain;
    sum->codec_s += r->codec_s;
}

static coset_status end_segment(pipeline *p, flight *f)
{
    coset_mean_report r = COSET_MEAN_REPORT_INIT;
    coset_status status = cst_mean_end(f->round, &r);
    f->round = NULL;
    if (!status)
        add_report(&p->report, &r);
    return status;
}

/* The oldest segment's transfer has to end; then it goes on, behind the others, or is complete. */
static coset_status serve_oldest(pipeline *p)
{
    flight *f = &p->flights[p->oldest];
    coset_status status = land(f);
    if (!status && f->xfer.kind != COSET_XFER_DONE)
        status = advance(p, f);
    if (status)
        return status;
    flight now = *f;
    p->oldest = (p->oldest + 1) % IN_FLIGHT;
    p->count--;
    if (now.xfer.kind == COSET_XFER_DONE) {
        p->fresh -= now.transfers == 1;
        return end_segment(p, &now);
    }
    p->flights[(p->oldest + p->count++) % IN_FLIGHT] = now;
    return COSET_OK;
}

static bool may_begin(const pipeline *p)
{
    return p->begun < p->segments.count && p->count < p->depth && p->fresh < FRESH;
}

static coset_status run(pipeline *p)
{
    coset_status status = COSET_OK;
    while (!status && (p->count || p->begun < p->segments.count))
        status = may_begin(p) ? begin_segment(p) : serve_oldest(p);
    /* after a failure: nothing may move any more when the buffers go, and the first reason counts */
    const coset_error why = p->mean->error;
    for (; p->count; p->count--, p->oldest = (p->oldest + 1) % IN_FLIGHT) {
        flight *f = &p->flights[p->oldest];
        land(f);
        cst_mean_end(f->round, NULL);
    }
    p->mean->error = why;
    return status;
}

static coset_status by_hosts(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                             coset_comm *comm, coset_mean_report *report)
{
    cst_error_clear(&mean->error);
    coset_status status = cst_mean_check_spans(mean, spans, nspans, dtype);
    if (status)
        return give_up(mean, comm, status);
    return cst_mean_hosts_run(mean->hosts, spans, nspans, dtype, comm, report, &mean->error);
}

coset_status cst_mean_allreduce(coset_mean *mean, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                coset_comm *comm, coset_mean_report *report)
{
    if (mean->hosts && cst_mean_hosts_possible(comm))
        return by_hosts(mean, spans, nspans, dtype, comm, report);
    pipeline p = {.mean = mean, .comm = comm, .dtype = dtype};
    size_t length = cst_cut_length(mean->protocol->segment, mean->protocol->dealt ? mean->size : 0);
    coset_status status = cst_cuts_make(&p.segments, spans, nspans, dtype, length);
    if (status)
        return give_up(mean, comm, status);
    p.depth = comm->control || p.segments.count == 1 ? 1 : IN_FLIGHT;
    if (p.depth > 1)
        mean->pace = (cst_pace){look_after_transfers, comm, 0};
    status = run(&p);
    mean->pace = (cst_pace){NULL, NULL, 0};
    cst_cuts_free(&p.segments);
    if (status || !report)
        return status;
    size_t size = p.report.struct_size = report->struct_size;
    memcpy(report, &p.report, size < sizeof p.report ? size : sizeof p.report);
    return COSET_OK;
}
