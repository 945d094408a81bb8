/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of one process meet in memory: each leaves a pointer to what it sends, and copies from the others' once
 * all have come. */
#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/object.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One gathering = two meetings: all have left their pointer; all have copied, so that senders may go. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, open; /* members not closed yet */
    uint64_t meeting;
    int arrived;
    coset_error error; /* why no further meeting can succeed; status OK if it can */
    struct {
        const void *data;
        size_t bytes;
        uint64_t meetings;
    } slot[];
} hall;

typedef struct {
    cst_bootstrap base;
    hall *hall;
} member;

static void name_missing(const hall *h, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int r = 0; r < h->size && n < size; r++)
        if (h->slot[r].meetings == h->meeting)
            n += (size_t)snprintf(out + n, size - n, "%s%d", n ? ", " : "", r);
}

static void give_up(hall *h, coset_status status, int peer, const char *text)
{
    cst_fail(&h->error, status, peer, "%s", text);
    pthread_cond_broadcast(&h->changed);
}

/* Called with the lock held. Returns the status of the hall. */
static coset_status meet(hall *h, int rank, cst_deadline deadline)
{
    struct timespec until = {(time_t)(deadline / 1000000000u), (long)(deadline % 1000000000u)};
    uint64_t meeting = h->meeting;
    h->slot[rank].meetings = meeting + 1;
    if (h->error.status == COSET_OK && ++h->arrived == h->size) {
        h->arrived = 0;
        h->meeting++;
        pthread_cond_broadcast(&h->changed);
    }
    while (h->meeting == meeting && h->error.status == COSET_OK) {
        if (deadline == CST_NEVER) {
            pthread_cond_wait(&h->changed, &h->lock);
        } else if (pthread_cond_timedwait(&h->changed, &h->lock, &until) && h->meeting == meeting &&
                   h->error.status == COSET_OK) {
            char missing[120], text[200];
            name_missing(h, missing, sizeof missing);
            snprintf(text, sizeof text, "rank %s of %d has not come in time", missing, h->size);
            give_up(h, COSET_ERR_LATE, atoi(missing), text);
        }
    }
    return h->meeting == meeting ? h->error.status : COSET_OK;
}

/* Called with the lock held, after the first meeting: do all ranks gather the same number of bytes? */
static void compare(hall *h, int rank, size_t bytes)
{
    for (int r = 0; r < h->size && h->error.status == COSET_OK; r++)
        if (h->slot[r].bytes != bytes) {
            char text[200];
            bool first = h->meeting <= 1; /* later it is no difference between versions or programs */
            if (first)
                snprintf(text, sizeof text, "rank %d gathers %zu bytes, rank %d %zu", rank, bytes, r, h->slot[r].bytes);
            else
                snprintf(text, sizeof text,
                         "rank %d and rank %d are at different steps of creation: one of them has failed before", rank,
                         r);
            give_up(h, first ? COSET_ERR_MISMATCH : COSET_ERR_PEER, r, text);
        }
}

static coset_status gather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    member *m = ctx;
    hall *h = m->hall;
    int rank = m->base.oob.rank;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    pthread_mutex_lock(&h->lock);
    h->slot[rank].data = send;
    h->slot[rank].bytes = bytes;
    coset_status status = meet(h, rank, deadline);
    if (!status) {
        compare(h, rank, bytes);
        status = h->error.status;
    }
    for (int r = 0; r < h->size && !status; r++)
        if (bytes && (char *)recv + (size_t)r * bytes != h->slot[r].data)
            memcpy((char *)recv + (size_t)r * bytes, h->slot[r].data, bytes);
    if (!status)
        status = meet(h, rank, deadline);
    if (status) {
        m->base.error = h->error;
        m->base.error.rank = rank;
    }
    pthread_mutex_unlock(&h->lock);
    return status;
}

static void hall_free(hall *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static void close_member(cst_bootstrap *b)
{
    hall *h = ((member *)b)->hall;
    pthread_mutex_lock(&h->lock);
    int open = --h->open;
    if (open && h->error.status == COSET_OK) { /* no meeting can be complete without it */
        char text[80];
        snprintf(text, sizeof text, "rank %d left before all had met", b->oob.rank);
        give_up(h, COSET_ERR_PEER, b->oob.rank, text);
    }
    pthread_mutex_unlock(&h->lock);
    if (open == 0)
        hall_free(h);
    free(b);
}

static hall *hall_new(int size)
{
    pthread_condattr_t monotonic;
    hall *h = calloc(1, sizeof *h + (size_t)size * sizeof h->slot[0]);
    if (!h)
        return NULL;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    h->size = h->open = size;
    h->error = (coset_error)COSET_ERROR_INIT;
    return h;
}

coset_status cst_bootstrap_threads(int size, cst_bootstrap *out[], coset_error *why)
{
    coset_status status = cst_bootstrap_check_rank(0, size, why);
    if (status)
        return status;
    hall *h = hall_new(size);
    member **made = h ? calloc((size_t)size, sizeof *made) : NULL;
    int n = 0;
    while (made && n < size && (made[n] = calloc(1, sizeof *made[n])))
        n++;
    if (n < size) {
        for (int r = 0; r < n; r++)
            free(made[r]);
        free(made);
        if (h)
            hall_free(h);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for %d ranks", size);
    }
    for (int r = 0; r < size; r++) {
        made[r]->hall = h;
        made[r]->base.oob = (coset_oob){sizeof(coset_oob), r, size, made[r], gather};
        made[r]->base.error = (coset_error)COSET_ERROR_INIT;
        made[r]->base.close = close_member;
        out[r] = &made[r]->base;
    }
    free(made);
    return COSET_OK;
}
