/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/thread_oob.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    thread_oob *o;
    int rank;
} end;

struct thread_oob {
    int size;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int arrived, leaving; /* ranks that gave their part, ranks that still have to take the result */
    char *data;
    end ends[];
};

thread_oob *thread_oob_new(int size)
{
    thread_oob *o = calloc(1, sizeof *o + (size_t)size * sizeof(end));
    if (!o)
        abort();
    o->size = size;
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&o->changed, &attr);
    pthread_condattr_destroy(&attr);
    for (int r = 0; r < size; r++)
        o->ends[r] = (end){o, r};
    return o;
}

void thread_oob_free(thread_oob *o)
{
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o->data);
    free(o);
}

static bool wait_until(thread_oob *o, const struct timespec *limit, bool (*done)(const thread_oob *))
{
    while (!done(o))
        if (pthread_cond_timedwait(&o->changed, &o->lock, limit))
            return done(o);
    return true;
}

static bool empty(const thread_oob *o)
{
    return !o->leaving;
}

static bool full(const thread_oob *o)
{
    return o->leaving > 0;
}

static coset_status gather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    end *e = ctx;
    thread_oob *o = e->o;
    struct timespec limit;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += timeout_ms < 0 ? 3600 : timeout_ms / 1000 + 1;
    coset_status status = COSET_ERR_LATE;
    pthread_mutex_lock(&o->lock);
    if (wait_until(o, &limit, empty)) {
        if (!o->arrived)
            o->data = realloc(o->data, bytes * (size_t)o->size);
        memcpy(o->data + (size_t)e->rank * bytes, send, bytes);
        if (++o->arrived == o->size) {
            o->arrived = 0;
            o->leaving = o->size;
            pthread_cond_broadcast(&o->changed);
        }
        if (wait_until(o, &limit, full)) {
            memcpy(recv, o->data, bytes * (size_t)o->size);
            if (!--o->leaving)
                pthread_cond_broadcast(&o->changed);
            status = COSET_OK;
        }
    }
    pthread_mutex_unlock(&o->lock);
    return status;
}

coset_oob thread_oob_end(thread_oob *o, int rank)
{
    return (coset_oob){sizeof(coset_oob), rank, o->size, &o->ends[rank], gather};
}
