/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Algorithms 5 and 6 of the paper (mean/whole.h): robust agreement with a growing modulus, and the variance reduction on it.
 * No distance has to be known, only how fine the result shall be: the step adds (sigma / q)^2 to the squared error of a vector.
 *
 *     a leader and a set S of min(n, q) ranks are drawn from the shared seed
 *     1  each rank of S sends the low b digits of its lattice point's coordinates, b = 2 + log2 q, with checksums
 *     2  the leader tells who is FAR, piece by piece of 4096 coordinates; those send as many digits more (only the missing
 *        ones), until all is decoded: 16 bits, then all
 *     3  the leader averages, fixes one point for the mean, and gives it to every rank in the same way
 *
 * A point is fixed once: more digits are of the same point, so nothing is conditioned on failure.
 * Step: d s^2 / 12 = (sigma / q)^2. Answers go by way of the leader, so all ranks know when to stop.
 */
#include "base/error.h"
#include "codec/portable.h"
#include "mean/robust_state.h"

#include <math.h>
#include <stdlib.h>

enum { PHASE_ROBUST_UP = 32, PHASE_ROBUST_DOWN = 33 }; /* of the randomness */

typedef struct {
    double sigma;
    uint32_t q;
} robust_settings;

static cst_robust_call *state_of(const coset_round *round)
{
    return round->state;
}

static bool leads(const coset_round *round)
{
    return state_of(round)->leader == round->mean->rank;
}

/* ---- set-up ---- */

static coset_status draw(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    int n = round->mean->size;
    const robust_settings *settings = round->mean->settings;
    int *drawn = malloc((size_t)n * sizeof *drawn);
    coset_status status = drawn ? cst_draw_ranks(round, n, n, drawn) : COSET_ERR_MEMORY;
    if (!status) {
        s->leader = drawn[0];
        s->samples = settings->q < (uint32_t)n ? (int)settings->q : n;
        for (int i = 0; i < s->samples; i++)
            s->sampled[drawn[n - 1 - i]] = true;
    }
    free(drawn);
    return status;
}

static coset_status robust_begin(coset_round *round)
{
    cst_robust_call *s = round->state = calloc(1, sizeof *s);
    const robust_settings *settings = round->mean->settings;
    size_t n = (size_t)round->mean->size;
    if (!s)
        return COSET_ERR_MEMORY;
    coset_status status = cst_whole_make(&s->whole, round);
    if (status)
        return status;
    s->step = (float)(settings->sigma / settings->q * sqrt(12 / (double)s->whole.d));
    s->sampled = calloc(n, sizeof *s->sampled);
    s->with = calloc(n, sizeof *s->with);
    s->send = calloc(n, sizeof *s->send);
    s->recv = calloc(n, sizeof *s->recv);
    s->routes = calloc(2 * n, sizeof *s->routes);
    s->points = malloc(s->whole.n * sizeof *s->points);
    s->checks = malloc(s->whole.pieces * sizeof *s->checks);
    s->mean = malloc(s->whole.n * sizeof *s->mean);
    if (!s->sampled || !s->with || !s->send || !s->recv || !s->routes || !s->points || !s->checks || !s->mean)
        return COSET_ERR_MEMORY;
    status = draw(round);
    if (status)
        return status;
    while (1u << s->first_bits < settings->q)
        s->first_bits++;
    s->phase = PHASE_ROBUST_UP;
    s->first_bits = s->first_bits + 2 < CST_ROBUST_MOST ? s->first_bits + 2 : CST_ROBUST_MOST;
    for (size_t u = 0; u < (leads(round) ? n : 1); u++)
        if (!cst_agreement_make(&s->with[u], &s->whole, true))
            return COSET_ERR_MEMORY;
    if (!cst_whole_quantise(&s->whole, s->whole.own, (uint32_t)round->mean->rank, PHASE_ROBUST_UP, s->step, s->points,
                            s->checks))
        return cst_fail(&round->mean->error, COSET_ERR_ARGUMENT, -1,
                        "an input is too large for f32 at the step that sigma asks for");
    return COSET_OK;
}

static void robust_end(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    cst_whole_free(&s->whole);
    for (int u = 0; u < round->mean->size; u++) {
        if (s->with)
            cst_agreement_free(&s->with[u]);
        if (s->send)
            free(s->send[u]);
        if (s->recv)
            free(s->recv[u]);
    }
    void *all[] = {s->sampled, s->with, s->send, s->recv, s->routes, s->points, s->checks, s->mean};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

/* ---- transfers ---- */

static coset_status frame_for(uint8_t **frame, size_t bytes)
{
    free(*frame);
    *frame = calloc(1, bytes);
    return *frame ? COSET_OK : COSET_ERR_MEMORY;
}

/* Does this pass of digits concern rank u? Up: those of S that are open; down: all that are. */
static bool concerned(const coset_round *round, int u, bool up)
{
    const cst_robust_call *s = state_of(round);
    const cst_agreement *a = leads(round) ? &s->with[u] : &s->with[0];
    return u != s->leader && a->nopen && (!up || s->sampled[u]);
}

static coset_status send_digits(coset_round *round, bool up, coset_xfer *xfer)
{
    cst_robust_call *s = state_of(round);
    size_t n = 0;
    s->pass++;
    for (int u = 0; u < round->mean->size; u++) {
        bool mine = leads(round) ? u != s->leader : u == round->mean->rank;
        if (!mine || !concerned(round, u, up))
            continue;
        cst_agreement *a = leads(round) ? &s->with[u] : &s->with[0];
        int peer = leads(round) ? u : s->leader;
        bool sends = leads(round) != up;
        uint8_t **frame = sends ? &s->send[u] : &s->recv[u];
        size_t bytes = cst_agreement_bytes(s, a);
        if (frame_for(frame, bytes))
            return COSET_ERR_MEMORY;
        if (sends) {
            cst_agreement_write(round, a, peer, *frame);
            a->bits += cst_agreement_next(s, a->bits);
        }
        s->routes[n++] = (coset_route){peer, sends ? *frame : NULL, sends ? NULL : *frame, bytes};
    }
    s->at = up ? CST_ROBUST_DIGITS_UP : CST_ROBUST_DIGITS_DOWN;
    return cst_hand_out_routes(round, xfer, s->routes, n);
}

static coset_status take_digits(coset_round *round, bool up)
{
    cst_robust_call *s = state_of(round);
    for (int u = 0; u < round->mean->size; u++) {
        bool receives = leads(round) == up && (leads(round) ? u != s->leader : u == round->mean->rank);
        if (!receives || !concerned(round, u, up))
            continue;
        coset_status status =
            cst_agreement_read(round, &s->with[leads(round) ? u : 0], leads(round) ? u : s->leader, s->recv[u]);
        if (status)
            return status;
    }
    return COSET_OK;
}

/* A word to or from the leader: one byte (another pass follows), and which pieces are open. */
static size_t word_bytes(const cst_robust_call *s)
{
    return CST_BODY_AT + 1 + s->whole.pieces;
}

static void write_word(const coset_round *round, int receiver, bool more, const uint8_t *open, uint8_t *frame)
{
    const cst_robust_call *s = state_of(round);
    size_t bytes = word_bytes(s);
    frame[CST_BODY_AT] = more;
    memcpy(frame + CST_BODY_AT + 1, open, s->whole.pieces);
    cst_frame_header h = cst_header_of(round, CST_FRAME_COLOURS, s->pass, round->mean->rank, receiver);
    cst_body_seal(frame, &h, bytes, bytes);
}

static coset_status read_word(coset_round *round, int sender, const uint8_t *frame, bool *more, uint8_t *open,
                              uint32_t *nopen)
{
    const cst_robust_call *s = state_of(round);
    cst_reader body;
    coset_status status = cst_colours_open(round, s->pass, sender, round->mean->rank, frame, word_bytes(s), &body);
    if (status)
        return status;
    *more = body.at[0] == 1;
    *nopen = 0;
    for (uint32_t p = 0; p < s->whole.pieces; p++) {
        open[p] = body.at[1 + p] == 1;
        *nopen += open[p];
    }
    return COSET_OK;
}

/* Words between the leader and all others. */
static coset_status send_words(coset_round *round, bool from_leader, bool more, cst_robust_stage next, coset_xfer *xfer)
{
    cst_robust_call *s = state_of(round);
    size_t n = 0, bytes = word_bytes(s);
    s->pass++;
    for (int u = 0; u < round->mean->size; u++) {
        bool mine = leads(round) ? u != s->leader : u == round->mean->rank;
        if (!mine)
            continue;
        bool sends = leads(round) == from_leader;
        int peer = leads(round) ? u : s->leader;
        uint8_t **frame = sends ? &s->send[u] : &s->recv[u];
        if (frame_for(frame, bytes))
            return COSET_ERR_MEMORY;
        if (sends)
            write_word(round, peer, more, s->with[leads(round) ? u : 0].open, *frame);
        s->routes[n++] = (coset_route){peer, sends ? *frame : NULL, sends ? NULL : *frame, bytes};
    }
    s->at = next;
    return cst_hand_out_routes(round, xfer, s->routes, n);
}

/* ---- the leader's decisions ---- */

static bool any_open(const coset_round *round, bool up)
{
    const cst_robust_call *s = state_of(round);
    for (int u = 0; u < round->mean->size; u++)
        if (u != s->leader && (!up || s->sampled[u]) && s->with[u].nopen)
            return true;
    return false;
}

/* The mean of S and its point; agreements begin anew in the other direction. */
static coset_status fix_mean(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    for (size_t i = 0; i < s->whole.n; i++) {
        double sum = s->sampled[s->leader] ? s->whole.own[i] : 0;
        for (int u = 0; u < round->mean->size; u++)
            if (u != s->leader && s->sampled[u])
                sum += s->with[u].value[i];
        s->mean[i] = (float)(sum / s->samples);
    }
    if (!cst_whole_quantise(&s->whole, s->mean, (uint32_t)s->leader, PHASE_ROBUST_DOWN, s->step, s->points, s->checks))
        return cst_fail(&round->mean->error, COSET_ERR_ARGUMENT, -1, "the mean is too large for f32 at this step");
    return COSET_OK;
}

static void turn_around(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    s->phase = PHASE_ROBUST_DOWN;
    for (int u = 0; u < (leads(round) ? round->mean->size : 1); u++)
        cst_agreement_reset(&s->with[u], &s->whole);
}

/* The leader's word, at all others: goes on in this direction? */
static coset_status hear_leader(coset_round *round, bool *more)
{
    cst_robust_call *s = state_of(round);
    int rank = round->mean->rank;
    if (leads(round))
        return COSET_OK;
    cst_agreement *a = &s->with[0];
    return read_word(round, s->leader, s->recv[rank], more, a->open, &a->nopen);
}

static coset_status hear_answers(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    for (int u = 0; leads(round) && u < round->mean->size; u++) {
        bool unused;
        if (u == s->leader)
            continue;
        coset_status status = read_word(round, u, s->recv[u], &unused, s->with[u].open, &s->with[u].nopen);
        if (status)
            return status;
    }
    return COSET_OK;
}

static coset_status conclude(coset_round *round)
{
    cst_robust_call *s = state_of(round);
    float *result = leads(round) ? s->mean : s->with[0].value;
    if (leads(round))
        cst_whole_reconstruct(&s->whole, s->points, (uint32_t)s->leader, PHASE_ROBUST_DOWN, s->step, result);
    s->at = CST_ROBUST_END;
    return cst_whole_store(&s->whole, result);
}

static coset_status robust_next(coset_round *round, coset_xfer *xfer)
{
    cst_robust_call *s = state_of(round);
    bool more = leads(round);
    coset_status status = COSET_OK;
    switch (s->at) {
    case CST_ROBUST_START: return send_digits(round, true, xfer);
    case CST_ROBUST_DIGITS_UP:
        status = take_digits(round, true);
        more = leads(round) && any_open(round, true);
        if (!status && leads(round) && !more)
            status = fix_mean(round);
        s->again = more;
        return status ? status : send_words(round, true, more, CST_ROBUST_VERDICT_UP, xfer);
    case CST_ROBUST_VERDICT_UP:
        more = s->again;
        status = hear_leader(round, &more);
        if (!status && !more)
            turn_around(round);
        return status ? status : send_digits(round, more, xfer);
    case CST_ROBUST_DIGITS_DOWN:
        status = take_digits(round, false);
        return status ? status : send_words(round, false, false, CST_ROBUST_ANSWERS, xfer);
    case CST_ROBUST_ANSWERS:
        status = hear_answers(round);
        more = leads(round) && any_open(round, false);
        s->again = more;
        return status ? status : send_words(round, true, more, CST_ROBUST_VERDICT_DOWN, xfer);
    case CST_ROBUST_VERDICT_DOWN:
        more = s->again;
        status = hear_leader(round, &more);
        if (status)
            return status;
        return more ? send_digits(round, false, xfer) : conclude(round);
    default: return COSET_OK;
    }
}

static coset_status robust_configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    robust_settings *settings = calloc(1, sizeof *settings);
    mean->settings = settings;
    if (!settings)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    if (!(o->sigma > 0))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "protocol robust needs sigma: it says how fine the result shall be");
    if (mean->plan.exact || !(mean->plan.rules.may & CST_MAY_Z))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "protocol robust has the codecs lattice and lattice:z");
    double q = o->parameter > 0 ? o->parameter : o->bits > 0 ? floor(cst_exp2(o->bits)) : 16;
    if (q < 2 || q > 16384)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "protocol robust: q = %g, it must be from 2 to 16384", q);
    settings->sigma = o->sigma;
    settings->q = (uint32_t)q;
    return COSET_OK;
}

static void robust_destroy(coset_mean *mean)
{
    free(mean->settings);
    mean->settings = NULL;
}

const cst_protocol cst_robust = {
    .name = "robust",
    .configure = robust_configure,
    .begin = robust_begin,
    .next = robust_next,
    .end = robust_end,
    .destroy = robust_destroy,
};
