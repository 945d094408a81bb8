/* SPDX-License-Identifier: Apache-2.0 */
/* The reducer's state as a flat buffer: header, order of the parameters (by id), compression state. Little-endian hosts. */
#include "base/hash.h"
#include "ddp/reducer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x3230706464747363) /* "cstddp02" */

enum { REBUILT = 1, COMPRESSES = 2 };

typedef struct {
    uint64_t magic;
    uint64_t hash;            /* of all that follows */
    uint64_t nparams, params; /* how many, and what they are */
    uint64_t flags, mean_bytes;
} header;

static uint64_t hash_of(const void *state, size_t bytes)
{
    const size_t from = offsetof(header, hash) + sizeof(uint64_t);
    return cst_hash64(MAGIC, (const char *)state + from, bytes - from);
}

/* The same in whatever order they were registered. */
static uint64_t params_hash(const cst_params *params)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < params->count; i++) {
        const coset_param *p = &params->list[i];
        const uint64_t facts[] = {p->id, p->count, (uint64_t)p->dtype};
        sum += cst_hash64(0, facts, sizeof facts);
    }
    return sum;
}

/* A step that has begun is in nobody's state. */
static bool between_steps(const coset_ddp *d)
{
    coset_ddp *locked = (coset_ddp *)d; /* only its lock */
    pthread_mutex_lock(&locked->lock);
    bool between = !d->step.nready;
    pthread_mutex_unlock(&locked->lock);
    return between;
}

static coset_status mean_size(const coset_ddp *d, size_t *bytes)
{
    *bytes = 0;
    return d->mean ? coset_mean_save(d->mean, NULL, bytes) : COSET_OK;
}

coset_status coset_ddp_save(const coset_ddp *d, void *buf, size_t *bytes)
{
    coset_status status = cst_ddp_check(d);
    if (status != COSET_OK)
        return status;
    if (!bytes || !between_steps(d))
        return COSET_ERR_ARGUMENT;
    size_t mean_bytes;
    status = mean_size(d, &mean_bytes);
    if (status != COSET_OK)
        return status;
    size_t n = d->params.count, needed = sizeof(header) + n * sizeof(uint64_t) + mean_bytes, room = *bytes;
    *bytes = needed;
    if (!buf)
        return COSET_OK;
    if (room < needed)
        return COSET_ERR_ARGUMENT;
    uint64_t flags = (d->rebuilt ? REBUILT : 0u) | (d->settings.compress ? COMPRESSES : 0u);
    header h = {MAGIC, 0, n, params_hash(&d->params), flags, mean_bytes};
    char *at = buf;
    memcpy(at, &h, sizeof h);
    at += sizeof h;
    for (size_t i = 0; i < n; i++, at += sizeof(uint64_t))
        memcpy(at, &d->params.list[d->order[i]].id, sizeof(uint64_t));
    if (d->mean)
        status = coset_mean_save(d->mean, at, &mean_bytes);
    h.hash = hash_of(buf, needed);
    memcpy(buf, &h, sizeof h);
    return status;
}

/* The saved order as indices; 0 if it is no permutation of this reducer's parameters. */
static int read_order(const coset_ddp *d, const char *ids, size_t *order)
{
    size_t n = d->params.count;
    unsigned char *seen = calloc(n, 1);
    int ok = seen != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        uint64_t id;
        memcpy(&id, ids + i * sizeof id, sizeof id);
        order[i] = cst_params_find(&d->params, id);
        ok = order[i] != CST_NO_PARAM && !seen[order[i]]++;
    }
    free(seen);
    return ok;
}

/* Is it a state of such a reducer, undamaged? */
static coset_status check_state(coset_ddp *d, const void *buf, size_t bytes, header *h)
{
    size_t fixed = sizeof *h + d->params.count * sizeof(uint64_t);
    if (bytes < sizeof *h)
        return cst_ddp_fail(d, COSET_ERR_CORRUPT, "coset_ddp_load: %zu bytes are too few", bytes);
    memcpy(h, buf, sizeof *h);
    if (h->magic != MAGIC || h->hash != hash_of(buf, bytes) || h->flags > (REBUILT | COMPRESSES))
        return cst_ddp_fail(d, COSET_ERR_CORRUPT, "coset_ddp_load: no state of a reducer, or a damaged one");
    if (h->nparams != d->params.count || h->params != params_hash(&d->params))
        return cst_ddp_fail(d, COSET_ERR_MISMATCH, "coset_ddp_load: the state is of other parameters");
    if (bytes < fixed || h->mean_bytes != bytes - fixed)
        return cst_ddp_fail(d, COSET_ERR_CORRUPT, "coset_ddp_load: %zu bytes do not fit together", bytes);
    if ((d->mean != NULL) != (h->mean_bytes > 0) || (!d->mean && h->flags & COMPRESSES))
        return cst_ddp_fail(d, COSET_ERR_MISMATCH, "coset_ddp_load: one reducer compresses, the other does not");
    return COSET_OK;
}

static coset_status load_mean(coset_ddp *d, const void *buf, size_t bytes)
{
    coset_status status = coset_mean_load(d->mean, buf, bytes);
    if (status == COSET_OK)
        return status;
    coset_error e = COSET_ERROR_INIT;
    coset_mean_last_error(d->mean, &e);
    return cst_ddp_fail(d, status, "coset_ddp_load: %s", e.text);
}

coset_status coset_ddp_load(coset_ddp *d, const void *buf, size_t bytes)
{
    coset_status status = cst_ddp_check(d);
    if (status != COSET_OK)
        return status;
    if (!buf || !between_steps(d))
        return cst_ddp_fail(d, COSET_ERR_ARGUMENT, "coset_ddp_load: %s",
                            buf ? "a step has begun: finish it first" : "no state");
    header h;
    status = check_state(d, buf, bytes, &h);
    if (status != COSET_OK)
        return status;
    size_t n = d->params.count, *order = calloc(n, sizeof *order);
    if (!order)
        return COSET_ERR_MEMORY;
    if (!read_order(d, (const char *)buf + sizeof h, order))
        status = cst_ddp_fail(d, COSET_ERR_CORRUPT, "coset_ddp_load: its order is no order of the parameters");
    if (status == COSET_OK && d->mean)
        status = load_mean(d, (const char *)buf + sizeof h + n * sizeof(uint64_t), h.mean_bytes);
    if (status == COSET_OK) {
        /* A job that goes on does what it did, whatever the link was measured to be this time. */
        d->settings.compress = (h.flags & COMPRESSES) != 0;
        status = cst_ddp_layout(d, order);
    }
    if (status == COSET_OK) {
        d->rebuilt = (h.flags & REBUILT) != 0;
        cst_step_begin(&d->step, &d->layout);
    }
    free(order);
    return status;
}
