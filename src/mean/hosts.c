/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/hosts.h"

#include "base/clock.h"
#include "base/error.h"
#include "codec/block.h"
#include "coll/hier.h"
#include "coll/patterns/chunk.h"
#include "coll/select.h"
#include "comm/comm.h"
#include "comm/exclusive.h"
#include "kernels/convert/convert.h"
#include "mean/carry.h"
#include "mean/public.h"

#include <stdlib.h>
#include <string.h>

struct cst_mean_hosts {
    coset_mean_options options;
    char *codec, *protocol; /* what options points to */
    /* Of one communicator: */
    uint64_t job;     /* which one */
    coset_mean *mean; /* among the hosts' ranks of the own place */
    void *loaded;     /* saved form of the mean of a communicator to come; NULL: none */
    size_t loaded_bytes;
};

bool cst_mean_hosts_possible(const coset_comm *c)
{
    bool apart = c->settings.algorithm != CST_ALGO_AUTO && c->settings.algorithm != CST_ALGO_HIER;
    return cst_hier_possible(c) && c->nodes.fewest == c->nodes.most && !apart && !c->settings.rank_order;
}

/* ---- creation ---- */

static bool copy_text(const char *text, char **copy)
{
    *copy = text ? strdup(text) : NULL;
    return !text || *copy;
}

cst_mean_hosts *cst_mean_hosts_create(const coset_mean_options *options)
{
    cst_mean_hosts *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->options = *options;
    if (!copy_text(options->codec, &h->codec) || !copy_text(options->protocol, &h->protocol)) {
        cst_mean_hosts_destroy(h);
        return NULL;
    }
    h->options.codec = h->codec;
    h->options.protocol = h->protocol;
    return h;
}

void cst_mean_hosts_destroy(cst_mean_hosts *h)
{
    if (!h)
        return;
    cst_mean_destroy(h->mean);
    free(h->loaded);
    free(h->codec);
    free(h->protocol);
    free(h);
}

size_t cst_mean_hosts_saved(const cst_mean_hosts *h, void *out)
{
    size_t bytes = h ? h->loaded_bytes : 0;
    if (bytes && out)
        memcpy(out, h->loaded, bytes);
    if (!h || h->loaded || !h->mean)
        return bytes;
    cst_mean_save(h->mean, NULL, &bytes);
    if (out)
        cst_mean_save(h->mean, out, &bytes);
    return bytes;
}

coset_status cst_mean_hosts_load(cst_mean_hosts *h, double link_gbps, const void *saved, size_t bytes)
{
    void *copy = bytes ? malloc(bytes) : NULL;
    if (bytes && !copy)
        return COSET_ERR_MEMORY;
    if (bytes)
        memcpy(copy, saved, bytes);
    free(h->loaded);
    h->loaded = copy;
    h->loaded_bytes = bytes;
    cst_mean_destroy(h->mean);
    h->mean = NULL;
    if (link_gbps > 0)
        h->options.link_gbps = link_gbps;
    return COSET_OK;
}

/* A state of another place on the host, or of another number of hosts, is not for this mean. */
static coset_status resume(cst_mean_hosts *h, coset_error *why)
{
    coset_status status = h->loaded ? cst_mean_load(h->mean, h->loaded, h->loaded_bytes) : COSET_OK;
    free(h->loaded);
    h->loaded = NULL;
    h->loaded_bytes = 0;
    if (status == COSET_OK || status == COSET_ERR_MISMATCH)
        return COSET_OK;
    cst_mean_last_error(h->mean, why);
    return status;
}

/* The mean between hosts, made for this communicator. The ranks of a host share its link. */
static coset_status settle(cst_mean_hosts *h, coset_comm *c, coset_error *why)
{
    coset_comm *cross = c->nodes.cross;
    if (h->job == c->job && h->mean)
        return COSET_OK;
    cst_mean_destroy(h->mean);
    h->mean = NULL;
    h->job = c->job;
    coset_mean_options o = h->options;
    o.seed +=
        UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(c->nodes.local[c->rank] + 1); /* dither of its own for each share */
    o.link_gbps /= c->nodes.fewest;
    coset_status status = cst_mean_create(cross->rank, cross->size, &o, &h->mean, why);
    return status ? status : resume(h, why);
}

/* ---- shares ---- */

/* A call as the phases see it. `room` holds the shares, each the parts of all tensors in turn, in f32 (f64 for f64), and
 * padded to the longest, so that they are the blocks of a reduce-scatter. */
typedef struct {
    coset_comm *c;
    const coset_span *spans;
    size_t nspans;
    coset_dtype dtype, wide;
    size_t element; /* bytes in the room */
    char *room;
    size_t *count; /* [shares] elements */
    size_t stride; /* the most of them */
} work;

/* The part of a tensor that belongs to a share: whole blocks; which tensors' first part a share has depends on their ids,
 * so that many small tensors spread over the shares. */
static cst_range part_of(const coset_span *s, int shares, int share)
{
    size_t blocks = (s->count + CST_BLOCK - 1) / CST_BLOCK;
    int turned = ((int)(s->id % (uint64_t)shares) + share) % shares;
    cst_range r = {blocks * (size_t)turned / (size_t)shares * CST_BLOCK,
                   blocks * (size_t)(turned + 1) / (size_t)shares * CST_BLOCK};
    r.end = r.end < s->count ? r.end : s->count;
    r.begin = r.begin < r.end ? r.begin : r.end;
    return r;
}

static int shares_of(const work *w)
{
    return w->c->nodes.fewest;
}

static void find_places(work *w)
{
    for (int k = 0; k < shares_of(w); k++) {
        for (size_t i = 0; i < w->nspans; i++)
            w->count[k] += cst_range_size(part_of(&w->spans[i], shares_of(w), k));
        w->stride = w->count[k] > w->stride ? w->count[k] : w->stride;
    }
}

static void *share_at(const work *w, int k)
{
    return w->room + (size_t)k * w->stride * w->element;
}

static void copy_in(const work *w, void *to, const void *from, size_t count)
{
    if (w->wide == w->dtype)
        memcpy(to, from, count * w->element);
    else
        cst_widen(w->dtype, to, from, count);
}

static void copy_out(const work *w, void *to, const void *from, size_t count)
{
    if (w->wide == w->dtype)
        memcpy(to, from, count * w->element);
    else
        cst_narrow(w->dtype, to, from, count, 1);
}

/* Calls copy for every part of every tensor and its place in the room. */
static void each_part(const work *w, bool in)
{
    size_t size = coset_dtype_size(w->dtype);
    for (int k = 0; k < shares_of(w); k++) {
        char *at = share_at(w, k);
        for (size_t i = 0; i < w->nspans; i++) {
            const coset_span *s = &w->spans[i];
            cst_range r = part_of(s, shares_of(w), k);
            size_t n = cst_range_size(r);
            if (in)
                copy_in(w, at, (const char *)s->send + r.begin * size, n);
            else
                copy_out(w, (char *)s->recv + r.begin * size, at, n);
            at += n * w->element;
        }
    }
}

/* ---- memory ---- */

/* Memory that all ranks of the host map, kept with their group for later calls. */
static coset_status make_room(work *w, coset_error *why)
{
    cst_nodes *n = &w->c->nodes;
    size_t bytes = (size_t)shares_of(w) * w->stride * w->element;
    coset_status status = COSET_OK;
    if (bytes > n->room_bytes) {
        if (n->room)
            status = cst_comm_free(n->node, n->room);
        n->room = NULL;
        n->room_bytes = 0;
        if (status == COSET_OK)
            status = cst_comm_alloc(n->node, bytes, &n->room);
        if (status == COSET_OK)
            n->room_bytes = bytes;
    }
    w->room = n->room;
    return status == COSET_OK ? COSET_OK : cst_fail(why, status, -1, "no memory for %zu bytes on the host", bytes);
}

/* ---- phases ---- */

static coset_status sum_inside(const work *w)
{
    coset_comm *node = w->c->nodes.node;
    return coset_reduce_scatter(w->room, share_at(w, node->rank), w->stride, w->wide, COSET_SUM, node);
}

static void sums_to_means(const work *w, int k)
{
    size_t n = w->count[k];
    int ranks = w->c->nodes.fewest;
    if (w->wide == COSET_F64)
        for (size_t i = 0; i < n; i++)
            ((double *)share_at(w, k))[i] /= ranks;
    else
        for (size_t i = 0; i < n; i++)
            ((float *)share_at(w, k))[i] /= (float)ranks;
}

static coset_status mean_between(cst_mean_hosts *h, const work *w, coset_mean_report *report, coset_error *why)
{
    int k = w->c->nodes.local[w->c->rank];
    if (!w->count[k])
        return COSET_OK;
    coset_span *own = calloc(w->nspans, sizeof *own);
    if (!own)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %zu tensors", w->nspans);
    size_t n = 0;
    char *at = share_at(w, k);
    for (size_t i = 0; i < w->nspans; i++) {
        size_t count = cst_range_size(part_of(&w->spans[i], shares_of(w), k));
        if (count)
            own[n++] = (coset_span){w->spans[i].id, at, at, count};
        at += count * w->element;
    }
    sums_to_means(w, k);
    coset_status status = cst_mean_allreduce(h->mean, own, n, w->wide, w->c->nodes.cross, report);
    if (status != COSET_OK)
        cst_mean_last_error(h->mean, why);
    free(own);
    return status;
}

static coset_status gather_inside(const work *w)
{
    coset_comm *node = w->c->nodes.node;
    return coset_allgather(share_at(w, node->rank), w->room, w->stride, w->wide, node);
}

typedef struct {
    cst_mean_hosts *hosts;
    work *w;
    coset_mean_report *report;
    coset_error *why;
    double copying_s;
} run;

static void copy_parts(run *r, bool in)
{
    uint64_t before = cst_now_ns();
    each_part(r->w, in);
    r->copying_s += (double)(cst_now_ns() - before) * 1e-9;
}

static coset_status run_phases(coset_comm *c, uint64_t sequence, void *arg)
{
    run *r = arg;
    coset_status status = cst_nodes_make(c, sequence);
    if (status == COSET_OK)
        status = make_room(r->w, r->why);
    if (status == COSET_OK)
        status = settle(r->hosts, c, r->why);
    if (status == COSET_OK) {
        copy_parts(r, true);
        status = sum_inside(r->w);
    }
    if (status == COSET_OK)
        status = mean_between(r->hosts, r->w, r->report, r->why);
    if (status == COSET_OK)
        status = gather_inside(r->w);
    if (status != COSET_OK)
        return cst_hier_fail(c, sequence, status, r->why->text);
    copy_parts(r, false);
    r->report->codec_s += r->copying_s;
    return COSET_OK;
}

static void complete_report(coset_mean_report *report, const work *w)
{
    report->coords = 0;
    for (size_t i = 0; i < w->nspans; i++)
        report->coords += w->spans[i].count;
    report->spread2 *= (double)w->c->size / w->c->nodes.nodes; /* of ranks, from that of hosts' means */
}

coset_status cst_mean_hosts_run(cst_mean_hosts *h, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                coset_comm *c, coset_mean_report *report, coset_error *why)
{
    coset_mean_report own = COSET_MEAN_REPORT_INIT;
    work w = {.c = c, .spans = spans, .nspans = nspans, .dtype = dtype};
    w.wide = dtype == COSET_F64 ? COSET_F64 : COSET_F32;
    w.element = coset_dtype_size(w.wide);
    w.count = calloc((size_t)shares_of(&w), sizeof *w.count);
    if (!w.count)
        return cst_comm_fail(c, COSET_ERR_MEMORY, -1, UINT64_MAX, "compressed mean: no memory");
    find_places(&w);
    run r = {h, &w, &own, why, 0};
    coset_status status = cst_comm_exclusive(c, CST_MEAN, w.stride, run_phases, &r);
    complete_report(&own, &w);
    if (status == COSET_OK && report) {
        size_t known = report->struct_size < sizeof own ? report->struct_size : sizeof own;
        own.struct_size = report->struct_size;
        memcpy(report, &own, known);
    }
    free(w.count);
    return status;
}
