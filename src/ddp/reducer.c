/* SPDX-License-Identifier: Apache-2.0 */
/* A step: gradients become ready, buckets move, finish waits and reports. */
#include "ddp/reducer.h"

#include "base/clock.h"
#include "base/fork.h"
#include "comm/comm.h"
#include "ddp/agree.h"
#include "ddp/inspect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

coset_status cst_ddp_fail(coset_ddp *d, coset_status status, const char *format, ...)
{
    char text[sizeof d->why];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&d->lock);
    memcpy(d->why, text, sizeof text);
    pthread_mutex_unlock(&d->lock);
    return status;
}

coset_status cst_ddp_check(const coset_ddp *d)
{
    if (!d)
        return COSET_ERR_ARGUMENT;
    return d->comm->fork_generation == cst_fork_generation() ? COSET_OK : COSET_ERR_UNSUPPORTED;
}

/* The communicator knows best why it failed, but not what the caller was doing. */
static coset_status step_failed(coset_ddp *d, coset_status status)
{
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(d->comm, &e);
    return cst_ddp_fail(
        d, status, "step %" PRIu64 ": %s%s", d->report.steps + 1, e.text[0] ? e.text : coset_strerror(status),
        status == COSET_ERR_LATE ? " (a rank that has fewer steps than others calls coset_ddp_join)" : "");
}

void *coset_ddp_grad(coset_ddp *d, uint64_t id)
{
    size_t param = d ? cst_params_find(&d->params, id) : CST_NO_PARAM;
    return param == CST_NO_PARAM ? NULL : d->memory + d->layout.offset[param];
}

static coset_status misuse(coset_ddp *d, const char *what, uint64_t id)
{
    pthread_mutex_lock(&d->lock);
    d->misuse = COSET_ERR_ARGUMENT;
    snprintf(d->why, sizeof d->why, "coset_ddp_ready: parameter id %" PRIu64 " %s", id, what);
    pthread_mutex_unlock(&d->lock);
    return COSET_ERR_ARGUMENT;
}

coset_status coset_ddp_ready(coset_ddp *d, uint64_t id)
{
    coset_status usable = cst_ddp_check(d);
    if (usable != COSET_OK)
        return usable;
    size_t param = cst_params_find(&d->params, id);
    if (param == CST_NO_PARAM)
        return misuse(d, "is not registered", id);
    if (d->no_sync) {
        pthread_mutex_lock(&d->lock);
        d->added[param] = 1;
        pthread_mutex_unlock(&d->lock);
        return COSET_OK;
    }
    const coset_param *p = &d->params.list[param];
    /* while the gradient is still in the caches; afterwards nobody could tell who brought a NaN in */
    int bad = cst_has_nonfinite(p->dtype, d->memory + d->layout.offset[param], p->count);
    pthread_mutex_lock(&d->lock);
    if (!d->step.nready)
        d->times.began = cst_now_ns();
    int fresh = cst_step_ready(&d->step, &d->layout, param);
    if (fresh)
        d->nonfinite[param] = (unsigned char)bad;
    /* inside the lock, so that releases keep their order */
    if (fresh)
        cst_worker_release(&d->worker, d->step.complete);
    pthread_mutex_unlock(&d->lock);
    return fresh ? COSET_OK : misuse(d, "was ready already in this step", id);
}

/* What earlier passes have written counts, also if the last one added nothing to it. */
static void ready_what_was_added(coset_ddp *d)
{
    for (size_t i = 0; i < d->params.count; i++)
        if (d->added[i] && !d->step.ready[i])
            coset_ddp_ready(d, d->params.list[i].id);
}

/* Gradients that were not ready here count as zero. */
static void zero_missing(coset_ddp *d)
{
    for (size_t i = 0; i < d->params.count; i++)
        if (!d->step.ready[i])
            memset(d->memory + d->layout.offset[i], 0,
                   d->params.list[i].count * coset_dtype_size(d->params.list[i].dtype));
}

static coset_status judge(coset_ddp *d, const cst_agreement *a)
{
    if (a->misused_rank >= 0) {
        if (a->misused_rank == coset_comm_rank(d->comm))
            return COSET_ERR_ARGUMENT; /* the text is there already */
        return cst_ddp_fail(d, COSET_ERR_ARGUMENT, "rank %d called coset_ddp_ready for a wrong parameter or twice",
                            a->misused_rank);
    }
    if (!a->same_layout)
        return cst_ddp_fail(d, COSET_ERR_MISMATCH,
                            "the ranks have different buckets, so the gradients are not their means: has a state been "
                            "loaded on some ranks only?");
    if (a->unused == CST_NO_PARAM || d->settings.allow_unused || !a->active)
        return COSET_OK;
    char label[96];
    return cst_ddp_fail(d, COSET_ERR_ARGUMENT,
                        "%zu parameters were ready on no rank, the first is %s; set allow_unused if that is meant",
                        a->unused_count, cst_param_label(&d->params.list[a->unused], label, sizeof label));
}

static coset_status rebuild(coset_ddp *d, int *moved)
{
    d->rebuilt = 1;
    size_t *order = calloc(d->params.count, sizeof *order);
    coset_status status = order ? cst_ddp_agree_order(d, order) : COSET_ERR_MEMORY;
    if (status == COSET_OK)
        status = cst_ddp_layout(d, order);
    free(order);
    *moved = status == COSET_OK;
    return status;
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

static void fill_report(coset_ddp *d)
{
    coset_stats after = {.struct_size = sizeof after};
    coset_comm_stats(d->comm, &after);
    uint64_t moving = 0;
    for (size_t i = 0; i < d->layout.nbuckets; i++) /* they move one after the other */
        moving += d->worker.times[i].end - d->worker.times[i].start;
    d->report = (coset_ddp_report){
        .struct_size = sizeof d->report,
        .steps = d->report.steps + 1,
        .backward_s = seconds(d->times.began, d->times.finish_called),
        .communication_s = (double)moving * 1e-9,
        .exposed_s = seconds(d->times.finish_called, d->times.finish_ended),
        .cpu_s = (double)d->worker.cpu_ns * 1e-9,
        .sent_bytes = after.wire_sent_bytes - d->sent_before.wire_sent_bytes,
        .coords = d->worker.compressed.coords,
        .bits_sent = d->worker.compressed.bits_sent,
        .repaired = d->worker.compressed.repaired,
        .buckets = d->layout.nbuckets,
        .link_gbps = d->link_gbps,
        .plain = d->mean && !d->settings.compress,
    };
    d->reported_began = d->times.began;
    memcpy(d->reported, d->layout.bucket, d->layout.nbuckets * sizeof *d->reported);
    memcpy(d->reported_times, d->worker.times, d->layout.nbuckets * sizeof *d->reported_times);
}

void cst_ddp_begin_step(coset_ddp *d)
{
    pthread_mutex_lock(&d->lock);
    d->misuse = COSET_OK;
    memset(d->nonfinite, 0, d->params.count);
    memset(d->added, 0, d->params.count);
    cst_step_begin(&d->step, &d->layout);
    pthread_mutex_unlock(&d->lock);
    cst_worker_begin(&d->worker);
    d->sent_before.struct_size = sizeof d->sent_before;
    coset_comm_stats(d->comm, &d->sent_before);
}

/* The end of a step, for a rank that takes part and for one that has joined. */
static coset_status end_step(coset_ddp *d, int joined, int *moved, int *active)
{
    cst_agreement a = {.misused_rank = -1, .unused = CST_NO_PARAM};
    d->times.finish_called = cst_now_ns();
    if (!d->step.nready)
        d->times.began = d->times.finish_called;
    zero_missing(d);
    cst_worker_release(&d->worker, d->layout.nbuckets);
    coset_status status = cst_worker_wait(&d->worker);
    if (status == COSET_OK)
        status = cst_ddp_agree(d, joined, &a);
    if (status != COSET_OK)
        return step_failed(d, status);
    d->times.finish_ended = cst_now_ns();
    if (a.active)
        fill_report(d);
    status = judge(d, &a);
    if (status == COSET_OK && !d->rebuilt && !d->settings.keep_order && a.active)
        status = rebuild(d, moved);
    *active = a.active;
    cst_ddp_begin_step(d);
    return status;
}

coset_status coset_ddp_finish(coset_ddp *d, int *moved)
{
    int here = 0, active = 1;
    coset_status status = cst_ddp_check(d);
    if (status == COSET_OK && !d->no_sync) {
        ready_what_was_added(d);
        status = end_step(d, 0, &here, &active);
    }
    if (moved)
        *moved = here;
    return status;
}

coset_status coset_ddp_no_sync(coset_ddp *d, int on)
{
    if (!d)
        return COSET_ERR_ARGUMENT;
    if (d->step.nready)
        return cst_ddp_fail(d, COSET_ERR_ARGUMENT,
                            "coset_ddp_no_sync in the middle of a step: call it before the first ready");
    d->no_sync = on != 0;
    return COSET_OK;
}

coset_status coset_ddp_join(coset_ddp *d, uint64_t *steps)
{
    uint64_t n = 0;
    int active = 1;
    coset_status status = cst_ddp_check(d);
    while (status == COSET_OK && active) {
        int moved = 0;
        status = end_step(d, 1, &moved, &active);
        n += (uint64_t)(active != 0);
    }
    if (steps)
        *steps = n;
    return status;
}

const char *coset_ddp_why(const coset_ddp *d)
{
    return d ? d->why : "no reducer";
}

coset_status coset_ddp_last_report(const coset_ddp *d, coset_ddp_report *out)
{
    if (!d || !out || out->struct_size < sizeof out->struct_size)
        return COSET_ERR_ARGUMENT;
    size_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
    memcpy((char *)out + sizeof size, (const char *)&d->report + sizeof size, size - sizeof size);
    return COSET_OK;
}

static double since_began(const coset_ddp *d, uint64_t t)
{
    return (double)(int64_t)(t - d->reported_began) * 1e-9;
}

coset_status coset_ddp_bucket_report(const coset_ddp *d, size_t index, coset_ddp_bucket *out)
{
    if (!d || !out || out->struct_size < sizeof out->struct_size || index >= d->report.buckets)
        return COSET_ERR_ARGUMENT;
    const cst_bucket *b = &d->reported[index];
    const cst_bucket_times *t = &d->reported_times[index];
    coset_ddp_bucket r = {.struct_size = out->struct_size,
                          .bytes = b->bytes,
                          .params = b->count,
                          .dtype = b->dtype,
                          .compressed = b->compressed,
                          .ready_s = since_began(d, t->ready),
                          .start_s = since_began(d, t->start),
                          .end_s = since_began(d, t->end)};
    memcpy(out, &r, out->struct_size < sizeof r ? out->struct_size : sizeof r);
    return COSET_OK;
}
