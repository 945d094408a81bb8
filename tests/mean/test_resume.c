/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that is stopped after any call and goes on from saved states, in other processes, makes the same bits as one that
 * was never stopped: outputs and traffic, in every protocol, also where the link is measured anew. Three tensors in
 * changing company; one of them changes its size, one has an infinity once, and one call is given up.
 */
#include "mean/field.h"

#include "../../tools/mean/local.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, TENSORS = 3, CALLS = 7, ROOM = 13000, GIVEN_UP = 4, INFINITE = 3, RESIZED = 2 };

typedef struct {
    const char *name, *protocol, *codec;
    double bits, y, sigma, mean;
    bool finite;         /* infinities are refused */
    double link, slower; /* the objective is time, on a link that is found slower when the job goes on */
} job;

static const job jobs[] = {
    {"lattice, gradients", NULL, NULL, 0, 0, 0, 0.3, false, 0, 0},
    {"lattice, models", NULL, NULL, 0, 0, 0, 30, false, 0, 0},
    {"lattice, 4 bits", NULL, NULL, 4, 0, 0, 30, false, 0, 0},
    {"none", NULL, "none", 0, 0, 0, 3, false, 0, 0},
    {"eden", NULL, "eden", 4, 0, 0, 1, true, 0, 0},
    {"qsgd", NULL, "qsgd", 4, 0, 0, 1, true, 0, 0},
    {"correlated", NULL, "correlated", 4, 0, 0, 1, true, 0, 0},
    {"star", "star", NULL, 6, 400, 0, 3, true, 0, 0},
    {"tree", "tree", NULL, 8, 400, 0, 3, true, 0, 0},
    {"robust", "robust", NULL, 6, 0, 200, 3, true, 0, 0},
    {"sublinear", "sublinear", NULL, 0.5, 400, 0, 3, true, 0, 0},
    {"homomorphic", "homomorphic", NULL, 0, 0, 0, 3, false, 0, 0},
    {"plain at 10 GB/s", NULL, NULL, 0, 0, 0, 3, false, 10, 0.001},
    {"quick codes at 1 GB/s", NULL, NULL, 0, 0, 0, 3, false, 1, 0.001},
    {"few bits at 1 MB/s", NULL, NULL, 0, 0, 0, 3, false, 0.001, 10},
};

static const unsigned in_call[CALLS] = {1, 7, 7, 6, 5, 7, 7}; /* bit t: tensor t */

static size_t count_of(int call, int tensor)
{
    const size_t count[TENSORS] = {3000, 9000, call < RESIZED ? 700u : 900u};
    return count[tensor];
}

static size_t place_of(int call, int tensor)
{
    return tensor ? place_of(call, tensor - 1) + count_of(call, tensor - 1) : 0;
}

static coset_mean_options options_of(const job *j, bool again)
{
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    o.protocol = j->protocol;
    o.codec = j->codec;
    o.bits = j->bits;
    o.y = j->y;
    o.sigma = j->sigma;
    o.seed = 77;
    o.objective = j->link > 0 ? COSET_OBJECTIVE_TIME : COSET_OBJECTIVE_BITS;
    o.link_gbps = again ? j->slower : j->link;
    return o;
}

/* ---- calls ---- */

typedef struct {
    void *at;
    size_t bytes;
} bytes_of;

/* What an uninterrupted job was given and what came of it. */
typedef struct {
    float *in[CALLS][RANKS], *out[CALLS];
    uint64_t sent[CALLS];
    bytes_of saved[CALLS][RANKS]; /* before the call */
} history;

static void make_spans(const field *f, int call, coset_span spans[RANKS][TENSORS], size_t *nspans)
{
    for (int r = 0; r < RANKS; r++) {
        *nspans = 0;
        for (int t = 0; t < TENSORS; t++)
            if (in_call[call] >> t & 1)
                spans[r][(*nspans)++] =
                    (coset_span){(uint64_t)t, f->x[r] + place_of(call, t),
                                 f->out + (size_t)ROOM * (size_t)r + place_of(call, t), count_of(call, t)};
    }
}

/* All ranks begin it, and end it when they have asked for the first transfer. */
static void give_up(field *f, int call)
{
    coset_span spans[RANKS][TENSORS];
    size_t nspans;
    make_spans(f, call, spans, &nspans);
    for (int r = 0; r < RANKS; r++) {
        coset_round *round;
        coset_xfer x = COSET_XFER_INIT;
        assert_int_equal(coset_mean_begin(f->means[r], spans[r], nspans, COSET_F32, &round), COSET_OK);
        assert_int_equal(coset_mean_next(round, &x), COSET_OK);
        assert_int_equal(coset_mean_end(round, NULL), COSET_ERR_ARGUMENT);
    }
}

/* Averages h->in[call]; the result is the same on all ranks. Returns the bits that all have sent. */
static uint64_t average(field *f, const history *h, int call)
{
    coset_span spans[RANKS][TENSORS];
    const coset_span *each[RANKS];
    coset_mean_report reports[RANKS];
    size_t nspans;
    for (int r = 0; r < RANKS; r++)
        memcpy(f->x[r], h->in[call][r], ROOM * sizeof(float));
    memset(f->out, 0, (size_t)RANKS * ROOM * sizeof(float));
    if (call == GIVEN_UP)
        give_up(f, call);
    make_spans(f, call, spans, &nspans);
    for (int r = 0; r < RANKS; r++) {
        each[r] = spans[r];
        reports[r] = (coset_mean_report)COSET_MEAN_REPORT_INIT;
    }
    coset_error why = COSET_ERROR_INIT;
    if (tool_mean_local(f->means, RANKS, each, nspans, COSET_F32, reports, &why))
        fail_msg("call %d: %s", call, why.text);
    uint64_t sent = 0;
    for (int r = 0; r < RANKS; r++) {
        assert_memory_equal(f->out, f->out + (size_t)ROOM * (size_t)r, ROOM * sizeof(float));
        sent += reports[r].bits_sent;
    }
    return sent;
}

/* ---- the uninterrupted job ---- */

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, from, bytes);
    return copy;
}

static bytes_of saved(const coset_mean *mean)
{
    bytes_of b = {NULL, 0};
    assert_int_equal(coset_mean_save(mean, NULL, &b.bytes), COSET_OK);
    b.at = malloc(b.bytes);
    assert_int_equal(coset_mean_save(mean, b.at, &b.bytes), COSET_OK);
    return b;
}

/* Models: a common part that drifts. Gradients: one that is small, and new in each call. The spread wanders. */
static void inputs(field *f, const job *j, history *h, float *common, int call)
{
    double spread = exp2(0.5 * field_gauss(f));
    for (size_t i = 0; i < ROOM; i++)
        common[i] = (j->mean < 1 ? 0 : common[i]) + (float)((call && j->mean > 1 ? 0.5 : j->mean) * field_gauss(f));
    for (int r = 0; r < RANKS; r++) {
        for (size_t i = 0; i < ROOM; i++)
            f->x[r][i] = common[i] + (float)(spread * field_gauss(f));
        if (call == INFINITE && r == 1 && !j->finite)
            f->x[r][place_of(call, 1) + 5] = INFINITY;
        h->in[call][r] = copy_of(f->x[r], ROOM * sizeof(float));
    }
}

static history *uninterrupted(const job *j)
{
    coset_mean_options o = options_of(j, false);
    history *h = calloc(1, sizeof *h);
    float *common = calloc(ROOM, sizeof *common);
    assert_true(h && common);
    field *f = field_make(RANKS, ROOM, &o, 5);
    for (int call = 0; call < CALLS; call++) {
        inputs(f, j, h, common, call);
        for (int r = 0; r < RANKS; r++)
            h->saved[call][r] = saved(f->means[r]);
        h->sent[call] = average(f, h, call);
        h->out[call] = copy_of(f->out, ROOM * sizeof(float));
    }
    field_free(f);
    free(common);
    return h;
}

static void forget(history *h)
{
    for (int call = 0; call < CALLS; call++) {
        for (int r = 0; r < RANKS; r++) {
            free(h->in[call][r]);
            free(h->saved[call][r].at);
        }
        free(h->out[call]);
    }
    free(h);
}

/* ---- those that go on ---- */

static void load(field *f, int rank, const bytes_of *b)
{
    assert_int_equal(coset_mean_load(f->means[rank], b->at, b->bytes), COSET_OK);
    bytes_of again = saved(f->means[rank]);
    assert_int_equal(again.bytes, b->bytes);
    assert_memory_equal(again.at, b->at, b->bytes);
    free(again.at);
}

static void goes_on_as(field *f, const job *j, const history *h, int first, const char *who)
{
    for (int call = first; call < CALLS; call++) {
        uint64_t sent = average(f, h, call);
        if (sent != h->sent[call] || memcmp(f->out, h->out[call], ROOM * sizeof(float)) != 0)
            fail_msg("%s, %s before call %d: call %d differs", j->name, who, first, call);
    }
}

/* Fresh means that have loaded what was saved before call `first`: each its own, or all what rank `of` did. */
static field *restarted(const job *j, const history *h, int first, int of)
{
    const coset_mean_options o = options_of(j, true);
    field *f = field_make(RANKS, ROOM, &o, 6);
    for (int r = 0; r < RANKS; r++)
        load(f, r, &h->saved[first][of < 0 ? r : of]);
    return f;
}

static void all_ranks_go_on(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        history *h = uninterrupted(&jobs[i]);
        for (int first = 0; first < CALLS; first++) {
            field *f = restarted(&jobs[i], h, first, -1);
            goes_on_as(f, &jobs[i], h, first, "all loaded");
            field_free(f);
        }
        forget(h);
    }
}

/* The others never stopped. */
static void one_rank_goes_on(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        coset_mean_options o = options_of(&jobs[i], true);
        history *h = uninterrupted(&jobs[i]);
        const coset_mean_options before = options_of(&jobs[i], false);
        field *f = field_make(RANKS, ROOM, &before, 6);
        for (int call = 0; call < CALLS; call++) {
            int r = call % RANKS;
            coset_mean_destroy(f->means[r]);
            assert_int_equal(coset_mean_create(r, RANKS, &o, &f->means[r], NULL), COSET_OK);
            load(f, r, &h->saved[call][r]);
            uint64_t sent = average(f, h, call);
            if (sent != h->sent[call] || memcmp(f->out, h->out[call], ROOM * sizeof(float)) != 0)
                fail_msg("%s, rank %d loaded before call %d, which differs", jobs[i].name, r, call);
        }
        field_free(f);
        forget(h);
    }
}

/* One rank's state for all of them: what they share goes on, and so do all where ranks keep nothing for themselves. */
static void one_state_fits_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        history *h = uninterrupted(&jobs[i]);
        bool own = jobs[i].mean > 1 && !jobs[i].protocol && !jobs[i].codec; /* vectors near to each other */
        for (int first = 1; first < CALLS; first++) {
            field *f = restarted(&jobs[i], h, first, 2);
            if (own)
                average(f, h, first);
            else
                goes_on_as(f, &jobs[i], h, first, "all loaded one rank's state");
            field_free(f);
        }
        forget(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_go_on),
        cmocka_unit_test(one_rank_goes_on),
        cmocka_unit_test(one_state_fits_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
