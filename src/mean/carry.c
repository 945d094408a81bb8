/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/carry.h"

#include "base/clock.h"
#include "base/error.h"
#include "coll/collective.h"
#include "comm/request.h"
#include "mean/internal.h"
#include "mean/public.h"

#include <stdlib.h>

static cst_operation operation(coset_comm *comm, cst_kind kind, const void *send, void *recv, size_t count,
                               coset_dtype dtype, int peer)
{
    cst_call call = {
        .kind = kind, .dtype = dtype, .op = COSET_SUM, .root = peer, .count = count, .send = send, .recv = recv};
    cst_operation op;
    cst_coll_prepare(comm, &call, &op);
    return op;
}

static coset_status collective(coset_comm *comm, cst_kind kind, const coset_xfer *x, size_t count)
{
    cst_operation op = operation(comm, kind, x->send, x->recv, count, x->unit, -1);
    return cst_comm_run(comm, &op);
}

/* All messages of a transfer at once; waits for every one that was started, also after a failure. */
static coset_status route(coset_comm *comm, const coset_xfer *x)
{
    coset_request **requests = calloc(x->nroutes ? x->nroutes : 1, sizeof(coset_request *));
    if (!requests)
        return COSET_ERR_MEMORY;
    coset_status status = COSET_OK;
    for (size_t i = 0; !status && i < x->nroutes; i++) {
        const coset_route *m = &x->routes[i];
        cst_operation op =
            operation(comm, m->recv ? CST_RECV : CST_SEND, m->send, m->recv, m->bytes, COSET_U8, m->peer);
        status = cst_comm_start(comm, &op, &requests[i]);
    }
    for (size_t i = 0; i < x->nroutes; i++) {
        if (!requests[i])
            continue;
        coset_status one = cst_request_wait(requests[i], CST_NEVER);
        status = status ? status : one;
        cst_request_free(requests[i]);
    }
    free(requests);
    return status;
}

static coset_status carry(coset_comm *comm, const coset_xfer *x)
{
    switch (x->kind) {
    case COSET_XFER_ALLTOALL: return collective(comm, CST_ALLTOALL, x, x->bytes);
    case COSET_XFER_ALLGATHER: return collective(comm, CST_ALLGATHER, x, x->bytes);
    case COSET_XFER_SUM_WRAP: return collective(comm, CST_ALLREDUCE, x, x->bytes / coset_dtype_size(x->unit));
    case COSET_XFER_ROUTE: return route(comm, x);
    default: return COSET_OK;
    }
}

/* An error that only this rank knows of: the others must not wait for its next transfer. */
static coset_status give_up(coset_mean *mean, coset_comm *comm, coset_status status)
{
    coset_error why = COSET_ERROR_INIT;
    cst_mean_last_error(mean, &why);
    cst_comm_fail(comm, status, why.peer, UINT64_MAX, "compressed mean: %s", why.text);
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
    coset_round *round;
    if (mean->hosts && cst_mean_hosts_possible(comm))
        return by_hosts(mean, spans, nspans, dtype, comm, report);
    coset_status status = cst_mean_begin(mean, spans, nspans, dtype, &round);
    if (status)
        return give_up(mean, comm, status);
    coset_xfer x = COSET_XFER_INIT;
    do {
        status = cst_mean_next(round, &x);
        uint64_t before = cst_now_ns();
        if (status)
            give_up(mean, comm, status);
        else
            status = carry(comm, &x);
        round->report.transfer_s += (double)(cst_now_ns() - before) * 1e-9;
    } while (!status && x.kind != COSET_XFER_DONE);
    coset_status ended = cst_mean_end(round, report);
    return status ? status : ended;
}
