/* SPDX-License-Identifier: Apache-2.0 */
/* The reducer's state as a flat buffer: header, order of the parameters (by id), compression state. Little-endian hosts. */
#include "ddp/reducer.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC UINT64_C(0x3230706464747363) /* "cstddp02" */

enum { REBUILT = 1, COMPRESSES = 2 };

typedef struct {
    uint64_t magic, nparams, flags, mean_bytes;
} header;

static coset_status mean_size(const coset_ddp *d, size_t *bytes)
{
    *bytes = 0;
    return d->mean ? coset_mean_save(d->mean, NULL, bytes) : COSET_OK;
}

coset_status coset_ddp_save(const coset_ddp *d, void *buf, size_t *bytes)
{
    if (!d || !bytes)
        return COSET_ERR_ARGUMENT;
    size_t mean_bytes;
    coset_status status = mean_size(d, &mean_bytes);
    if (status != COSET_OK)
        return status;
    size_t n = d->params.count, needed = sizeof(header) + n * sizeof(uint64_t) + mean_bytes, room = *bytes;
    *bytes = needed;
    if (!buf)
        return COSET_OK;
    if (room < needed)
        return COSET_ERR_ARGUMENT;
    uint64_t flags = (d->rebuilt ? REBUILT : 0u) | (d->settings.compress ? COMPRESSES : 0u);
    header h = {MAGIC, n, flags, mean_bytes};
    char *at = buf;
    memcpy(at, &h, sizeof h);
    at += sizeof h;
    for (size_t i = 0; i < n; i++, at += sizeof(uint64_t))
        memcpy(at, &d->params.list[d->layout.member[i]].id, sizeof(uint64_t));
    return d->mean ? coset_mean_save(d->mean, at, &mean_bytes) : COSET_OK;
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

coset_status coset_ddp_load(coset_ddp *d, const void *buf, size_t bytes)
{
    if (!d || !buf)
        return COSET_ERR_ARGUMENT;
    header h;
    size_t n = d->params.count, fixed = sizeof h + n * sizeof(uint64_t);
    if (bytes < fixed)
        return cst_ddp_fail(d, COSET_ERR_CORRUPT, "coset_ddp_load: %zu bytes are too few", bytes);
    memcpy(&h, buf, sizeof h);
    if (h.magic != MAGIC || h.nparams != n || h.mean_bytes != bytes - fixed || h.flags > (REBUILT | COMPRESSES))
        return cst_ddp_fail(d, h.magic == MAGIC ? COSET_ERR_MISMATCH : COSET_ERR_CORRUPT,
                            "coset_ddp_load: not the state of a reducer with these %zu parameters", n);
    if ((d->mean != NULL) != (h.mean_bytes > 0) || (!d->mean && h.flags & COMPRESSES))
        return cst_ddp_fail(d, COSET_ERR_MISMATCH, "coset_ddp_load: one reducer compresses, the other does not");
    size_t *order = calloc(n, sizeof *order);
    if (!order)
        return COSET_ERR_MEMORY;
    coset_status status = COSET_OK;
    if (!read_order(d, (const char *)buf + sizeof h, order))
        status = cst_ddp_fail(d, COSET_ERR_MISMATCH, "coset_ddp_load: the state is of other parameters");
    if (status == COSET_OK && d->mean)
        status = coset_mean_load(d->mean, (const char *)buf + fixed, h.mean_bytes);
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
