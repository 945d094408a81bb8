/* SPDX-License-Identifier: Apache-2.0 */
#include "ddp/buckets.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Below, headers and statistics weigh more than compression saves. */
#define SMALL_ELEMENTS 1024
/* f32, f64, f16, bf16, each exact or compressed. */
#define KINDS 8

int cst_param_compressible(const coset_param *p)
{
    if (p->flags & COSET_PARAM_EXACT)
        return 0;
    return (p->flags & COSET_PARAM_COMPRESS) || (p->ndim != 1 && p->count >= SMALL_ELEMENTS);
}

static size_t padded_bytes(const coset_param *p)
{
    return cst_round_up(p->count * coset_dtype_size(p->dtype), CST_GRAD_ALIGN);
}

/* The cap of the bucket that will be number `index`; `rest` bytes are its own or come after it. A bucket must have moved
 * when the next one is complete, so towards the end none takes more than half of what is left. */
static size_t cap_of(const cst_bucket_caps *caps, size_t index, size_t rest)
{
    if (caps->list && caps->nlist)
        return caps->list[index < caps->nlist ? index : caps->nlist - 1];
    size_t cap = index == 0 ? caps->first_bytes : caps->bucket_bytes;
    size_t tail = rest / 2 > caps->last_bytes ? rest / 2 : caps->last_bytes;
    return cap < tail ? cap : tail;
}

typedef struct {
    size_t members, bytes;
} open_bucket;

typedef struct {
    cst_buckets *b;
    const coset_param *params;
    const size_t *order;
    int compress;
    size_t *position; /* order positions of the members of the open buckets, a row of nparams per kind */
    size_t nparams, placed;
    open_bucket open[KINDS];
} maker;

static size_t kind_of(const maker *m, size_t param)
{
    int compressed = m->compress && cst_param_compressible(&m->params[param]);
    return (size_t)m->params[param].dtype * 2 + (size_t)compressed;
}

static void close_bucket(maker *m, size_t kind)
{
    open_bucket *o = &m->open[kind];
    cst_buckets *b = m->b;
    cst_bucket *out = &b->bucket[b->nbuckets];
    *out = (cst_bucket){.dtype = (coset_dtype)(kind / 2),
                        .compressed = (int)(kind % 2),
                        .offset = b->bytes,
                        .bytes = o->bytes,
                        .first = m->placed,
                        .count = o->members};
    for (size_t i = 0; i < o->members; i++) {
        size_t param = m->position[kind * m->nparams + i];
        b->member[m->placed++] = param;
        b->offset[param] = b->bytes;
        b->bucket_of[param] = b->nbuckets;
        b->bytes += padded_bytes(&m->params[param]);
    }
    b->nbuckets++;
    *o = (open_bucket){0, 0};
}

/* Bytes of parameters from position `from` of the order on. */
static size_t bytes_from(const maker *m, size_t from)
{
    size_t bytes = 0;
    for (size_t i = from; i < m->nparams; i++)
        bytes += padded_bytes(&m->params[m->order[i]]);
    return bytes;
}

/* The bucket that is complete last overlaps with nothing, so it is kept small: where what is left fits the last cap,
 * everything open before it is closed. */
static void fill(maker *m, const cst_bucket_caps *caps)
{
    size_t left = bytes_from(m, 0);
    int last_begun = caps->list != NULL;
    for (size_t i = 0; i < m->nparams; i++) {
        size_t param = m->order[i], bytes = padded_bytes(&m->params[param]), kind = kind_of(m, param);
        if (!last_begun && left <= caps->last_bytes) {
            last_begun = 1;
            for (size_t k = 0; k < KINDS; k++)
                if (m->open[k].members)
                    close_bucket(m, k);
        }
        open_bucket *o = &m->open[kind];
        if (o->members && o->bytes + bytes > cap_of(caps, m->b->nbuckets, o->bytes + left))
            close_bucket(m, kind);
        m->position[kind * m->nparams + o->members++] = param;
        o->bytes += bytes;
        left -= bytes;
        if (o->bytes >= cap_of(caps, m->b->nbuckets, o->bytes + left))
            close_bucket(m, kind);
    }
    for (size_t k = 0; k < KINDS; k++)
        if (m->open[k].members)
            close_bucket(m, k);
}

coset_status cst_buckets_make(cst_buckets *b, const coset_param *params, size_t nparams, const size_t *order,
                              int compress, const cst_bucket_caps *caps)
{
    maker m = {.b = b, .params = params, .order = order, .compress = compress, .nparams = nparams};
    *b = (cst_buckets){.bucket = calloc(nparams, sizeof *b->bucket),
                       .member = calloc(nparams, sizeof *b->member),
                       .offset = calloc(nparams, sizeof *b->offset),
                       .bucket_of = calloc(nparams, sizeof *b->bucket_of)};
    m.position = calloc(nparams, KINDS * sizeof *m.position);
    int ok = b->bucket && b->member && b->offset && b->bucket_of && m.position;
    if (ok)
        fill(&m, caps);
    else
        cst_buckets_free(b);
    free(m.position);
    return ok ? COSET_OK : COSET_ERR_MEMORY;
}

void cst_buckets_free(cst_buckets *b)
{
    free(b->bucket);
    free(b->member);
    free(b->offset);
    free(b->bucket_of);
    *b = (cst_buckets){0};
}
