/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/reducer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "ddp/agree.h"
#include "ddp/inspect.h"
#include "ddp/link.h"
#include "ddp/same.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PyTorch's default, which its users know; the ends as docs/performance.md measures them. */
#define BUCKET_BYTES ((size_t)25 << 20)
#define END_BYTES    ((size_t)1 << 20)

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

/* The communicator knows best why it failed. */
static coset_status comm_failed(coset_ddp *d, coset_status status)
{
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(d->comm, &e);
    return cst_ddp_fail(d, status, "%s", e.text[0] ? e.text : coset_strerror(status));
}

/* ---- create ---- */

static coset_status settle(cst_ddp_settings *s, const coset_ddp_options *options, coset_error *why)
{
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    if (options) {
        if (options->struct_size < sizeof options->struct_size || options->struct_size > 4096)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "options.struct_size is not set: use COSET_DDP_OPTIONS_INIT");
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    }
    *s = (cst_ddp_settings){
        .allow_unused = o.allow_unused != 0, .keep_order = o.keep_order != 0, .compress = o.mean != NULL};
    s->caps.bucket_bytes = o.bucket_bytes ? o.bucket_bytes : BUCKET_BYTES;
    s->caps.first_bytes = o.first_bytes ? o.first_bytes : END_BYTES;
    s->caps.last_bytes = o.last_bytes ? o.last_bytes : END_BYTES;
    if (!o.ncaps)
        return COSET_OK;
    if (!o.caps)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "caps is NULL, ncaps is %zu", o.ncaps);
    s->list = calloc(o.ncaps, sizeof *s->list);
    if (!s->list)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %zu caps", o.ncaps);
    memcpy(s->list, o.caps, o.ncaps * sizeof *s->list);
    s->caps.list = s->list;
    s->caps.nlist = o.ncaps;
    return COSET_OK;
}

static void settings_numbers(const cst_ddp_settings *s, uint64_t option[CST_SAME_OPTIONS])
{
    const cst_bucket_caps *caps = &s->caps;
    option[CST_SAME_BUCKET_BYTES] = caps->bucket_bytes;
    option[CST_SAME_FIRST_BYTES] = caps->first_bytes;
    option[CST_SAME_LAST_BYTES] = caps->last_bytes;
    option[CST_SAME_CAPS] = caps->nlist ? cst_hash64(0, caps->list, caps->nlist * sizeof *caps->list) : 0;
    option[CST_SAME_ALLOW_UNUSED] = (uint64_t)s->allow_unused;
    option[CST_SAME_KEEP_ORDER] = (uint64_t)s->keep_order;
    option[CST_SAME_MEAN] = (uint64_t)s->compress;
}

static size_t *reverse_order(size_t n)
{
    size_t *order = calloc(n, sizeof *order);
    for (size_t i = 0; order && i < n; i++)
        order[i] = n - 1 - i;
    return order;
}

coset_status cst_ddp_layout(coset_ddp *d, const size_t *order)
{
    cst_buckets next;
    coset_status status =
        cst_buckets_make(&next, d->params.list, d->params.count, order, d->settings.compress, &d->settings.caps);
    if (status != COSET_OK)
        return status;
    if (d->layout.bucket && d->memory_bytes) {
        char *kept = malloc(d->memory_bytes);
        if (!kept) {
            cst_buckets_free(&next);
            return COSET_ERR_MEMORY;
        }
        memcpy(kept, d->memory, d->memory_bytes);
        memset(d->memory, 0, d->memory_bytes); /* what lies between the gradients must stay zero */
        for (size_t i = 0; i < d->params.count; i++)
            memcpy(d->memory + next.offset[i], kept + d->layout.offset[i],
                   d->params.list[i].count * coset_dtype_size(d->params.list[i].dtype));
        free(kept);
    }
    cst_buckets_free(&d->layout);
    d->layout = next;
    return COSET_OK;
}

static coset_status make_parts(coset_ddp *d, coset_error *why)
{
    size_t n = d->params.count;
    size_t *order = reverse_order(n);
    d->nonfinite = calloc(n, 1);
    d->culprit = calloc(n, sizeof *d->culprit);
    d->worker.times = calloc(n, sizeof *d->worker.times);
    d->worker.spans = calloc(n, sizeof *d->worker.spans);
    d->reported = calloc(n, sizeof *d->reported);
    d->reported_times = calloc(n, sizeof *d->reported_times);
    int got =
        order && d->nonfinite && d->culprit && d->worker.times && d->worker.spans && d->reported && d->reported_times;
    coset_status status = got ? cst_step_init(&d->step, n) : COSET_ERR_MEMORY;
    if (status == COSET_OK)
        status = cst_ddp_layout(d, order);
    free(order);
    for (size_t i = 0; status == COSET_OK && i < n; i++)
        d->culprit[i] = -1;
    return status == COSET_OK ? status : cst_fail(why, status, -1, "no memory for a reducer of %zu parameters", n);
}

static coset_status make_memory(coset_ddp *d, coset_error *why)
{
    d->memory_bytes = d->layout.bytes;
    coset_status status = coset_alloc(d->comm, d->memory_bytes, (void **)&d->memory);
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "no memory for %zu bytes of gradients: %s", d->memory_bytes,
                        coset_strerror(status));
    cst_worker *w = &d->worker;
    w->comm = d->comm;
    w->mean = d->mean;
    w->params = &d->params;
    w->layout = &d->layout;
    w->memory = d->memory;
    w->rank_order = d->comm->settings.rank_order;
    w->threaded = d->comm->settings.progress == COSET_PROGRESS_THREAD;
    if (cst_worker_start(w) != COSET_OK)
        return cst_fail(why, COSET_ERR_SYSTEM, -1, "could not start the reducer's thread");
    return COSET_OK;
}

static void free_parts(coset_ddp *d)
{
    coset_mean_destroy(d->mean);
    cst_step_free(&d->step);
    cst_buckets_free(&d->layout);
    cst_params_free(&d->params);
    free(d->worker.times);
    free(d->worker.spans);
    free(d->reported);
    free(d->reported_times);
    free(d->nonfinite);
    free(d->culprit);
    free(d->settings.list);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* The compressed mean, unless the planner finds that the link is quicker than its codes. */
static coset_status make_mean(coset_ddp *d, const coset_mean_options *given, coset_error *why)
{
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    if (given->struct_size < sizeof given->struct_size || given->struct_size > 4096)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "mean->struct_size is not set: use COSET_MEAN_OPTIONS_INIT");
    memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    o.struct_size = sizeof o;
    int pays;
    coset_status status = cst_link_settle(d->comm, &o, &pays);
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "measuring the link: %s", coset_strerror(status));
    d->link_gbps = o.link_gbps;
    d->settings.compress = pays;
    /* made all the same: it is what checks the options */
    return coset_mean_create(coset_comm_rank(d->comm), coset_comm_size(d->comm), &o, &d->mean, why);
}

static coset_status build(coset_ddp *d, coset_comm *comm, const coset_ddp_options *options, const coset_param *params,
                          size_t nparams, coset_error *why)
{
    coset_status status = settle(&d->settings, options, why);
    if (status == COSET_OK)
        status = cst_params_copy(&d->params, params, nparams, why);
    /* every rank must come to the collective calls below, or the others would wait */
    coset_status split = coset_comm_split(comm, 0, coset_comm_rank(comm), &d->comm);
    if (split != COSET_OK)
        return cst_fail(why, split, -1, "coset_comm_split: %s", coset_strerror(split));
    uint64_t option[CST_SAME_OPTIONS];
    settings_numbers(&d->settings, option);
    coset_status agreed = cst_ddp_same(&d->params, option, status == COSET_OK ? NULL : why->text, d->comm, why);
    if (status == COSET_OK)
        status = agreed;
    if (status == COSET_OK && d->settings.compress)
        status = make_mean(d, options->mean, why);
    if (status == COSET_OK)
        status = make_parts(d, why);
    if (status == COSET_OK)
        status = make_memory(d, why);
    return status;
}

static void begin_step(coset_ddp *d);

coset_status coset_ddp_create(coset_comm *comm, const coset_ddp_options *options, const coset_param *params,
                              size_t nparams, coset_ddp **ddp)
{
    if (!comm || !ddp)
        return COSET_ERR_ARGUMENT;
    coset_ddp *d = calloc(1, sizeof *d);
    if (!d)
        return COSET_ERR_MEMORY;
    pthread_mutex_init(&d->lock, NULL);
    coset_error why = COSET_ERROR_INIT;
    coset_status status = build(d, comm, options, params, nparams, &why);
    if (status != COSET_OK) {
        if (d->comm)
            coset_comm_destroy(d->comm);
        free_parts(d);
        return cst_comm_note(comm, status, "coset_ddp_create: %s", why.text);
    }
    begin_step(d);
    *ddp = d;
    return COSET_OK;
}

coset_status coset_ddp_destroy(coset_ddp *d)
{
    if (!d || d->comm->fork_generation != cst_fork_generation())
        return COSET_OK;
    cst_worker_stop(&d->worker);
    coset_comm_destroy(d->comm); /* and the gradients' memory with it */
    free_parts(d);
    return COSET_OK;
}

/* ---- a step ---- */

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
    if (!d)
        return COSET_ERR_ARGUMENT;
    size_t param = cst_params_find(&d->params, id);
    if (param == CST_NO_PARAM)
        return misuse(d, "is not registered", id);
    if (d->no_sync)
        return COSET_OK;
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
    memcpy(d->reported, d->layout.bucket, d->layout.nbuckets * sizeof *d->reported);
    memcpy(d->reported_times, d->worker.times, d->layout.nbuckets * sizeof *d->reported_times);
}

static void begin_step(coset_ddp *d)
{
    pthread_mutex_lock(&d->lock);
    d->misuse = COSET_OK;
    memset(d->nonfinite, 0, d->params.count);
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
        return comm_failed(d, status);
    d->times.finish_ended = cst_now_ns();
    fill_report(d);
    status = judge(d, &a);
    if (status == COSET_OK && !d->rebuilt && !d->settings.keep_order && a.active)
        status = rebuild(d, moved);
    *active = a.active;
    begin_step(d);
    return status;
}

coset_status coset_ddp_finish(coset_ddp *d, int *moved)
{
    int here = 0, active = 1;
    if (!d)
        return COSET_ERR_ARGUMENT;
    coset_status status = d->no_sync ? COSET_OK : end_step(d, 0, &here, &active);
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
    coset_status status = d ? COSET_OK : COSET_ERR_ARGUMENT;
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
    return (double)(int64_t)(t - d->times.began) * 1e-9;
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
