/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithm 3 of the paper (mean/whole.h): MeanEstimation(q) in a star, two rounds; and the same with parities instead of
 * colours, below one bit per coordinate (protocol "sublinear", mean/parity.h).
 *
 *     1  a leader is drawn from the shared seed; every other rank sends it the colours of its vector
 *     2  the leader decodes against its own vector, averages, and sends the colours of the mean to all, who decode
 *        against theirs
 *
 * The distance y of any two vectors is known, or, with sigma, bounded by Chebyshev's inequality (Theorem 17). Step
 * s = 2 y' / (q - 2), y' the bound on a rotated coordinate: the average of decoded vectors is at most half a step farther
 * away than a vector, and its dithering half a step more. With parities the steps follow from the bits: 2 y' / s is the share
 * of coordinates that they can settle; the mean is farther from a vector by 5.5 deviations of its error, so its step is larger.
 * If some vectors are farther apart than promised, the checksums
 * say so, and the call fails on all ranks with COSET_ERR_ARGUMENT: no wrong mean is returned.
 */
#include "base/error.h"
#include "codec/portable.h"
#include "mean/parity.h"

#include <math.h>
#include <stdlib.h>

typedef enum { AT_START, AT_COLOURS, AT_MEAN, AT_END } stage;

typedef struct {
    stage at;
    int leader;
    cst_whole whole;
    float step, down_step;
    uint32_t q;    /* colours */
    uint32_t rows; /* parities, if > 0; with the distances that they allow for */
    double distance, down_distance;
    int32_t *points;
    cst_checksum *checks;
    float *mean;
    uint8_t *send, *recv; /* leader: recv has a frame per rank */
    coset_route *routes;
    size_t bytes; /* of a frame */
} star;

typedef struct {
    double y;
    uint32_t q;
    double bits; /* > 0: parities */
} star_settings;

/* The mean's frame begins with one byte: 1, or 0 if the leader could not decode all. */
enum { VERDICT = 1 };

static star *state_of(const coset_round *round)
{
    return round->state;
}

static bool leads(const coset_round *round)
{
    return state_of(round)->leader == round->mean->rank;
}

static coset_status choose_steps(coset_round *round, const star_settings *settings)
{
    star *s = state_of(round);
    double n = round->mean->size;
    s->distance = cst_whole_infinity(&s->whole, settings->y);
    if (settings->bits == 0) {
        s->q = settings->q;
        s->step = s->down_step = (float)(2 * s->distance / (s->q - 2));
        return COSET_OK;
    }
    s->rows = s->whole.rotated ? cst_parity_rows(&s->whole, settings->bits) : 0;
    if (!s->rows)
        return cst_fail(
            &round->mean->error, COSET_ERR_ARGUMENT, -1,
            "%g bits per coordinate are too few for parities of %zu coordinates: more bits, or a longer vector",
            settings->bits, s->whole.d);
    double share = cst_parity_share(s->rows), step = 2 * s->distance / share;
    s->down_distance = s->distance + 5.5 * step * sqrt((n - 1) / 12) / n;
    s->step = (float)step;
    s->down_step = (float)(2 * s->down_distance / share);
    return COSET_OK;
}

static coset_status star_begin(coset_round *round)
{
    star *s = round->state = calloc(1, sizeof *s);
    const star_settings *settings = round->mean->settings;
    size_t ranks = (size_t)round->mean->size;
    if (!s)
        return COSET_ERR_MEMORY;
    coset_status status = cst_whole_make(&s->whole, round);
    if (!status)
        status = cst_draw_ranks(round, (int)ranks, 1, &s->leader);
    if (status)
        return status;
    status = choose_steps(round, settings);
    if (status)
        return status;
    s->bytes =
        CST_BODY_AT + VERDICT + (s->rows ? cst_parity_bytes(&s->whole, s->rows) : cst_colours_bytes(&s->whole, s->q));
    size_t frames = leads(round) ? ranks : 1;
    s->points = malloc(s->whole.n * sizeof *s->points);
    s->checks = malloc(s->whole.pieces * sizeof *s->checks);
    s->mean = malloc(s->whole.n * sizeof *s->mean);
    s->send = calloc(frames, s->bytes);
    s->recv = calloc(frames, s->bytes);
    s->routes = calloc(ranks, sizeof *s->routes);
    return s->points && s->checks && s->mean && s->send && s->recv && s->routes ? COSET_OK : COSET_ERR_MEMORY;
}

static void star_end(coset_round *round)
{
    star *s = state_of(round);
    cst_whole_free(&s->whole);
    void *all[] = {s->points, s->checks, s->mean, s->send, s->recv, s->routes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

static coset_status too_far(coset_round *round)
{
    const star_settings *settings = round->mean->settings;
    return cst_fail(
        &round->mean->error, COSET_ERR_ARGUMENT, -1,
        "vectors are farther apart than y = %g allows (or an input is too large for f32 at this step): give a larger "
        "y or sigma, or use the protocols robust or sharded-star",
        settings->y);
}

static void write_code(const star *s, uint32_t phase, uint8_t *out)
{
    if (s->rows)
        cst_parity_write(&s->whole, s->points, s->checks, s->rows, phase, out);
    else
        cst_colours_write(&s->whole, s->points, s->checks, s->q, out);
}

static bool read_code(const star *s, const uint8_t *in, int sender, uint32_t phase, float *x)
{
    bool down = phase == CST_PHASE_DOWN;
    float step = down ? s->down_step : s->step;
    double distance = down ? s->down_distance : s->distance;
    if (s->rows)
        return cst_parity_decode(&s->whole, in, s->rows, distance, (uint32_t)sender, phase, step, s->whole.own, x) == 0;
    return cst_colours_decode(&s->whole, in, s->q, (uint32_t)sender, phase, step, s->whole.own, x) == 0;
}

/* Messages to or from the leader: all others are its peers. */
static size_t make_routes(coset_round *round, bool to_leader)
{
    star *s = state_of(round);
    size_t n = 0;
    for (int u = 0; u < round->mean->size; u++) {
        bool receives = leads(round) == to_leader;
        size_t at = leads(round) ? s->bytes * (size_t)u : 0;
        if (u == round->mean->rank || (!leads(round) && u != s->leader))
            continue;
        s->routes[n++] = (coset_route){u, receives ? NULL : s->send + at, receives ? s->recv + at : NULL, s->bytes};
    }
    return n;
}

static coset_status send_colours(coset_round *round, coset_xfer *xfer)
{
    star *s = state_of(round);
    int rank = round->mean->rank;
    if (!leads(round)) {
        if (!cst_whole_quantise(&s->whole, s->whole.own, (uint32_t)rank, CST_PHASE_UP, s->step, s->points, s->checks))
            return too_far(round);
        write_code(s, CST_PHASE_UP, s->send + CST_BODY_AT + VERDICT);
        cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, 0, rank, s->leader);
        cst_body_seal(s->send, &h, s->bytes, s->bytes);
    }
    s->at = AT_COLOURS;
    return cst_hand_out_routes(round, xfer, s->routes, make_routes(round, true));
}

/* At the leader: the mean of all decoded vectors. False if one cannot be decoded. */
static coset_status average(coset_round *round, bool *good)
{
    star *s = state_of(round);
    int n = round->mean->size;
    float *one = malloc(s->whole.n * sizeof *one);
    double *sum = malloc(s->whole.n * sizeof *sum);
    coset_status status = one && sum ? COSET_OK : COSET_ERR_MEMORY;
    *good = true;
    for (size_t i = 0; !status && i < s->whole.n; i++)
        sum[i] = s->whole.own[i];
    for (int u = 0; !status && u < n; u++) {
        cst_reader body;
        const uint8_t *frame = s->recv + s->bytes * (size_t)u;
        if (u == s->leader)
            continue;
        status = cst_colours_open(round, 0, u, s->leader, frame, s->bytes, &body);
        if (status)
            break;
        *good = *good && read_code(s, frame + CST_BODY_AT + VERDICT, u, CST_PHASE_UP, one);
        for (size_t i = 0; i < s->whole.n; i++)
            sum[i] += one[i];
    }
    for (size_t i = 0; !status && i < s->whole.n; i++)
        s->mean[i] = (float)(sum[i] / n);
    free(one);
    free(sum);
    return status;
}

static coset_status send_mean(coset_round *round, coset_xfer *xfer)
{
    star *s = state_of(round);
    int n = round->mean->size;
    if (leads(round)) {
        bool good;
        coset_status status = average(round, &good);
        if (status)
            return status;
        good = good && cst_whole_quantise(&s->whole, s->mean, (uint32_t)s->leader, CST_PHASE_DOWN, s->down_step,
                                          s->points, s->checks);
        for (int u = 0; u < n; u++) {
            uint8_t *frame = s->send + s->bytes * (size_t)u;
            cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, 1, s->leader, u);
            frame[CST_BODY_AT] = good;
            if (good)
                write_code(s, CST_PHASE_DOWN, frame + CST_BODY_AT + VERDICT);
            cst_body_seal(frame, &h, s->bytes, s->bytes);
        }
    }
    s->at = AT_MEAN;
    return cst_hand_out_routes(round, xfer, s->routes, make_routes(round, false));
}

static coset_status take_mean(coset_round *round)
{
    star *s = state_of(round);
    const uint8_t *frame = leads(round) ? s->send + s->bytes * (size_t)s->leader : s->recv;
    cst_reader body;
    coset_status status = cst_colours_open(round, 1, s->leader, round->mean->rank, frame, s->bytes, &body);
    if (status)
        return status;
    if (frame[CST_BODY_AT] != 1)
        return too_far(round);
    if (leads(round))
        cst_whole_reconstruct(&s->whole, s->points, (uint32_t)s->leader, CST_PHASE_DOWN, s->down_step, s->mean);
    else if (!read_code(s, frame + CST_BODY_AT + VERDICT, s->leader, CST_PHASE_DOWN, s->mean))
        return too_far(round);
    s->at = AT_END;
    return cst_whole_store(&s->whole, s->mean);
}

static coset_status star_next(coset_round *round, coset_xfer *xfer)
{
    switch (state_of(round)->at) {
    case AT_START: return send_colours(round, xfer);
    case AT_COLOURS: return send_mean(round, xfer);
    case AT_MEAN: return take_mean(round);
    default: return COSET_OK;
    }
}

static coset_status star_configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    star_settings *settings = calloc(1, sizeof *settings);
    mean->settings = settings;
    if (!settings)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    settings->y = cst_known_distance(o, mean->size);
    if (!(settings->y > 0))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "protocol %s needs y, a bound on the distance of any two vectors, or sigma",
                        mean->protocol->name);
    if (mean->plan.exact || !(mean->plan.rules.may & CST_MAY_Z))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "protocol star has the codecs lattice and lattice:z");
    double q = o->parameter > 0 ? o->parameter : o->bits > 0 ? floor(cst_exp2(o->bits)) : 16;
    if (q < 3 || q > 65536)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "protocol star: q = %g, it must be from 3 to 65536", q);
    settings->q = (uint32_t)q;
    return COSET_OK;
}

static coset_status sublinear_configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    coset_mean_options without_bits = *o;
    without_bits.bits = 0;
    coset_status status = star_configure(mean, &without_bits, why);
    if (status)
        return status;
    double bits = o->bits > 0 ? o->bits : 0.5;
    if (bits > 1)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "protocol sublinear: %g bits; above 1 bit per coordinate take star", bits);
    ((star_settings *)mean->settings)->bits = bits;
    return COSET_OK;
}

static void star_destroy(coset_mean *mean)
{
    free(mean->settings);
    mean->settings = NULL;
}

const cst_protocol cst_star = {
    .name = "star",
    .configure = star_configure,
    .begin = star_begin,
    .next = star_next,
    .end = star_end,
    .destroy = star_destroy,
};

const cst_protocol cst_sublinear = {
    .name = "sublinear",
    .configure = sublinear_configure,
    .begin = star_begin,
    .next = star_next,
    .end = star_end,
    .destroy = star_destroy,
};
