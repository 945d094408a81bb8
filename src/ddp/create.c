/* SPDX-License-Identifier: Apache-2.0 */
/* Making a reducer: options, parameters and communicator agreed, buckets laid out, memory and thread. */
#include "base/error.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "ddp/link.h"
#include "ddp/reducer.h"
#include "ddp/same.h"

#include <stdlib.h>
#include <string.h>

/* PyTorch's default, which its users know; the ends as docs/performance.md measures them. */
#define BUCKET_BYTES ((size_t)25 << 20)
#define END_BYTES    ((size_t)1 << 20)

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
    memcpy(d->order, order, d->params.count * sizeof *order);
    return COSET_OK;
}

static coset_status make_parts(coset_ddp *d, coset_error *why)
{
    size_t n = d->params.count;
    size_t *order = reverse_order(n);
    d->order = calloc(n, sizeof *d->order);
    d->nonfinite = calloc(n, 1);
    d->added = calloc(n, 1);
    d->culprit = calloc(n, sizeof *d->culprit);
    d->worker.times = calloc(n, sizeof *d->worker.times);
    d->worker.spans = calloc(n, sizeof *d->worker.spans);
    d->reported = calloc(n, sizeof *d->reported);
    d->reported_times = calloc(n, sizeof *d->reported_times);
    int got = order && d->order && d->nonfinite && d->added && d->culprit && d->worker.times && d->worker.spans &&
              d->reported && d->reported_times;
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
        return cst_fail(why, status, -1, "memory for %zu bytes of gradients: %s", d->memory_bytes,
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
    free(d->order);
    free(d->nonfinite);
    free(d->added);
    free(d->culprit);
    free(d->settings.list);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ARGUMENT: coset_mean_create would not take them. Told before the ranks meet, so that the others hear of it. */
static coset_status settle_mean(const coset_mean_options *given, const coset_comm *comm, coset_mean_options *o,
                                coset_error *why)
{
    const coset_mean_options fresh = COSET_MEAN_OPTIONS_INIT;
    coset_mean *trial = NULL;
    *o = fresh;
    if (given->struct_size < sizeof given->struct_size || given->struct_size > 4096)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "mean->struct_size is not set: use COSET_MEAN_OPTIONS_INIT");
    memcpy(o, given, given->struct_size < sizeof *o ? given->struct_size : sizeof *o);
    o->struct_size = sizeof *o;
    coset_status status = coset_mean_create(coset_comm_rank(comm), coset_comm_size(comm), o, &trial, why);
    coset_mean_destroy(trial);
    return status;
}

/* The compressed mean, unless the planner finds that the link is quicker than its codes. */
static coset_status make_mean(coset_ddp *d, coset_mean_options o, coset_error *why)
{
    int pays;
    coset_status status = cst_link_settle(d->comm, &o, &pays);
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "measuring the link: %s", coset_strerror(status));
    d->link_gbps = o.link_gbps;
    d->settings.compress = pays;
    /* made all the same: a state may be loaded that compresses */
    return coset_mean_create(coset_comm_rank(d->comm), coset_comm_size(d->comm), &o, &d->mean, why);
}

static coset_status build(coset_ddp *d, coset_comm *comm, const coset_ddp_options *options, const coset_param *params,
                          size_t nparams, coset_error *why)
{
    coset_mean_options mean;
    coset_status status = settle(&d->settings, options, why);
    if (status == COSET_OK && d->settings.compress)
        status = settle_mean(options->mean, comm, &mean, why);
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
        status = make_mean(d, mean, why);
    if (status == COSET_OK)
        status = make_parts(d, why);
    if (status == COSET_OK)
        status = make_memory(d, why);
    return status;
}

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
    cst_ddp_begin_step(d);
    *ddp = d;
    return COSET_OK;
}

coset_status coset_ddp_destroy(coset_ddp *d)
{
    if (cst_ddp_check(d) != COSET_OK)
        return COSET_OK;
    cst_worker_stop(&d->worker);
    coset_comm_destroy(d->comm); /* and the gradients' memory with it */
    free_parts(d);
    return COSET_OK;
}

coset_status coset_ddp_abort(coset_ddp *d, const char *why)
{
    return d ? coset_comm_abort(d->comm, why) : COSET_ERR_ARGUMENT;
}
