/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default protocol: the paper's star, with a leader per chunk of coordinates.
 *
 *     A  all-to-all    each rank's codes of chunk j, to owner j
 *     B  all-gather    the owners' codes of the means, to all
 *
 * and, only if some owner's frame says that something is missing, C and D in the same manner, then E and F. A tensor's first
 * call begins with a sketch (mean/sketch.h), another such pair. All ranks read the same flags in the same frames, so no
 * vote is needed. docs/wire-format.md has the frames; D. Davies, V. Gurunathan, N. Moshrefi, S. Ashkboos, D. Alistarh,
 * "New bounds for distributed mean estimation and variance reduction" (ICLR 2021) has the star.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "mean/receiver.h"
#include "mean/star_state.h"

#include <math.h>
#include <stdlib.h>

static void buffers_free(coset_mean *mean, cst_star_buffers *b)
{
    cst_pool_put(&mean->pool, b->send);
    cst_pool_put(&mean->pool, b->recv);
    *b = (cst_star_buffers){0};
}

static coset_status buffers_make(coset_mean *mean, cst_star_buffers *b, size_t send, size_t recv, size_t bytes)
{
    buffers_free(mean, b);
    b->send = cst_pool_get(&mean->pool, send);
    b->recv = cst_pool_get(&mean->pool, recv);
    b->bytes = bytes;
    if (b->send && b->recv)
        return COSET_OK;
    buffers_free(mean, b);
    return COSET_ERR_MEMORY;
}

static coset_status make_alltoall(coset_mean *mean, cst_star_buffers *b, size_t bytes)
{
    size_t all;
    return cst_size_mul((size_t)mean->size, bytes, &all) ? buffers_make(mean, b, all, all, bytes) : COSET_ERR_MEMORY;
}

static coset_status make_allgather(coset_mean *mean, cst_star_buffers *b, size_t bytes)
{
    size_t all;
    return cst_size_mul((size_t)mean->size, bytes, &all) ? buffers_make(mean, b, bytes, all, bytes) : COSET_ERR_MEMORY;
}

static coset_status star_begin(coset_round *round)
{
    cst_star_call *s = round->state = calloc(1, sizeof(cst_star_call));
    size_t n = (size_t)round->mean->size;
    if (!s)
        return COSET_ERR_MEMORY;
    s->packer = cst_borrow_packer(round->mean);
    s->errors = calloc(n, sizeof *s->errors);
    s->corrected = calloc(n, sizeof *s->corrected);
    s->told = calloc(n, sizeof *s->told);
    s->current = calloc(round->layout.nblocks + 1, 1);
    s->events = calloc(round->nspans + 1, 1);
    for (int r = 0; r < CST_STAR_ROUNDS; r++)
        s->heard_from[r] = calloc(n, sizeof *s->heard_from[r]);
    bool enough = s->errors && s->corrected && s->told && s->current && s->events && s->heard_from[0] &&
                  s->heard_from[1] && s->heard_from[2];
    return enough
               ? cst_sketch_init(&s->sketch, &round->layout, round->tensors, &round->vector, round->mean->rank, (int)n)
               : COSET_ERR_MEMORY;
}

static void parts_free(cst_parts **parts, int ranks)
{
    for (int u = 0; *parts && u < ranks; u++)
        cst_parts_free(&(*parts)[u]);
    free(*parts);
    *parts = NULL;
}

static void star_end(coset_round *round)
{
    cst_star_call *s = cst_star_of(round);
    if (!s)
        return;
    for (int r = 0; r < CST_STAR_ROUNDS; r++) {
        parts_free(&s->heard_from[r], round->mean->size);
        buffers_free(round->mean, &s->up[r]);
    }
    parts_free(&s->told, round->mean->size);
    free(s->errors);
    free(s->corrected);
    free(s->current);
    free(s->events);
    buffers_free(round->mean, &s->down);
    buffers_free(round->mean, &s->extra);
    cst_sketch_free(&s->sketch);
    cst_owner_free(&s->owner);
    cst_sender_free(&s->sender);
    cst_shared_free(&s->shared);
    cst_return_packer(round->mean, &s->packer);
    free(s->heard);
    free(s->asked);
    free(s);
    round->state = NULL;
}

/* ---- first call: sketches ---- */

static coset_status send_sketches(coset_round *round, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    int n = round->mean->size;
    coset_status status = make_alltoall(round->mean, &s->extra, s->sketch.up_bytes);
    if (status)
        return status;
    cst_frame_header h = cst_header_of(round, CST_FRAME_SKETCH, 0, 0, 0);
    for (int j = 0; j < n; j++)
        cst_sketch_write(&s->sketch, j, h, s->extra.send + s->extra.bytes * (size_t)j);
    s->at = CST_AT_SKETCHES;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, s->extra.send, s->extra.recv, s->extra.bytes, COSET_U8);
}

static coset_status send_statistics(coset_round *round, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    cst_star_buffers sketches = s->extra;
    s->extra = (cst_star_buffers){0};
    cst_frame_header h = cst_header_of(round, CST_FRAME_SKETCH, 0, 0, 0);
    coset_status status = make_allgather(round->mean, &s->extra, s->sketch.down_bytes);
    if (!status)
        status = cst_sketch_answer(&s->sketch, sketches.recv, h, s->extra.send, &round->mean->error);
    buffers_free(round->mean, &sketches);
    if (status)
        return status;
    s->at = CST_AT_STATISTICS;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->extra.send, s->extra.recv, s->extra.bytes, COSET_U8);
}

static coset_status take_statistics(coset_round *round)
{
    cst_star_call *s = cst_star_of(round);
    for (int j = 0; j < round->mean->size; j++) {
        const uint8_t *frame = s->extra.recv + s->extra.bytes * (size_t)j;
        coset_status status =
            cst_sketch_take(&s->sketch, j, frame, cst_header_of(round, CST_FRAME_STATS, 0, 0, 0), &round->mean->error);
        if (status)
            return status;
    }
    cst_sketch_conclude(&s->sketch, round->mean->plan.bits > 0);
    buffers_free(round->mean, &s->extra);
    return COSET_OK;
}

/* ---- A, C, E: up ---- */

static coset_status plan_call(coset_round *round)
{
    cst_star_call *s = cst_star_of(round);
    coset_mean *mean = round->mean;
    cst_plan_options options = mean->plan;
    options.element[0] = cst_exact_bytes(round->dtype, false);
    options.element[1] = cst_exact_bytes(round->dtype, true);
    /* Finer than the elements themselves would be of no use: ranks that agree exactly still leave a step. */
    options.floor = round->dtype == COSET_F64 ? 0x1p-44 : round->dtype == COSET_F32 ? 0x1p-24 : 0x1p-16;
    options.fresh = s->sketch.nruns > 0;
    if (options.bits > 0 && round->layout.coords) {
        size_t spent = s->sketch.up_bytes + s->sketch.down_bytes;
        double side = 8.0 * (double)spent * mean->size / (double)round->layout.coords;
        options.bits = fmax(options.bits - side, 0.75 * options.bits);
    }
    coset_status status = cst_shared_plan(&s->shared, &options, &round->layout, round->tensors);
    if (status)
        return status;
    for (size_t i = 0; i < round->nspans; i++)
        cst_past_look(&round->tensors[i]->past, round->spans[i].send, round->spans[i].count, round->dtype);
    status = cst_sender_init(&s->sender, mean->tools, &s->shared, &round->vector, round->roots, mean->rank);
    uint32_t first = s->shared.first[mean->rank], end = s->shared.first[mean->rank + 1];
    s->heard = calloc((size_t)(end - first) * (size_t)mean->size + 1, sizeof *s->heard);
    if (status || !s->heard)
        return COSET_ERR_MEMORY;
    cst_listener listen = {mean->tools, &s->shared,   &round->vector, round->roots,
                           mean->rank,  round->dtype, false,          s->heard};
    return cst_owner_init(&s->owner, &listen, first, end, s->current, &mean->pool);
}

static coset_status send_codes(coset_round *round, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    int n = round->mean->size, rank = round->mean->rank;
    cst_star_buffers *b = &s->up[0];
    coset_status status = make_alltoall(round->mean, b, s->shared.up_bytes);
    for (int j = 0; !status && j < n; j++) {
        uint8_t *frame = b->send + b->bytes * (size_t)j;
        cst_frame_header h = cst_header_of(round, CST_FRAME_UP, 0, rank, j);
        h.first_block = s->shared.first[j];
        h.blocks = j == rank ? 0 : s->shared.first[j + 1] - h.first_block;
        if (j == rank)
            memset(frame, 0, b->bytes);
        else
            status = cst_sender_frame(&s->sender, j, &s->packer, &h, frame, b->bytes);
    }
    if (status)
        return status;
    s->at = CST_AT_UP;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, b->send, b->recv, b->bytes, COSET_U8);
}

static coset_status send_answers(coset_round *round, size_t bytes, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    int n = round->mean->size, rank = round->mean->rank;
    cst_star_buffers *b = &s->up[s->round];
    coset_status status = make_alltoall(round->mean, b, bytes);
    for (int j = 0; !status && j < n; j++) {
        uint8_t *frame = b->send + bytes * (size_t)j;
        cst_request *requests = NULL;
        cst_frame_header h = cst_header_of(round, CST_FRAME_UP, s->round, rank, j);
        if (j == rank) {
            memset(frame, 0, bytes);
            continue;
        }
        const cst_parts *told = &s->told[j];
        status = cst_star_requests(round, told, j, &requests);
        if (!status) {
            h.blocks = cst_star_answers_of(requests, told->header.requests, rank);
            status = cst_sender_answers(&s->sender, requests, told->header.requests, &s->packer, &h, frame, bytes);
        }
        free(requests);
    }
    if (status)
        return status;
    s->at = CST_AT_UP;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, b->send, b->recv, b->bytes, COSET_U8);
}

/* ---- B, D, F: down ---- */

static coset_status keep_requests(cst_star_call *s)
{
    free(s->asked);
    s->nasked = s->packer.header.requests;
    s->asked = malloc((s->nasked ? s->nasked : 1) * sizeof *s->asked);
    if (s->asked && s->nasked)
        memcpy(s->asked, s->packer.requests, s->nasked * sizeof *s->asked);
    return s->asked ? COSET_OK : COSET_ERR_MEMORY;
}

static coset_status send_means(coset_round *round, size_t bytes, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    int n = round->mean->size, rank = round->mean->rank;
    coset_status status = COSET_OK;
    for (int u = 0; !status && u < n; u++)
        if (u != rank)
            status = cst_star_hear(round, u, &s->declared);
    if (!status)
        status = make_allgather(round->mean, &s->down, bytes);
    if (status)
        return status;
    cst_frame_header h = cst_header_of(round, CST_FRAME_DOWN, s->round, rank, CST_TO_ALL);
    h.first_block = s->owner.first;
    h.blocks = s->owner.end - s->owner.first;
    status =
        cst_owner_frame(&s->owner, s->round, s->declared, &s->packer, &h, s->down.send, bytes, &round->mean->error);
    if (!status)
        status = keep_requests(s);
    if (status)
        return status;
    s->at = CST_AT_DOWN;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->down.send, s->down.recv, bytes, COSET_U8);
}

static coset_status take_means(coset_round *round, uint64_t *need_up, uint64_t *need_down)
{
    cst_star_call *s = cst_star_of(round);
    cst_receiver receiver = {round->mean->tools, &s->shared, &round->vector, round->roots, round->dtype};
    *need_up = *need_down = 0;
    for (int j = 0; j < round->mean->size; j++) {
        cst_parts_free(&s->told[j]);
        coset_status status = cst_star_listen(round, j, need_up, need_down);
        if (!status && j != round->mean->rank)
            status = cst_receive(&receiver, j, &s->told[j], &round->mean->error);
        if (status)
            return status;
        cst_star_note(round, j, &s->told[j]);
    }
    return COSET_OK;
}

static coset_status star_next(coset_round *round, coset_xfer *xfer)
{
    cst_star_call *s = cst_star_of(round);
    uint64_t need_up, need_down;
    coset_status status;
    switch (s->at) {
    case CST_AT_START:
        if (s->sketch.up_bytes)
            return send_sketches(round, xfer);
        status = plan_call(round);
        return status ? status : send_codes(round, xfer);
    case CST_AT_SKETCHES: return send_statistics(round, xfer);
    case CST_AT_STATISTICS:
        status = take_statistics(round);
        if (!status)
            status = plan_call(round);
        return status ? status : send_codes(round, xfer);
    case CST_AT_UP: return send_means(round, s->round == 0 ? s->shared.down_bytes : s->down.bytes, xfer);
    case CST_AT_DOWN:
        status = take_means(round, &need_up, &need_down);
        if (status)
            return status;
        if (need_down == 0) {
            cst_star_conclude(round);
            return COSET_OK;
        }
        if (s->round == CST_LAST_ROUND)
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, -1, "blocks are still missing after all repairs");
        s->round++;
        s->down.bytes = (size_t)need_down;
        return send_answers(round, (size_t)(need_up > CST_FRAME_HEADER ? need_up : CST_FRAME_HEADER), xfer);
    default: return COSET_OK;
    }
}

const cst_protocol cst_sharded_star = {
    .name = "sharded-star",
    .dealt = true,
    .segment = (size_t)1 << 19,
    .blocks = true,
    .begin = star_begin,
    .next = star_next,
    .end = star_end,
};
