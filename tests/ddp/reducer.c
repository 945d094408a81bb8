/* SPDX-License-Identifier: Apache-2.0 */
/* The reducer among ranks: usage: reducer TRANSPORT [CASE]. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- values, ready in another order on every rank, from two threads; rebuild; several steps ---- */

static int values(coset_comm *c, void *arg)
{
    size_t cap = *(size_t *)arg;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.bucket_bytes = o.first_bytes = o.last_bytes = cap;
    coset_ddp *d = make_reducer(c, p, &o);
    int bad = !d;
    for (int step = 0; step < 5 && !bad; step++)
        bad = one_step(c, d, p, step);
    coset_ddp_report r = COSET_DDP_REPORT_INIT;
    coset_ddp_ready(d, p[0].id); /* the next step is not the last finished one */
    if (!bad && (coset_ddp_last_report(d, &r) || r.steps != 5 || !r.buckets))
        bad = group_fail(c, "the report counts %llu steps", (unsigned long long)r.steps);
    for (size_t i = 0; i < r.buckets && !bad; i++) {
        coset_ddp_bucket b = {.struct_size = sizeof b};
        bad = coset_ddp_bucket_report(d, i, &b) || b.end_s < b.start_s || b.start_s < b.ready_s || b.ready_s < 0;
        if (bad)
            group_fail(c, "bucket %zu: ready %g, start %g, end %g", i, b.ready_s, b.start_s, b.end_s);
    }
    coset_ddp_destroy(d);
    return bad;
}

int run_values(const char *transport)
{
    static size_t caps[] = {1, 4096, (size_t)25 << 20};
    int bad = 0;
    for (int size = 1; size <= 4; size *= 2)
        for (size_t k = 0; k < 3; k++)
            for (int progress = 0; progress < 2; progress++) {
                group g = GROUP(transport, size);
                g.options.progress = progress;
                bad += group_run(&g, values, &caps[k]);
            }
    return bad;
}

/* ---- bucket sizes change no bit in rank-order mode ---- */

static int bits_with(coset_comm *c, size_t cap, const coset_mean_options *mean, uint64_t *hash)
{
    enum { N = 6 };
    coset_param p[N];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d;
    o.bucket_bytes = o.first_bytes = o.last_bytes = cap;
    o.mean = mean;
    for (size_t i = 0; i < N; i++)
        p[i] = (coset_param){.id = i, .count = 3000 + 777 * i, .dtype = COSET_F32, .ndim = 2};
    if (group_want(c, coset_ddp_create(c, &o, p, N, &d), COSET_OK, "create"))
        return 1;
    *hash = 0;
    for (int step = 0; step < 3; step++) {
        for (size_t k = 0; k < N; k++) {
            float *g = coset_ddp_grad(d, N - 1 - k);
            for (size_t i = 0; i < p[N - 1 - k].count; i++)
                g[i] = sinf((float)(i + 31 * k) * 0.37f + (float)coset_comm_rank(c) + (float)step) * 1e-3f;
            coset_ddp_ready(d, N - 1 - k);
        }
        if (group_want(c, coset_ddp_finish(d, NULL), COSET_OK, coset_ddp_why(d)))
            return 1;
        double norm;
        coset_ddp_clip(d, 1e-3, &norm, NULL);
        *hash = hash_of(*hash, &norm, sizeof norm);
        for (size_t i = 0; i < N; i++)
            *hash = hash_of(*hash, coset_ddp_grad(d, i), p[i].count * 4);
    }
    coset_ddp_destroy(d);
    return 0;
}

static int same_bits(coset_comm *c, void *arg)
{
    const coset_mean_options *mean = arg;
    uint64_t first = 0, other = 0;
    size_t caps[] = {1024, (size_t)1 << 20, (size_t)25 << 20};
    for (size_t k = 0; k < 3; k++) {
        if (bits_with(c, caps[k], mean, k ? &other : &first))
            return 1;
        if (k && other != first)
            return group_fail(c, "buckets of %zu bytes give other bits", caps[k]);
    }
    uint64_t all[8];
    if (group_want(c, coset_allgather(&first, all, 1, COSET_U64, c), COSET_OK, "allgather"))
        return 1;
    for (int r = 1; r < coset_comm_size(c); r++)
        if (all[r] != all[0])
            return group_fail(c, "rank %d has other bits than rank 0", r);
    return 0;
}

int run_bits(const char *transport)
{
    group g = GROUP(transport, 3);
    g.options.rank_order = 1;
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS;
    return group_run(&g, same_bits, NULL) || group_run(&g, same_bits, &mean);
}

/* ---- parameters that are not ready ---- */

static int unused(coset_comm *c, void *arg)
{
    int allow = *(int *)arg, rank = coset_comm_rank(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.allow_unused = allow;
    coset_ddp *d = make_reducer(c, p, &o);
    if (!d)
        return 1;
    /* parameter 2 is ready on rank 1 only; parameter 6 ("g") nowhere */
    for (size_t i = 0; i < PARAMS && !bad; i++)
        if (i != 6 && (i != 2 || rank == 1)) {
            write_grad(d, p, i, rank, 0);
            bad = group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
        }
    coset_status status = coset_ddp_finish(d, NULL);
    bad = bad || group_want(c, status, allow ? COSET_OK : COSET_ERR_ARGUMENT, "finish with a parameter ready nowhere");
    if (!bad && !allow && !strstr(coset_ddp_why(d), "g (id 118)"))
        bad = group_fail(c, "the text is '%s'", coset_ddp_why(d));
    bad = bad || check_grad(c, d, p, 2, 0, ~2u) || check_grad(c, d, p, 6, 0, ~0u) || check_grad(c, d, p, 3, 0, 0);
    /* an error of use loses nothing: the next step works */
    bad = bad || one_step(c, d, p, allow ? 1 : 0);
    coset_ddp_destroy(d);
    return bad;
}

int run_unused(const char *transport)
{
    int bad = 0;
    for (int allow = 0; allow < 2; allow++) {
        group g = GROUP(transport, 2);
        bad += group_run(&g, unused, &allow);
    }
    return bad;
}

/* ---- misuse ---- */

static int misuse(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL);
    if (!d)
        return 1;
    bad |= ready_all(c, d, p, 0);
    if (rank == 1)
        bad |= group_want(c, coset_ddp_ready(d, p[3].id), COSET_ERR_ARGUMENT, "ready twice");
    bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ARGUMENT, "finish after a misuse on rank 1");
    if (!strstr(coset_ddp_why(d), rank == 1 ? "id 109" : "rank 1"))
        bad |= group_fail(c, "the text is '%s'", coset_ddp_why(d));
    bad |= group_want(c, coset_ddp_ready(d, 4711), COSET_ERR_ARGUMENT, "unknown parameter");
    if (coset_ddp_grad(d, 4711))
        bad |= group_fail(c, "a gradient for an unknown parameter");
    bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ARGUMENT, "finish after an unknown parameter");
    bad = bad || one_step(c, d, p, 0);
    coset_ddp_destroy(d);
    return bad;
}

int run_misuse(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, misuse, NULL);
}

static int disagree(coset_comm *c, void *arg)
{
    int variant = *(int *)arg, odd = coset_comm_rank(c) == 1;
    static const char *const says[] = {"30000 elements on rank 0, 30001",
                                       "is f32 on rank 0, f64 on rank 1",
                                       "12 parameters, rank 1 has 11",
                                       "option bucket_bytes is 26214400 on rank 0, 12345 on rank 1",
                                       "option mean is NULL on rank 0 and given on rank 1",
                                       "option caps",
                                       "two parameters have the id",
                                       "codec \"pigeon\""};
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    const size_t cap = 4096;
    coset_param p[PARAMS];
    coset_ddp *d = NULL;
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    make_params(p);
    if (odd && variant == 0)
        p[6].count++;
    if (odd && variant == 1)
        p[6].dtype = COSET_F64;
    if (odd && variant == 3)
        o.bucket_bytes = 12345;
    if ((odd && variant == 4) || variant == 7)
        o.mean = &mean;
    if (odd && variant == 7)
        mean.codec = "pigeon";
    if (odd && variant == 5) {
        o.caps = &cap;
        o.ncaps = 1;
    }
    if (odd && variant == 6) /* a mistake of one rank: the others hear of it */
        p[6].id = p[7].id;
    size_t n = odd && variant == 2 ? PARAMS - 1 : PARAMS;
    coset_status expected = odd && variant >= 6 ? COSET_ERR_ARGUMENT : COSET_ERR_MISMATCH;
    if (group_want(c, coset_ddp_create(c, &o, p, n, &d), expected, "create with different lists"))
        return 1;
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(c, &e);
    if (!strstr(e.text, says[variant]))
        return group_fail(c, "the text is '%s'", e.text);
    p[1].id = p[2].id; /* the same mistake everywhere */
    return group_want(c, coset_ddp_create(c, NULL, p, PARAMS, &d), COSET_ERR_ARGUMENT, "an id twice");
}

int run_disagree(const char *transport)
{
    int bad = 0;
    for (int variant = 0; variant < 8; variant++) {
        group g = GROUP(transport, 3);
        int failed = group_run(&g, disagree, &variant);
        if (failed)
            fprintf(stderr, "variant %d\n", variant);
        bad += failed;
    }
    return bad;
}

static const struct {
    const char *name;
    int (*run)(const char *transport);
} cases[] = {
    {"values", run_values}, {"bits", run_bits},     {"link", run_link},         {"hosts", run_hosts},
    {"unused", run_unused}, {"misuse", run_misuse}, {"disagree", run_disagree}, {"clip", run_clip},
    {"uneven", run_uneven}, {"state", run_state},   {"late", run_late},         {"fork", run_fork},
    {"death", run_death},   {"abort", run_abort},
};

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc < 2)
        return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 2 && strcmp(argv[2], cases[i].name))
            continue;
        int failed = cases[i].run(argv[1]);
        fprintf(stderr, "%s %s: %s\n", argv[1], cases[i].name, failed ? "FAILED" : "ok");
        bad += failed != 0;
    }
    return bad != 0;
}
