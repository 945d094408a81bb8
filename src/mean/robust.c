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
#include "mean/whole.h"

#include <math.h>
#include <stdlib.h>

typedef enum { AT_START, AT_DIGITS_UP, AT_VERDICT_UP, AT_DIGITS_DOWN, AT_ANSWERS, AT_VERDICT_DOWN, AT_END } stage;

enum { WHOLE_BITS = 32, MOST_BITS = 16, PHASE_ROBUST_UP = 32, PHASE_ROBUST_DOWN = 33 };

/* One direction of one pair: digits of `points` known so far. */
typedef struct {
    unsigned bits; /* digits known of every coordinate of open pieces */
    uint8_t *open; /* per piece: not decoded yet */
    uint32_t nopen;
    uint32_t *digits; /* n, low digits known; at a receiver */
    cst_checksum *checks;
    float *value; /* decoded; at a receiver */
} agreement;

typedef struct {
    stage at;
    int leader, pass;
    uint32_t phase; /* of the points under way */
    bool *sampled;  /* per rank: in S */
    int samples;
    cst_whole whole;
    float step;
    unsigned first_bits;
    int32_t *points; /* own vector's; at the leader, then the mean's */
    cst_checksum *checks;
    agreement *with; /* leader: with every rank; others: with[0], with the leader */
    float *mean;
    uint8_t **send, **recv; /* per peer: frames of the transfer under way */
    coset_route *routes;
    bool again; /* the leader's decision: another pass in this direction */
} robust;

typedef struct {
    double sigma;
    uint32_t q;
} robust_settings;

static robust *state_of(const coset_round *round)
{
    return round->state;
}

static bool leads(const coset_round *round)
{
    return state_of(round)->leader == round->mean->rank;
}

/* ---- set-up ---- */

static bool agreement_make(agreement *a, const cst_whole *w, bool receives)
{
    a->open = malloc(w->pieces);
    a->checks = calloc(w->pieces, sizeof *a->checks);
    a->digits = receives ? calloc(w->n, sizeof *a->digits) : NULL;
    a->value = receives ? malloc(w->n * sizeof *a->value) : NULL;
    if (!a->open || !a->checks || (receives && (!a->digits || !a->value)))
        return false;
    memset(a->open, 1, w->pieces);
    a->nopen = w->pieces;
    return true;
}

static void agreement_free(agreement *a)
{
    free(a->open);
    free(a->digits);
    free(a->checks);
    free(a->value);
    *a = (agreement){0};
}

static void agreement_reset(agreement *a, const cst_whole *w)
{
    memset(a->open, 1, w->pieces);
    a->nopen = w->pieces;
    a->bits = 0;
    if (a->digits)
        memset(a->digits, 0, w->n * sizeof *a->digits);
}

static coset_status draw(coset_round *round)
{
    robust *s = state_of(round);
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
    robust *s = round->state = calloc(1, sizeof *s);
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
    s->first_bits = s->first_bits + 2 < MOST_BITS ? s->first_bits + 2 : MOST_BITS;
    for (size_t u = 0; u < (leads(round) ? n : 1); u++)
        if (!agreement_make(&s->with[u], &s->whole, true))
            return COSET_ERR_MEMORY;
    if (!cst_whole_quantise(&s->whole, s->whole.own, (uint32_t)round->mean->rank, PHASE_ROBUST_UP, s->step, s->points,
                            s->checks))
        return cst_fail(&round->mean->error, COSET_ERR_ARGUMENT, -1,
                        "an input is too large for f32 at the step that sigma asks for");
    return COSET_OK;
}

static void robust_end(coset_round *round)
{
    robust *s = state_of(round);
    cst_whole_free(&s->whole);
    for (int u = 0; u < round->mean->size; u++) {
        if (s->with)
            agreement_free(&s->with[u]);
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

/* ---- digits ---- */

/* How many digits come next, when `bits` are known. */
static unsigned next_bits(const robust *s, unsigned bits)
{
    if (bits == 0)
        return s->first_bits;
    return bits >= MOST_BITS ? WHOLE_BITS - bits : 2 * bits <= MOST_BITS ? bits : MOST_BITS - bits;
}

/* Bytes of the digits of the open pieces: checksums come with the first. */
static size_t digits_bytes(const robust *s, const agreement *a)
{
    unsigned bits = next_bits(s, a->bits);
    size_t bytes = a->bits == 0 ? (size_t)CST_CHECK_BYTES * s->whole.pieces : 0;
    for (uint32_t p = 0; p < s->whole.pieces; p++)
        bytes += a->open[p] ? ((size_t)cst_piece_count(&s->whole, p) * bits + 7) / 8 : 0;
    return CST_BODY_AT + bytes;
}

static uint8_t *pack_bits(const int32_t *points, uint32_t count, unsigned low, unsigned bits, uint8_t *out)
{
    uint64_t pending = 0;
    unsigned used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t digits = (uint32_t)points[i] >> low;
        pending |= (digits & (((uint64_t)1 << bits) - 1)) << used;
        for (used += bits; used >= 8; used -= 8, pending >>= 8)
            *out++ = (uint8_t)pending;
    }
    if (used)
        *out++ = (uint8_t)pending;
    return out;
}

static const uint8_t *unpack_bits(const uint8_t *in, uint32_t count, unsigned low, unsigned bits, uint32_t *digits)
{
    uint64_t pending = 0;
    unsigned have = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (; have < bits; have += 8)
            pending |= (uint64_t)*in++ << have;
        digits[i] |= (uint32_t)(pending & (((uint64_t)1 << bits) - 1)) << low;
        pending >>= bits;
        have -= bits;
    }
    return in;
}

/* The next digits of the open pieces, as a frame. */
static void write_digits(const coset_round *round, const agreement *a, int receiver, uint8_t *frame)
{
    const robust *s = state_of(round);
    unsigned bits = next_bits(s, a->bits);
    uint8_t *to = frame + CST_BODY_AT;
    for (uint32_t p = 0; a->bits == 0 && p < s->whole.pieces; p++, to += CST_CHECK_BYTES)
        cst_check_write(to, s->checks[p]);
    for (uint32_t p = 0; p < s->whole.pieces; p++)
        if (a->open[p])
            to = pack_bits(s->points + (size_t)CST_BLOCK * p, cst_piece_count(&s->whole, p), a->bits, bits, to);
    size_t bytes = (size_t)(to - frame);
    cst_frame_header h = cst_colours_header(round, s->pass, round->mean->rank, receiver);
    cst_body_seal(frame, &h, bytes, bytes);
}

static bool decode_piece(const robust *s, agreement *a, uint32_t p, int sender)
{
    size_t at = (size_t)CST_BLOCK * p;
    uint32_t count = cst_piece_count(&s->whole, p);
    if (a->bits <= MOST_BITS) {
        uint16_t digits[CST_BLOCK];
        for (uint32_t i = 0; i < count; i++)
            digits[i] = (uint16_t)a->digits[at + i];
        return cst_piece_decode(&s->whole, p, digits, 1u << a->bits, a->checks[p], (uint32_t)sender, s->phase, s->step,
                                s->whole.own, a->value);
    }
    return cst_piece_whole(&s->whole, p, (const int32_t *)a->digits + at, a->checks[p], (uint32_t)sender, s->phase,
                           s->step, a->value);
}

/* Takes in the digits that `sender` sent, and tries again. */
static coset_status read_digits(coset_round *round, agreement *a, int sender, const uint8_t *frame)
{
    robust *s = state_of(round);
    unsigned bits = next_bits(s, a->bits);
    size_t bytes = digits_bytes(s, a);
    cst_reader body;
    coset_status status = cst_colours_open(round, s->pass, sender, round->mean->rank, frame, bytes, &body);
    if (status)
        return status;
    if ((size_t)(body.end - body.at) != bytes - CST_BODY_AT)
        return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, sender, "a message of rank %d has another length",
                        sender);
    const uint8_t *from = body.at;
    for (uint32_t p = 0; a->bits == 0 && p < s->whole.pieces; p++, from += CST_CHECK_BYTES)
        a->checks[p] = cst_check_read(from);
    unsigned low = a->bits;
    a->bits += bits;
    a->nopen = 0;
    for (uint32_t p = 0; p < s->whole.pieces; p++) {
        if (!a->open[p])
            continue;
        from = unpack_bits(from, cst_piece_count(&s->whole, p), low, bits, a->digits + (size_t)CST_BLOCK * p);
        a->open[p] = !decode_piece(s, a, p, sender);
        a->nopen += a->open[p];
    }
    if (a->nopen && a->bits >= WHOLE_BITS)
        return cst_fail(&round->mean->error, COSET_ERR_CORRUPT, sender,
                        "whole integers of rank %d contradict their checksum", sender);
    round->report.repaired += a->nopen;
    return COSET_OK;
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
    const robust *s = state_of(round);
    const agreement *a = leads(round) ? &s->with[u] : &s->with[0];
    return u != s->leader && a->nopen && (!up || s->sampled[u]);
}

static coset_status send_digits(coset_round *round, bool up, coset_xfer *xfer)
{
    robust *s = state_of(round);
    size_t n = 0;
    s->pass++;
    for (int u = 0; u < round->mean->size; u++) {
        bool mine = leads(round) ? u != s->leader : u == round->mean->rank;
        if (!mine || !concerned(round, u, up))
            continue;
        agreement *a = leads(round) ? &s->with[u] : &s->with[0];
        int peer = leads(round) ? u : s->leader;
        bool sends = leads(round) != up;
        uint8_t **frame = sends ? &s->send[u] : &s->recv[u];
        size_t bytes = digits_bytes(s, a);
        if (frame_for(frame, bytes))
            return COSET_ERR_MEMORY;
        if (sends) {
            write_digits(round, a, peer, *frame);
            a->bits += next_bits(s, a->bits);
        }
        s->routes[n++] = (coset_route){peer, sends ? *frame : NULL, sends ? NULL : *frame, bytes};
    }
    s->at = up ? AT_DIGITS_UP : AT_DIGITS_DOWN;
    return cst_hand_out_routes(round, xfer, s->routes, n);
}

static coset_status take_digits(coset_round *round, bool up)
{
    robust *s = state_of(round);
    for (int u = 0; u < round->mean->size; u++) {
        bool receives = leads(round) == up && (leads(round) ? u != s->leader : u == round->mean->rank);
        if (!receives || !concerned(round, u, up))
            continue;
        coset_status status =
            read_digits(round, &s->with[leads(round) ? u : 0], leads(round) ? u : s->leader, s->recv[u]);
        if (status)
            return status;
    }
    return COSET_OK;
}

/* A word to or from the leader: one byte (another pass follows), and which pieces are open. */
static size_t word_bytes(const robust *s)
{
    return CST_BODY_AT + 1 + s->whole.pieces;
}

static void write_word(const coset_round *round, int receiver, bool more, const uint8_t *open, uint8_t *frame)
{
    const robust *s = state_of(round);
    size_t bytes = word_bytes(s);
    frame[CST_BODY_AT] = more;
    memcpy(frame + CST_BODY_AT + 1, open, s->whole.pieces);
    cst_frame_header h = cst_colours_header(round, s->pass, round->mean->rank, receiver);
    cst_body_seal(frame, &h, bytes, bytes);
}

static coset_status read_word(coset_round *round, int sender, const uint8_t *frame, bool *more, uint8_t *open,
                              uint32_t *nopen)
{
    const robust *s = state_of(round);
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
static coset_status send_words(coset_round *round, bool from_leader, bool more, stage next, coset_xfer *xfer)
{
    robust *s = state_of(round);
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
    const robust *s = state_of(round);
    for (int u = 0; u < round->mean->size; u++)
        if (u != s->leader && (!up || s->sampled[u]) && s->with[u].nopen)
            return true;
    return false;
}

/* The mean of S and its point; agreements begin anew in the other direction. */
static coset_status fix_mean(coset_round *round)
{
    robust *s = state_of(round);
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
    robust *s = state_of(round);
    s->phase = PHASE_ROBUST_DOWN;
    for (int u = 0; u < (leads(round) ? round->mean->size : 1); u++)
        agreement_reset(&s->with[u], &s->whole);
}

/* The leader's word, at all others: goes on in this direction? */
static coset_status hear_leader(coset_round *round, bool *more)
{
    robust *s = state_of(round);
    int rank = round->mean->rank;
    if (leads(round))
        return COSET_OK;
    agreement *a = &s->with[0];
    return read_word(round, s->leader, s->recv[rank], more, a->open, &a->nopen);
}

static coset_status hear_answers(coset_round *round)
{
    robust *s = state_of(round);
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
    robust *s = state_of(round);
    float *result = leads(round) ? s->mean : s->with[0].value;
    if (leads(round))
        cst_whole_reconstruct(&s->whole, s->points, (uint32_t)s->leader, PHASE_ROBUST_DOWN, s->step, result);
    cst_whole_store(&s->whole, result);
    s->at = AT_END;
    return COSET_OK;
}

static coset_status robust_next(coset_round *round, coset_xfer *xfer)
{
    robust *s = state_of(round);
    bool more = leads(round);
    coset_status status = COSET_OK;
    switch (s->at) {
    case AT_START: return send_digits(round, true, xfer);
    case AT_DIGITS_UP:
        status = take_digits(round, true);
        more = leads(round) && any_open(round, true);
        if (!status && leads(round) && !more)
            status = fix_mean(round);
        s->again = more;
        return status ? status : send_words(round, true, more, AT_VERDICT_UP, xfer);
    case AT_VERDICT_UP:
        more = s->again;
        status = hear_leader(round, &more);
        if (!status && !more)
            turn_around(round);
        return status ? status : send_digits(round, more, xfer);
    case AT_DIGITS_DOWN:
        status = take_digits(round, false);
        return status ? status : send_words(round, false, false, AT_ANSWERS, xfer);
    case AT_ANSWERS:
        status = hear_answers(round);
        more = leads(round) && any_open(round, false);
        s->again = more;
        return status ? status : send_words(round, true, more, AT_VERDICT_DOWN, xfer);
    case AT_VERDICT_DOWN:
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
