/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed means of two or three ranks whose frames are damaged on the way, hashes made good again so that the damage gets
 * past them. Whatever comes: an error or a result, never a read or write out of bounds, never a hang. The input chooses
 * protocol, codec, sizes, dtype and what is damaged.
 */
#include "fuzz/header.h"
#include "codec/wire.h"

#include <coset_mean.h>
#include <stdlib.h>

enum { MAX_RANKS = 3, MAX_DIM = 700, MAX_TRANSFERS = 64, CALLS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    coset_mean *means[MAX_RANKS];
    coset_round *rounds[MAX_RANKS];
    coset_xfer x[MAX_RANKS];
    int ranks;
    cst_reader input;
} job;

/* Makes a frame's hashes fit its contents; brief frames too (their first word cannot be made good: it is left). */
static void make_good(uint8_t *frame, size_t bytes)
{
    cst_frame_header h = {0};
    if (bytes < CST_BODY_AT || memcmp(frame, "CSTF", 4) != 0) {
        if (bytes > CST_BRIEF_HEADER) {
            cst_writer w = cst_writer_of(frame + 8, 8);
            cst_put(&w, cst_bytes_hash(frame + CST_BRIEF_HEADER, bytes - CST_BRIEF_HEADER, 0), 8);
        }
        return;
    }
    cst_reader r = cst_reader_of(frame, bytes);
    h = fuzz_header(&r);
    h.payload = cst_get64(&r);
    h.used = cst_get64(&r);
    h.need_up = cst_get64(&r);
    h.need_down = cst_get64(&r);
    if (h.used > bytes || h.payload > h.used || h.payload < CST_FRAME_HEADER)
        return;
    if (h.kind == CST_FRAME_VECTOR || h.kind == CST_FRAME_COLOURS) {
        if (h.used >= CST_BODY_AT)
            cst_body_seal(frame, &h, (size_t)h.used, bytes);
    } else {
        cst_frame_seal(frame, &h);
    }
}

static void damage(job *j, uint8_t *frame, size_t bytes)
{
    int changes = cst_get8(&j->input) % 4;
    for (int i = 0; i < changes && bytes; i++) {
        size_t at = cst_get16(&j->input);
        at = at & 0x8000 ? at % bytes : at % (bytes < 200 ? bytes : 200); /* half of them near the front */
        frame[at] ^= cst_get8(&j->input);
    }
    if (changes && cst_get8(&j->input) % 4)
        make_good(frame, bytes);
}

static uint8_t *at(const void *base, size_t bytes, int i)
{
    return (uint8_t *)(uintptr_t)base + bytes * (size_t)i;
}

static void carry_routes(job *j)
{
    for (int from = 0; from < j->ranks; from++)
        for (size_t i = 0; i < j->x[from].nroutes; i++) {
            const coset_route *m = &j->x[from].routes[i];
            for (size_t k = 0; m->send && k < j->x[m->peer].nroutes; k++) {
                const coset_route *r = &j->x[m->peer].routes[k];
                if (!r->recv || r->peer != from)
                    continue;
                memcpy(r->recv, m->send, r->bytes < m->bytes ? r->bytes : m->bytes);
                damage(j, r->recv, r->bytes);
            }
        }
}

static void carry(job *j)
{
    size_t bytes = j->x[0].bytes;
    for (int r = 1; r < j->ranks; r++)
        bytes = j->x[r].bytes < bytes ? j->x[r].bytes : bytes; /* damaged frames may make ranks differ */
    for (int to = 0; to < j->ranks; to++)
        for (int from = 0; from < j->ranks; from++) {
            coset_xfer *a = &j->x[from], *b = &j->x[to];
            if (a->kind != b->kind || a->kind == COSET_XFER_DONE || a->kind == COSET_XFER_ROUTE)
                continue;
            if (b->kind == COSET_XFER_SUM_WRAP) {
                for (size_t i = 0; from == to && i < bytes; i++)
                    ((uint8_t *)b->recv)[i] = ((const uint8_t *)b->send)[i];
                if (from == j->ranks - 1)
                    damage(j, b->recv, bytes);
                continue;
            }
            uint8_t *frame = at(b->recv, b->bytes, from);
            memcpy(frame, at(a->send, a->kind == COSET_XFER_ALLTOALL ? a->bytes : 0, to), bytes);
            damage(j, frame, b->bytes);
        }
    carry_routes(j);
}

static void run_call(job *j, const coset_span *spans, coset_dtype dtype)
{
    int begun = 0;
    for (int r = 0; r < j->ranks; r++) {
        j->rounds[r] = NULL;
        begun += coset_mean_begin(j->means[r], &spans[r], 1, dtype, &j->rounds[r]) == COSET_OK;
    }
    for (int t = 0; begun == j->ranks && t < MAX_TRANSFERS; t++) {
        bool all = true, done = true;
        for (int r = 0; r < j->ranks; r++) {
            j->x[r] = (coset_xfer)COSET_XFER_INIT;
            all &= coset_mean_next(j->rounds[r], &j->x[r]) == COSET_OK;
            done &= j->x[r].kind == COSET_XFER_DONE;
        }
        if (!all || done)
            break;
        if (t == MAX_TRANSFERS - 1)
            abort(); /* no end */
        carry(j);
    }
    for (int r = 0; r < j->ranks; r++)
        if (j->rounds[r])
            coset_mean_end(j->rounds[r], NULL);
}

static coset_mean_options choose_options(cst_reader *input)
{
    static const struct {
        const char *protocol, *codec;
        double bits, y, sigma;
    } choices[] = {{NULL, NULL, 0, 0, 0},          {NULL, "lattice:z", 0, 0, 0},
                   {NULL, "lattice:e8", 4, 0, 0},  {NULL, "lattice:entropy", 0, 0, 0},
                   {NULL, "eden", 3, 0, 0},        {NULL, "suresh:rotated", 3, 0, 0},
                   {NULL, "correlated", 2, 0, 0},  {NULL, "none", 0, 0, 0},
                   {"homomorphic", NULL, 0, 0, 0}, {"star", NULL, 4, 100, 0},
                   {"tree", NULL, 8, 100, 0},      {"robust", NULL, 0, 0, 10},
                   {"sublinear", NULL, 1, 50, 0},  {NULL, NULL, 0, 0, 0}};
    unsigned c = cst_get8(input) % (sizeof choices / sizeof *choices);
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    o.protocol = choices[c].protocol;
    o.codec = choices[c].codec;
    o.bits = choices[c].bits;
    o.y = choices[c].y;
    o.sigma = choices[c].sigma;
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double x[MAX_RANKS][MAX_DIM];
    job j = {.input = cst_reader_of(data, size)};
    coset_mean_options o = choose_options(&j.input);
    j.ranks = 2 + cst_get8(&j.input) % (MAX_RANKS - 1);
    size_t dim = 1 + cst_get16(&j.input) % MAX_DIM;
    unsigned flavour = cst_get8(&j.input);
    coset_dtype dtype = flavour % 8 == 7 ? COSET_F64 : COSET_F32;
    double mean = flavour / 8 % 4 == 3 ? 1e6 : flavour / 8 % 4, spread = flavour / 32 % 2 ? 1 : 0.1;
    coset_span spans[MAX_RANKS];
    for (int r = 0; r < j.ranks; r++) {
        if (coset_mean_create(r, j.ranks, &o, &j.means[r], NULL))
            abort();
        spans[r] = (coset_span){1, x[r], x[r], dim};
    }
    for (int call = 0; call < CALLS; call++) {
        for (int r = 0; r < j.ranks; r++)
            for (size_t i = 0; i < dim; i++) {
                double v =
                    mean * (double)(i * 7 % 13) + spread * (double)((i * 31 + (size_t)r * 17 + (size_t)call) % 11);
                if (dtype == COSET_F64)
                    x[r][i] = v;
                else
                    ((float *)(void *)x[r])[i] = (float)v;
            }
        run_call(&j, spans, dtype);
    }
    for (int r = 0; r < j.ranks; r++)
        coset_mean_destroy(j.means[r]);
    return 0;
}
