/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/worker.h"

#include "base/clock.h"

#include <time.h>

static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add_report(coset_mean_report *sum, const coset_mean_report *r)
{
    sum->coords += r->coords;
    sum->bits_sent += r->bits_sent;
    sum->bits_received += r->bits_received;
    sum->repaired += r->repaired;
    sum->exact += r->exact;
}

/*
 * Owners of blocks are dealt over all tensors of a call, and an owner's own vector enters the mean unquantised; so what is
 * in a call shows in the last bits. In rank order each tensor is a call of its own, and buckets change nothing.
 */
static coset_status move_compressed(cst_worker *w, const cst_bucket *b)
{
    for (size_t i = 0; i < b->count; i++) {
        size_t param = w->layout->member[b->first + i];
        const coset_param *p = &w->params->list[param];
        void *grad = w->memory + w->layout->offset[param];
        w->spans[i] = (coset_span){p->id, grad, grad, p->count};
    }
    size_t per_call = w->rank_order ? 1 : b->count;
    coset_status status = COSET_OK;
    for (size_t i = 0; i < b->count && status == COSET_OK; i += per_call) {
        coset_mean_report report = COSET_MEAN_REPORT_INIT;
        status = coset_mean_allreduce(w->mean, w->spans + i, per_call, b->dtype, w->comm, &report);
        if (status == COSET_OK)
            add_report(&w->compressed, &report);
    }
    return status;
}

/* An exact bucket is one all-reduce over everything in it, padding included: zeros stay zeros. */
static coset_status move_bucket(cst_worker *w, size_t index)
{
    const cst_bucket *b = &w->layout->bucket[index];
    w->times[index].start = cst_now_ns();
    uint64_t cpu = cpu_now();
    void *grads = w->memory + b->offset;
    coset_status status = b->compressed ? move_compressed(w, b)
                                        : coset_allreduce(grads, grads, b->bytes / coset_dtype_size(b->dtype), b->dtype,
                                                          COSET_AVG, w->comm);
    w->cpu_ns += cpu_now() - cpu;
    w->times[index].end = cst_now_ns();
    return status;
}

/* Moves the next released bucket, if any; called and returns with the lock held. */
static int move_next(cst_worker *w)
{
    if (w->moved == w->released)
        return 0;
    size_t index = w->moved;
    coset_status status = w->status;
    pthread_mutex_unlock(&w->lock);
    if (status == COSET_OK) /* after a failure the rest is only counted: the communicator is lost */
        status = move_bucket(w, index);
    pthread_mutex_lock(&w->lock);
    if (w->status == COSET_OK)
        w->status = status;
    w->moved++;
    pthread_cond_broadcast(&w->changed);
    return 1;
}

static void *worker_main(void *arg)
{
    cst_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop)
        if (!move_next(w))
            pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

coset_status cst_worker_start(cst_worker *w)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (w->threaded && pthread_create(&w->thread, NULL, worker_main, w)) {
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->changed);
        return COSET_ERR_SYSTEM;
    }
    return COSET_OK;
}

void cst_worker_stop(cst_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->threaded)
        pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
}

void cst_worker_begin(cst_worker *w)
{
    const coset_mean_report none = COSET_MEAN_REPORT_INIT;
    pthread_mutex_lock(&w->lock);
    w->released = w->moved = 0;
    w->status = COSET_OK;
    w->compressed = none;
    w->cpu_ns = 0;
    pthread_mutex_unlock(&w->lock);
}

void cst_worker_release(cst_worker *w, size_t released)
{
    pthread_mutex_lock(&w->lock);
    uint64_t now = released > w->released ? cst_now_ns() : 0;
    for (; w->released < released; w->released++)
        w->times[w->released].ready = now;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

coset_status cst_worker_wait(cst_worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->moved < w->released)
        if (w->threaded)
            pthread_cond_wait(&w->changed, &w->lock);
        else
            move_next(w);
    coset_status status = w->status;
    pthread_mutex_unlock(&w->lock);
    return status;
}
