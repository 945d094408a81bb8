/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No compression: codec "none", and what the objective "time" chooses where the link is faster than the codecs. The elements
 * of chunk j go to owner j, who adds them in rank order (16-bit floats in f32), divides, and sends the mean to all. The same
 * two transfers as the sharded star's; exact, so nothing has to be tracked.
 */
#include "base/error.h"
#include "kernels/block.h"
#include "kernels/convert/convert.h"
#include "mean/internal.h"

#include <stdlib.h>

typedef enum { AT_START, AT_UP, AT_DOWN, AT_END } stage;

typedef struct {
    stage at;
    uint8_t *send, *recv;
    size_t bytes; /* of a frame: brief header, chunk */
} plain;

static plain *state_of(const coset_round *round)
{
    return round->state;
}

static size_t width_of(const coset_round *round)
{
    return coset_dtype_size(round->dtype);
}

/* Owner j has the elements from chunk_begin(j) to chunk_begin(j + 1) of all tensors in a row; multiples of 1024. */
static size_t chunk_begin(const coset_round *round, int j)
{
    const size_t unit = 1024;
    size_t units = (round->layout.coords + unit - 1) / unit, n = (size_t)round->mean->size;
    size_t at = (units / n * (size_t)j + units % n * (size_t)j / n) * unit;
    return at < round->layout.coords ? at : round->layout.coords;
}

static size_t largest_chunk(const coset_round *round)
{
    size_t most = 0;
    for (int j = 0; j < round->mean->size; j++) {
        size_t count = chunk_begin(round, j + 1) - chunk_begin(round, j);
        most = count > most ? count : most;
    }
    return most;
}

/* Copies elements [begin, end) of all tensors in a row out of the inputs or into the outputs. */
static void copy_elements(const coset_round *round, size_t begin, size_t end, uint8_t *buffer, bool out)
{
    size_t width = width_of(round), at = 0;
    for (size_t i = 0; i < round->nspans && at < end; at += round->spans[i++].count) {
        const coset_span *s = &round->spans[i];
        size_t from = begin > at ? begin - at : 0, to = end - at < s->count ? end - at : s->count;
        if (from >= to)
            continue;
        size_t bytes = (to - from) * width;
        if (out)
            memcpy((uint8_t *)s->recv + from * width, buffer, bytes);
        else
            memcpy(buffer, (const uint8_t *)s->send + from * width, bytes);
        buffer += bytes;
    }
}

static coset_status plain_begin(coset_round *round)
{
    plain *s = round->state = calloc(1, sizeof *s);
    if (!s)
        return COSET_ERR_MEMORY;
    s->bytes = CST_BRIEF_HEADER + largest_chunk(round) * width_of(round);
    size_t n = (size_t)round->mean->size;
    s->send = cst_pool_get(&round->mean->pool, n * s->bytes);
    s->recv = cst_pool_get(&round->mean->pool, n * s->bytes);
    return s->send && s->recv ? COSET_OK : COSET_ERR_MEMORY;
}

static void plain_end(coset_round *round)
{
    plain *s = state_of(round);
    cst_pool_put(&round->mean->pool, s->send);
    cst_pool_put(&round->mean->pool, s->recv);
    free(s);
}

static void seal(const coset_round *round, int pass, int receiver, size_t count, uint8_t *frame)
{
    const plain *s = state_of(round);
    size_t used = CST_BRIEF_HEADER + count * width_of(round);
    memset(frame + used, 0, s->bytes - used);
    cst_frame_header h = cst_header_of(round, CST_FRAME_VECTOR, pass, round->mean->rank, receiver);
    cst_brief_seal(frame, &h, s->bytes);
}

static coset_status open_frame(const coset_round *round, int pass, int sender, int receiver, const uint8_t **elements)
{
    const plain *s = state_of(round);
    cst_reader body;
    cst_frame_header want = cst_header_of(round, CST_FRAME_VECTOR, pass, sender, receiver);
    coset_status status =
        cst_brief_open(s->recv + s->bytes * (size_t)sender, s->bytes, &want, &body, &round->mean->error);
    *elements = body.at;
    return status;
}

static coset_status send_up(coset_round *round, coset_xfer *xfer)
{
    plain *s = state_of(round);
    for (int j = 0; j < round->mean->size; j++) {
        uint8_t *frame = s->send + s->bytes * (size_t)j;
        size_t begin = chunk_begin(round, j), end = chunk_begin(round, j + 1);
        copy_elements(round, begin, end, frame + CST_BRIEF_HEADER, false);
        seal(round, 0, j, end - begin, frame);
    }
    s->at = AT_UP;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, s->send, s->recv, s->bytes, COSET_U8);
}

enum { SLICE = 1024 };

/* sum += x or sum = x, in the type that sums are taken in: f64 for f64, else f32. */
static void add_slice(coset_dtype dtype, const uint8_t *x, size_t count, bool first, double *sum64, float *sum32)
{
    if (dtype == COSET_F64) {
        double in[SLICE];
        memcpy(in, x, count * sizeof *in);
        for (size_t i = 0; i < count; i++)
            sum64[i] = first ? in[i] : sum64[i] + in[i];
        return;
    }
    float in[SLICE];
    if (dtype == COSET_F32)
        memcpy(in, x, count * sizeof *in);
    else
        cst_widen(dtype, in, x, count);
    for (size_t i = 0; i < count; i++)
        sum32[i] = first ? in[i] : sum32[i] + in[i];
}

static void average_slice(const coset_round *round, const uint8_t *const *x, size_t at, size_t count, uint8_t *out)
{
    double sum64[SLICE];
    float sum32[SLICE];
    size_t n = (size_t)round->mean->size, width = width_of(round);
    for (size_t u = 0; u < n; u++)
        add_slice(round->dtype, x[u] + at * width, count, u == 0, sum64, sum32);
    if (round->dtype == COSET_F64) {
        for (size_t i = 0; i < count; i++)
            sum64[i] /= (double)n;
        memcpy(out, sum64, count * sizeof *sum64);
    } else if (round->dtype == COSET_F32) {
        for (size_t i = 0; i < count; i++)
            sum32[i] /= (float)n;
        memcpy(out, sum32, count * sizeof *sum32);
    } else {
        cst_narrow(round->dtype, out, sum32, count, (unsigned)n);
    }
}

static coset_status send_down(coset_round *round, coset_xfer *xfer)
{
    plain *s = state_of(round);
    int n = round->mean->size, rank = round->mean->rank;
    size_t count = chunk_begin(round, rank + 1) - chunk_begin(round, rank);
    const uint8_t **x = calloc((size_t)n, sizeof *x);
    coset_status status = x ? COSET_OK : COSET_ERR_MEMORY;
    for (int u = 0; !status && u < n; u++)
        status = open_frame(round, 0, u, rank, &x[u]);
    for (size_t at = 0; !status && at < count; at += SLICE)
        average_slice(round, x, at, count - at < SLICE ? count - at : SLICE,
                      s->send + CST_BRIEF_HEADER + at * width_of(round));
    free(x);
    if (status)
        return status;
    seal(round, 1, CST_TO_ALL, count, s->send);
    s->at = AT_DOWN;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->send, s->recv, s->bytes, COSET_U8);
}

static coset_status take_down(coset_round *round)
{
    for (int j = 0; j < round->mean->size; j++) {
        const uint8_t *elements;
        coset_status status = open_frame(round, 1, j, CST_TO_ALL, &elements);
        if (status)
            return status;
        copy_elements(round, chunk_begin(round, j), chunk_begin(round, j + 1), (uint8_t *)(uintptr_t)elements, true);
    }
    round->report.plain = 1;
    round->report.exact = round->layout.nblocks;
    state_of(round)->at = AT_END;
    return COSET_OK;
}

static coset_status plain_next(coset_round *round, coset_xfer *xfer)
{
    switch (state_of(round)->at) {
    case AT_START: return send_up(round, xfer);
    case AT_UP: return send_down(round, xfer);
    case AT_DOWN: return take_down(round);
    default: return COSET_OK;
    }
}

const cst_protocol cst_plain = {
    .name = "sharded-star",
    .begin = plain_begin,
    .next = plain_next,
    .end = plain_end,
};
