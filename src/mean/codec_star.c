/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sharded star with a baseline codec (codec/codec.h) in both phases: every rank encodes chunk j for owner j, who decodes,
 * averages with its own exact chunk, and encodes the mean for all. The same two transfers as the lattice's, so that errors
 * and bytes compare. Codecs that need a common range take a small all-gather before.
 */
#include "base/error.h"
#include "codec/codec.h"
#include "mean/flat.h"
#include "mean/internal.h"

#include <stdlib.h>

typedef enum { AT_START, AT_RANGE, AT_UP, AT_DOWN, AT_END } stage;

typedef struct {
    stage at;
    float *x; /* inputs; then results */
    uint8_t *send, *recv;
    size_t bytes; /* of a frame */
    float common[CST_CODEC_MEASURES];
} codec_star;

static codec_star *state_of(const coset_round *round)
{
    return round->state;
}

static const cst_codec *codec_of(const coset_round *round)
{
    return round->mean->settings;
}

/* Owner j has coordinates from chunk_begin(j) to chunk_begin(j + 1): whole blocks of 4096. */
static size_t chunk_begin(const coset_round *round, int j)
{
    size_t blocks = (round->layout.coords + CST_BLOCK - 1) / CST_BLOCK, n = (size_t)round->mean->size;
    size_t first = blocks / n * (size_t)j + blocks % n * (size_t)j / n, at = first * CST_BLOCK;
    return at < round->layout.coords ? at : round->layout.coords;
}

static size_t chunk_size(const coset_round *round, int j)
{
    return chunk_begin(round, j + 1) - chunk_begin(round, j);
}

static size_t frame_bytes(const coset_round *round)
{
    size_t most = 0;
    for (int j = 0; j < round->mean->size; j++) {
        size_t bytes = codec_of(round)->ops->bytes(codec_of(round), chunk_size(round, j));
        most = bytes > most ? bytes : most;
    }
    return CST_BODY_AT + most;
}

static coset_status make_buffers(coset_round *round, size_t send_frames, size_t bytes)
{
    codec_star *s = state_of(round);
    size_t n = (size_t)round->mean->size;
    free(s->send);
    free(s->recv);
    s->send = calloc(send_frames, bytes);
    s->recv = calloc(n, bytes);
    s->bytes = bytes;
    return s->send && s->recv ? COSET_OK : COSET_ERR_MEMORY;
}

static coset_status open_frame(const coset_round *round, int pass, int sender, int receiver, size_t body, cst_reader *r)
{
    const codec_star *s = state_of(round);
    coset_error *why = &round->mean->error;
    const uint8_t *frame = s->recv + s->bytes * (size_t)sender;
    cst_frame_header h, want = cst_header_of(round, CST_FRAME_VECTOR, pass, sender, receiver);
    coset_status status = cst_frame_open(frame, s->bytes, &h, why);
    if (!status)
        status = cst_frame_expect(&h, &want, why);
    if (status)
        return status;
    if (!cst_body_open(frame, &h, r) || (size_t)(r->end - r->at) != body)
        return cst_fail(why, COSET_ERR_CORRUPT, sender, "the code of rank %d is damaged", sender);
    return COSET_OK;
}

/* Randomness: that of the call's first tensor, blocks numbered through the call. */
static cst_codec_key key_of(const coset_round *round, int chunk, uint32_t phase, int sender)
{
    const codec_star *s = state_of(round);
    cst_codec_key key = {round->roots[0],
                         (uint32_t)sender,
                         (uint32_t)round->mean->size,
                         phase,
                         (uint32_t)(chunk_begin(round, chunk) / CST_BLOCK),
                         {0}};
    for (int i = 0; i < CST_CODEC_MEASURES; i++)
        key.common[i] = s->common[i];
    if (phase == CST_PHASE_DOWN) {
        key.sender = (uint32_t)sender; /* one code only: nothing to be correlated with */
        key.senders = (uint32_t)sender + 1;
    }
    return key;
}

static coset_status star_begin(coset_round *round)
{
    codec_star *s = round->state = calloc(1, sizeof *s);
    if (!s)
        return COSET_ERR_MEMORY;
    s->x = cst_flat_read(round);
    return s->x ? COSET_OK : COSET_ERR_MEMORY;
}

static void star_end(coset_round *round)
{
    codec_star *s = state_of(round);
    free(s->x);
    free(s->send);
    free(s->recv);
    free(s);
}

enum { PASS_RANGE = 0, PASS_UP = 1, PASS_DOWN = 2 };

static coset_status send_range(coset_round *round, coset_xfer *xfer)
{
    codec_star *s = state_of(round);
    size_t bytes = CST_BODY_AT + 4 * CST_CODEC_MEASURES;
    coset_status status = make_buffers(round, 1, bytes);
    if (status)
        return status;
    float own[CST_CODEC_MEASURES];
    cst_codec_key key = key_of(round, 0, CST_PHASE_UP, round->mean->rank);
    codec_of(round)->ops->measure(codec_of(round), &key, s->x, round->layout.coords, own);
    for (int i = 0; i < CST_CODEC_MEASURES; i++)
        cst_put_float(s->send + CST_BODY_AT + 4 * i, own[i]);
    cst_frame_header h = cst_header_of(round, CST_FRAME_VECTOR, PASS_RANGE, round->mean->rank, CST_TO_ALL);
    cst_body_seal(s->send, &h, bytes, bytes);
    s->at = AT_RANGE;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->send, s->recv, bytes, COSET_U8);
}

static coset_status take_range(coset_round *round)
{
    codec_star *s = state_of(round);
    for (int u = 0; u < round->mean->size; u++) {
        cst_reader r;
        coset_status status = open_frame(round, PASS_RANGE, u, CST_TO_ALL, 4 * CST_CODEC_MEASURES, &r);
        if (status)
            return status;
        for (int i = 0; i < CST_CODEC_MEASURES; i++) {
            float told = cst_get_float(cst_take(&r, 4));
            if (u == 0 || told > s->common[i] || told != told)
                s->common[i] = told;
        }
    }
    return COSET_OK;
}

static coset_status send_up(coset_round *round, coset_xfer *xfer)
{
    codec_star *s = state_of(round);
    const cst_codec *codec = codec_of(round);
    size_t bytes = frame_bytes(round);
    coset_status status = make_buffers(round, (size_t)round->mean->size, bytes);
    if (status)
        return status;
    for (int j = 0; j < round->mean->size; j++) {
        uint8_t *frame = s->send + bytes * (size_t)j;
        cst_codec_key key = key_of(round, j, CST_PHASE_UP, round->mean->rank);
        size_t n = j == round->mean->rank ? 0 : chunk_size(round, j);
        codec->ops->encode(codec, &key, s->x + chunk_begin(round, j), n, frame + CST_BODY_AT);
        cst_frame_header h = cst_header_of(round, CST_FRAME_VECTOR, PASS_UP, round->mean->rank, j);
        cst_body_seal(frame, &h, CST_BODY_AT + codec->ops->bytes(codec, n), bytes);
    }
    s->at = AT_UP;
    return cst_hand_out(round, xfer, COSET_XFER_ALLTOALL, s->send, s->recv, bytes, COSET_U8);
}

/* The mean of the own chunk, in place of the own input. */
static coset_status average(coset_round *round)
{
    codec_star *s = state_of(round);
    const cst_codec *codec = codec_of(round);
    int rank = round->mean->rank, n = round->mean->size;
    size_t count = chunk_size(round, rank);
    float *own = s->x + chunk_begin(round, rank), *one = malloc(count * sizeof *one + 1);
    double *sum = calloc(count + 1, sizeof *sum);
    coset_status status = one && sum ? COSET_OK : COSET_ERR_MEMORY;
    for (size_t i = 0; !status && i < count; i++)
        sum[i] = own[i];
    for (int u = 0; !status && u < n; u++) {
        cst_reader r;
        cst_codec_key key = key_of(round, rank, CST_PHASE_UP, u);
        if (u == rank)
            continue;
        status = open_frame(round, PASS_UP, u, rank, codec->ops->bytes(codec, count), &r);
        if (!status && !codec->ops->decode(codec, &key, r.at, count, one))
            status = cst_fail(&round->mean->error, COSET_ERR_CORRUPT, u, "the code of rank %d means nothing", u);
        for (size_t i = 0; !status && i < count; i++)
            sum[i] += one[i];
    }
    for (size_t i = 0; !status && i < count; i++)
        own[i] = (float)(sum[i] / n);
    free(one);
    free(sum);
    return status;
}

static coset_status send_down(coset_round *round, coset_xfer *xfer)
{
    codec_star *s = state_of(round);
    const cst_codec *codec = codec_of(round);
    int rank = round->mean->rank;
    coset_status status = average(round);
    size_t bytes = frame_bytes(round), count = chunk_size(round, rank);
    if (!status)
        status = make_buffers(round, 1, bytes);
    if (status)
        return status;
    cst_codec_key key = key_of(round, rank, CST_PHASE_DOWN, rank);
    if (codec->ops->measures) /* the mean's own range: it is narrower than that of the inputs */
        codec->ops->measure(codec, &key, s->x + chunk_begin(round, rank), count, key.common);
    codec->ops->encode(codec, &key, s->x + chunk_begin(round, rank), count, s->send + CST_BODY_AT);
    cst_frame_header h = cst_header_of(round, CST_FRAME_VECTOR, PASS_DOWN, rank, CST_TO_ALL);
    cst_body_seal(s->send, &h, CST_BODY_AT + codec->ops->bytes(codec, count), bytes);
    s->at = AT_DOWN;
    return cst_hand_out(round, xfer, COSET_XFER_ALLGATHER, s->send, s->recv, bytes, COSET_U8);
}

static coset_status take_down(coset_round *round)
{
    codec_star *s = state_of(round);
    const cst_codec *codec = codec_of(round);
    for (int j = 0; j < round->mean->size; j++) {
        cst_reader r;
        cst_codec_key key = key_of(round, j, CST_PHASE_DOWN, j);
        size_t count = chunk_size(round, j);
        coset_status status = open_frame(round, PASS_DOWN, j, CST_TO_ALL, codec->ops->bytes(codec, count), &r);
        if (status)
            return status;
        if (!codec->ops->decode(codec, &key, r.at, count, s->x + chunk_begin(round, j)))
            return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, j, "the code of rank %d means nothing", j);
    }
    cst_flat_write(round, s->x);
    s->at = AT_END;
    return COSET_OK;
}

static coset_status star_next(coset_round *round, coset_xfer *xfer)
{
    codec_star *s = state_of(round);
    coset_status status;
    switch (s->at) {
    case AT_START: return codec_of(round)->ops->measures ? send_range(round, xfer) : send_up(round, xfer);
    case AT_RANGE: status = take_range(round); return status ? status : send_up(round, xfer);
    case AT_UP: return send_down(round, xfer);
    case AT_DOWN: return take_down(round);
    default: return COSET_OK;
    }
}

static coset_status configure(coset_mean *mean, const coset_mean_options *options, coset_error *why)
{
    cst_codec *codec = calloc(1, sizeof *codec);
    mean->settings = codec;
    if (!codec)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    return cst_codec_parse(codec, mean->tools, options->codec, options->bits, why);
}

static void destroy(coset_mean *mean)
{
    free(mean->settings);
    mean->settings = NULL;
}

const cst_protocol cst_codec_star = {
    .name = "sharded-star",
    .configure = configure,
    .begin = star_begin,
    .next = star_next,
    .end = star_end,
    .destroy = destroy,
};
