/* SPDX-License-Identifier: Apache-2.0 */
/* The reducer among ranks: usage: reducer TRANSPORT [CASE]. */
#include "comm/group.h"

#include "comm/comm.h"
#include "ddp/reducer.h"
#include "kernels/convert/convert.h"

#include <coset_ddp.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARAMS = 12 };

static void make_params(coset_param *p)
{
    static const size_t counts[PARAMS] = {1, 7, 4096, 5000, 0, 1023, 30000, 64, 2048, 10, 9999, 3};
    static const coset_dtype dtypes[PARAMS] = {COSET_F32, COSET_F32,  COSET_F32, COSET_F64, COSET_F32, COSET_F16,
                                               COSET_F32, COSET_BF16, COSET_F32, COSET_F64, COSET_F32, COSET_F32};
    static const char *const names[PARAMS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", NULL};
    for (size_t i = 0; i < PARAMS; i++)
        p[i] = (coset_param){
            .id = 100 + i * 3, .count = counts[i], .dtype = dtypes[i], .ndim = i % 2 ? 2 : 1, .name = names[i]};
}

/* Small integers: exact in every type. */
static int value(int rank, size_t param, size_t i, int step)
{
    return (int)((i * 5 + (size_t)rank * 3 + param + (size_t)step) % 17) - 8;
}

static double read_element(coset_dtype dtype, const void *x, size_t i)
{
    float f;
    switch (dtype) {
    case COSET_F64: return ((const double *)x)[i];
    case COSET_F32: return (double)((const float *)x)[i];
    default: cst_widen(dtype, &f, (const char *)x + 2 * i, 1); return (double)f;
    }
}

static void write_element(coset_dtype dtype, void *x, size_t i, int v)
{
    float f = (float)v;
    if (dtype == COSET_F64)
        ((double *)x)[i] = v;
    else if (dtype == COSET_F32)
        ((float *)x)[i] = f;
    else
        cst_narrow(dtype, (char *)x + 2 * i, &f, 1, 1);
}

static void write_grad(coset_ddp *d, const coset_param *p, size_t param, int rank, int step)
{
    void *g = coset_ddp_grad(d, p[param].id);
    for (size_t i = 0; i < p[param].count; i++)
        write_element(p[param].dtype, g, i, value(rank, param, i, step));
}

/* Means of small integers over `size` ranks (1, 2 or 4: exact), `absent` ranks (a bit mask) counting as zero. */
static int check_grad(coset_comm *c, coset_ddp *d, const coset_param *p, size_t param, int step, unsigned absent)
{
    int size = coset_comm_size(c);
    const void *g = coset_ddp_grad(d, p[param].id);
    for (size_t i = 0; i < p[param].count; i++) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += absent >> r & 1 ? 0 : value(r, param, i, step);
        double got = read_element(p[param].dtype, g, i), want = (double)sum / size;
        if (got != want)
            return group_fail(c, "step %d, parameter %zu, element %zu: %g, not %g", step, param, i, got, want);
    }
    return 0;
}

static coset_ddp *make(coset_comm *c, coset_param *p, const coset_ddp_options *o)
{
    coset_ddp *d = NULL;
    make_params(p);
    return group_want(c, coset_ddp_create(c, o, p, PARAMS, &d), COSET_OK, "create") ? NULL : d;
}

/* ---- values, ready in another order on every rank, from two threads; rebuild; several steps ---- */

typedef struct {
    coset_ddp *d;
    const coset_param *p;
    int rank, step;
    size_t first;
    coset_status status;
} half;

static void *ready_half(void *arg)
{
    half *h = arg;
    for (size_t k = h->first; k < PARAMS; k += 2) {
        size_t param = (k * 5 + (size_t)h->rank * 7) % PARAMS; /* 5 is prime to 12: a permutation, other on each rank */
        write_grad(h->d, h->p, param, h->rank, h->step);
        h->status = coset_ddp_ready(h->d, h->p[param].id);
        if (h->status)
            return NULL;
    }
    return NULL;
}

static int one_step(coset_comm *c, coset_ddp *d, const coset_param *p, int step)
{
    int rank = coset_comm_rank(c), moved = 0;
    half halves[2] = {{d, p, rank, step, 0, COSET_OK}, {d, p, rank, step, 1, COSET_OK}};
    pthread_t other;
    pthread_create(&other, NULL, ready_half, &halves[1]);
    ready_half(&halves[0]);
    pthread_join(other, NULL);
    if (halves[0].status || halves[1].status)
        return group_fail(c, "ready: %s", coset_ddp_why(d));
    if (group_want(c, coset_ddp_finish(d, &moved), COSET_OK, "finish") || (moved != (step == 0)))
        return group_fail(c, "step %d: finish: %s, moved %d", step, coset_ddp_why(d), moved);
    for (size_t i = 0; i < PARAMS; i++)
        if (check_grad(c, d, p, i, step, 0))
            return 1;
    return 0;
}

static int values(coset_comm *c, void *arg)
{
    size_t cap = *(size_t *)arg;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.bucket_bytes = o.first_bytes = o.last_bytes = cap;
    coset_ddp *d = make(c, p, &o);
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

static int run_values(const char *transport)
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

static uint64_t hash_of(uint64_t h, const void *data, size_t n)
{
    for (const unsigned char *b = data; n--; b++)
        h = (h ^ *b) * UINT64_C(0x100000001b3);
    return h;
}

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

static int run_bits(const char *transport)
{
    group g = GROUP(transport, 3);
    g.options.rank_order = 1;
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS;
    return group_run(&g, same_bits, NULL) || group_run(&g, same_bits, &mean);
}

/* ---- compression where it pays ---- */

typedef struct {
    coset_mean_options mean;
    int plain; /* expected; -1: whatever the measured link says, the same on all ranks */
} link_case;

static int one_compressed_step(coset_comm *c, coset_ddp *d, coset_ddp_report *report)
{
    float *g = coset_ddp_grad(d, 1);
    for (size_t i = 0; i < 1 << 16; i++)
        g[i] = sinf((float)i * 0.37f + (float)coset_comm_rank(c));
    coset_ddp_ready(d, 1);
    return group_want(c, coset_ddp_finish(d, NULL), COSET_OK, coset_ddp_why(d)) ||
           group_want(c, coset_ddp_last_report(d, report), COSET_OK, "report");
}

static int link_decides(coset_comm *c, void *arg)
{
    const link_case *k = arg;
    const coset_param p = {.id = 1, .count = 1 << 16, .dtype = COSET_F32, .ndim = 2};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp_report report = COSET_DDP_REPORT_INIT;
    coset_ddp *d;
    o.mean = &k->mean;
    if (group_want(c, coset_ddp_create(c, &o, &p, 1, &d), COSET_OK, "create"))
        return 1;
    int bad = one_compressed_step(c, d, &report), plain[8];
    coset_ddp_destroy(d);
    if (bad || group_want(c, coset_allgather(&report.plain, plain, 1, COSET_I32, c), COSET_OK, "allgather"))
        return 1;
    for (int r = 0; r < coset_comm_size(c); r++)
        if (plain[r] != (k->plain < 0 ? plain[0] : k->plain))
            return group_fail(c, "rank %d sends %s", r, plain[r] ? "exactly" : "codes");
    if ((report.bits_sent > 0) == report.plain)
        return group_fail(c, "plain %d, but %llu bits of codes", report.plain, (unsigned long long)report.bits_sent);
    if (k->mean.objective != COSET_OBJECTIVE_BITS && !(report.link_gbps > 0))
        return group_fail(c, "no speed of the link reported");
    return 0;
}

/* A state brings the choice with it: the link may be measured otherwise when a job goes on. */
static int choice_is_saved(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p = {.id = 1, .count = 1 << 16, .dtype = COSET_F32, .ndim = 2};
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.mean = &mean;
    for (int plain = 0; plain < 2; plain++) {
        coset_ddp *before, *after;
        coset_ddp_report report = COSET_DDP_REPORT_INIT;
        mean.link_gbps = plain ? 100 : 1e-3;
        if (group_want(c, coset_ddp_create(c, &o, &p, 1, &before), COSET_OK, "create") ||
            one_compressed_step(c, before, &report))
            return 1;
        mean.link_gbps = plain ? 1e-3 : 100;
        if (group_want(c, coset_ddp_create(c, &o, &p, 1, &after), COSET_OK, "create again"))
            return 1;
        char buf[1 << 16];
        size_t bytes = sizeof buf;
        int bad = group_want(c, coset_ddp_save(before, buf, &bytes), COSET_OK, "save") ||
                  group_want(c, coset_ddp_load(after, buf, bytes), COSET_OK, "load") ||
                  one_compressed_step(c, after, &report);
        coset_ddp_destroy(before);
        coset_ddp_destroy(after);
        if (bad || report.plain != plain)
            return group_fail(c, "plain %d before, %d after", plain, report.plain);
    }
    return 0;
}

static int run_link_on(group g)
{
    link_case cases[] = {{COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, 1},
                         {COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, 0},
                         {COSET_MEAN_OPTIONS_INIT, -1}};
    cases[0].mean.objective = COSET_OBJECTIVE_BITS;
    cases[1].mean.link_gbps = 100;
    cases[2].mean.link_gbps = 1e-3;
    cases[3].mean.link_gbps = 100; /* a baseline leaves no choice */
    cases[3].mean.codec = "eden";
    cases[3].mean.bits = 4;
    cases[3].mean.objective = COSET_OBJECTIVE_BITS;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (group_run(&g, link_decides, &cases[i]))
            return 1;
    }
    return group_run(&g, choice_is_saved, NULL);
}

static int run_link(const char *transport)
{
    return run_link_on(GROUP(transport, 3));
}

/* Two ranks on each of two pretended hosts: codes go between the hosts only. */
static int run_hosts(const char *transport)
{
    if (strcmp(transport, "tcp"))
        return 0;
    group g = GROUP(transport, 4);
    g.per_host = 2;
    return run_link_on(g);
}

/* ---- parameters that are not ready ---- */

static int unused(coset_comm *c, void *arg)
{
    int allow = *(int *)arg, rank = coset_comm_rank(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.allow_unused = allow;
    coset_ddp *d = make(c, p, &o);
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

static int run_unused(const char *transport)
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
    coset_ddp *d = make(c, p, NULL);
    if (!d)
        return 1;
    for (size_t i = 0; i < PARAMS; i++) {
        write_grad(d, p, i, rank, 0);
        bad |= group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
    }
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

static int run_misuse(const char *transport)
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

static int run_disagree(const char *transport)
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

/* ---- clipping, NaN, no_sync, join, state ---- */

static int clip(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), skip = 9, bad = 0;
    double norm = 0;
    coset_param p[2] = {{.id = 1, .count = 3, .dtype = COSET_F32, .ndim = 1, .name = "w"},
                        {.id = 2, .count = 1, .dtype = COSET_F64, .ndim = 1}};
    coset_ddp *d;
    if (group_want(c, coset_ddp_create(c, NULL, p, 2, &d), COSET_OK, "create"))
        return 1;
    for (int step = 0; step < 2 && !bad; step++) {
        float *w = coset_ddp_grad(d, 1);
        double *v = coset_ddp_grad(d, 2);
        w[0] = 2;
        w[1] = step == 1 && rank == 2 ? NAN : 4;
        w[2] = 5;
        v[0] = 6; /* 4 + 16 + 25 + 36 = 81 */
        bad = group_want(c, coset_ddp_ready(d, 1), COSET_OK, "ready") ||
              group_want(c, coset_ddp_ready(d, 2), COSET_OK, "ready") ||
              group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish") ||
              group_want(c, coset_ddp_clip(d, 3, &norm, &skip), COSET_OK, "clip");
        w = coset_ddp_grad(d, 1);
        v = coset_ddp_grad(d, 2);
        if (!bad && step == 0 && (norm != 9 || skip || w[0] != 2 * (float)(3.0 / 9) || v[0] != 6 * (3.0 / 9)))
            bad = group_fail(c, "norm %g, skip %d, %g %g", norm, skip, (double)w[0], v[0]);
        if (!bad && step == 1 &&
            (!skip || !isnan(norm) || v[0] != 6 || !strstr(coset_ddp_why(d), "w (id 1)") ||
             !strstr(coset_ddp_why(d), "rank 2")))
            bad = group_fail(c, "NaN on rank 2: skip %d, norm %g, v %g, %s", skip, norm, v[0], coset_ddp_why(d));
    }
    bad = bad || group_want(c, coset_ddp_clip(d, 0, NULL, NULL), COSET_ERR_ARGUMENT, "max_norm 0");
    coset_ddp_destroy(d);
    return bad;
}

/* Gradients whose squares are beyond f64 are finite all the same. */
static int clip_huge(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p = {.id = 1, .count = 2, .dtype = COSET_F64, .ndim = 1};
    coset_ddp *d;
    double norm = 0;
    int skip = 9, bad = group_want(c, coset_ddp_create(c, NULL, &p, 1, &d), COSET_OK, "create");
    if (bad)
        return bad;
    double *g = coset_ddp_grad(d, 1);
    g[0] = 0x3p600;
    g[1] = 0x4p600;
    bad = group_want(c, coset_ddp_ready(d, 1), COSET_OK, "ready") ||
          group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish") ||
          group_want(c, coset_ddp_clip(d, 0x5p-1, &norm, &skip), COSET_OK, "clip");
    g = coset_ddp_grad(d, 1);
    if (!bad && (norm != 0x5p600 || skip || g[0] != 1.5 || g[1] != 2))
        bad = group_fail(c, "norm %g, skip %d, %g %g", norm, skip, g[0], g[1]);
    coset_ddp_destroy(d);
    return bad;
}

/* Callers whose threads round otherwise get the same bits. */
static int clip_in_any_mode(coset_comm *c, void *arg)
{
    (void)arg;
    enum { N = 1000 };
    static const coset_dtype dtypes[] = {COSET_F32, COSET_F64, COSET_BF16};
    static const double most[] = {2.3, 2.2, 2.1};
    coset_param p[3];
    coset_ddp *d;
    for (size_t k = 0; k < 3; k++)
        p[k] = (coset_param){.id = k, .count = N, .dtype = dtypes[k], .ndim = 1};
    if (group_want(c, coset_ddp_create(c, NULL, p, 3, &d), COSET_OK, "create"))
        return 1;
    int bad = 0;
    for (size_t k = 0; k < 3; k++) {
        write_grad(d, p, k, 0, 0);
        bad |= group_want(c, coset_ddp_ready(d, k), COSET_OK, "ready");
    }
    bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
    double norm;
    fesetround(coset_comm_rank(c) ? FE_UPWARD : FE_TONEAREST);
    for (int i = 0; i < 3; i++)
        bad |= group_want(c, coset_ddp_clip(d, most[i], &norm, NULL), COSET_OK, "clip");
    fesetround(FE_TONEAREST);
    uint64_t hash = hash_of(0, &norm, sizeof norm), all[2];
    for (size_t k = 0; k < 3; k++)
        hash = hash_of(hash, coset_ddp_grad(d, k), N * coset_dtype_size(dtypes[k]));
    bad = bad || group_want(c, coset_allgather(&hash, all, 1, COSET_U64, c), COSET_OK, "allgather");
    if (!bad && all[0] != all[1])
        bad = group_fail(c, "a caller that rounds upward gets other bits");
    coset_ddp_destroy(d);
    return bad;
}

static int run_clip(const char *transport)
{
    group g = GROUP(transport, 4), two = GROUP(transport, 2);
    return group_run(&two, clip_in_any_mode, NULL) || group_run(&g, clip, NULL) || group_run(&g, clip_huge, NULL);
}

/* Rank r has 3 + r batches, then joins. */
static int uneven(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), size = coset_comm_size(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp *d = make(c, p, NULL);
    uint64_t shadowed = 99;
    if (!d)
        return 1;
    coset_ddp_no_sync(d, 1); /* two silent batches first */
    for (int k = 0; k < 2; k++) {
        bad = bad || group_want(c, coset_ddp_ready(d, p[0].id), COSET_OK, "silent ready") ||
              group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "silent finish");
    }
    coset_ddp_no_sync(d, 0);
    for (int step = 0; step < 3 + rank && !bad; step++) {
        unsigned absent = 0;
        for (int r = 0; r < size; r++)
            absent |= (unsigned)(step >= 3 + r) << r;
        for (size_t i = 0; i < PARAMS && !bad; i++) {
            write_grad(d, p, i, rank, step);
            bad = group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
        }
        bad = bad || group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        for (size_t i = 0; i < PARAMS && !bad; i++)
            bad = check_grad(c, d, p, i, step, absent);
    }
    bad = bad || group_want(c, coset_ddp_join(d, &shadowed), COSET_OK, "join");
    if (!bad && shadowed != (uint64_t)(size - 1 - rank))
        bad = group_fail(c, "joined %llu steps, not %d", (unsigned long long)shadowed, size - 1 - rank);
    coset_ddp_destroy(d);
    return bad;
}

/* A gradient of an earlier pass counts, also if the pass that communicates adds nothing to it: on rank 1 of parameter 1,
 * on no rank of parameter 2. */
static int accumulated(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p[3] = {{.id = 0, .count = 1, .dtype = COSET_F32, .ndim = 1},
                              {.id = 1, .count = 1, .dtype = COSET_F32, .ndim = 1},
                              {.id = 2, .count = 1, .dtype = COSET_F32, .ndim = 1}};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d;
    o.allow_unused = 1;
    if (group_want(c, coset_ddp_create(c, &o, p, 3, &d), COSET_OK, "create"))
        return 1;
    int bad = 0;
    for (int step = 0; step < 3 && !bad; step++) { /* the first one rebuilds; the last one has but one pass */
        for (uint64_t id = 0; id < 3; id++)
            *(float *)coset_ddp_grad(d, id) = 0;
        for (int last = step == 2; last < 2; last++) {
            bad |= group_want(c, coset_ddp_no_sync(d, !last), COSET_OK, "no_sync");
            for (uint64_t id = 0; id < (last ? 2 - (uint64_t)coset_comm_rank(c) : 3); id++) {
                *(float *)coset_ddp_grad(d, id) += 2;
                bad |= group_want(c, coset_ddp_ready(d, id), COSET_OK, "ready");
            }
            bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        }
        const float want[2][3] = {{4, 3, 2}, {2, 1, 0}};
        for (uint64_t id = 0; id < 3 && !bad; id++) {
            float got = *(float *)coset_ddp_grad(d, id);
            if (got != want[step == 2][id])
                bad = group_fail(c, "step %d, parameter %d: %g", step, (int)id, (double)got);
        }
    }
    coset_ddp_destroy(d);
    return bad;
}

/* Rank 0 has no batch at all: what it has not seen says nothing about the order. */
static int without_batches(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    coset_ddp *d = make(c, p, &o);
    int bad = !d, rank = coset_comm_rank(c);
    coset_ddp_report r = COSET_DDP_REPORT_INIT;
    for (int step = 0; step < 2 * rank && !bad; step++) {
        for (size_t i = PARAMS; i-- > 0;) {
            write_grad(d, p, i, rank, step);
            bad |= group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
        }
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "finish");
        for (size_t i = 0; i < PARAMS && !bad; i++)
            bad = check_grad(c, d, p, i, step, 1);
    }
    uint64_t steps = 0;
    bad = bad || group_want(c, coset_ddp_join(d, &steps), COSET_OK, "join") ||
          group_want(c, coset_ddp_last_report(d, &r), COSET_OK, "report");
    if (!bad && (r.steps != 2 || steps != (rank ? 0 : 2)))
        bad = group_fail(c, "%d steps reported, %d joined", (int)r.steps, (int)steps);
    if (!bad && (d->layout.bucket_of[PARAMS - 1] || d->layout.bucket_of[0] != d->layout.nbuckets - 1))
        bad = group_fail(c, "buckets are in the order of forward");
    coset_ddp_destroy(d);
    return bad;
}

static int run_uneven(const char *transport)
{
    group g = GROUP(transport, 4), two = GROUP(transport, 2);
    return group_run(&g, uneven, NULL) || group_run(&two, without_batches, NULL) || group_run(&two, accumulated, NULL);
}

static int state(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make(c, p, NULL), *e;
    if (!d || one_step(c, d, p, 0) || !(e = make(c, p, NULL)))
        return 1;
    size_t bytes = 0;
    int bad = group_want(c, coset_ddp_save(d, NULL, &bytes), COSET_OK, "size of the state");
    char *buf = malloc(bytes);
    size_t less = bytes - 1;
    bad = bad || group_want(c, coset_ddp_save(d, buf, &less), COSET_ERR_ARGUMENT, "too little room") ||
          group_want(c, coset_ddp_save(d, buf, &bytes), COSET_OK, "save") ||
          group_want(c, coset_ddp_load(e, buf, bytes - 1), COSET_ERR_CORRUPT, "a cut state") ||
          group_want(c, coset_ddp_load(e, buf, 3), COSET_ERR_CORRUPT, "three bytes");
    for (size_t i = 0; i < bytes && !bad; i++) {
        buf[i] ^= 1;
        bad = group_want(c, coset_ddp_load(e, buf, bytes), COSET_ERR_CORRUPT, "a damaged state");
        buf[i] ^= 1;
    }
    bad = bad || group_want(c, coset_ddp_load(e, buf, bytes), COSET_OK, "load");
    write_grad(e, p, 0, coset_comm_rank(c), 1);
    bad = bad || group_want(c, coset_ddp_ready(e, p[0].id), COSET_OK, "ready") ||
          group_want(c, coset_ddp_load(e, buf, bytes), COSET_ERR_ARGUMENT, "load in a step") ||
          group_want(c, coset_ddp_save(e, buf, &bytes), COSET_ERR_ARGUMENT, "save in a step");
    for (size_t i = 1; i < PARAMS && !bad; i++) {
        write_grad(e, p, i, coset_comm_rank(c), 1);
        bad = group_want(c, coset_ddp_ready(e, p[i].id), COSET_OK, "ready");
    }
    bad = bad || group_want(c, coset_ddp_finish(e, NULL), COSET_OK, coset_ddp_why(e));
    /* the order is known now: the first step of e moves nothing */
    for (int step = 1; step < 3 && !bad; step++)
        bad = one_step(c, e, p, step);
    free(buf);
    coset_ddp_destroy(d);
    coset_ddp_destroy(e);
    return bad;
}

/* A state brings the very buckets back: for a run that goes on bit for bit. Here the bucket of the f64 is complete before
 * that of the f32 which was ready earlier. */
static int same_buckets(coset_comm *c, void *arg)
{
    (void)arg;
    const coset_param p[3] = {{.id = 0, .count = 1024, .dtype = COSET_F32, .ndim = 1},
                              {.id = 1, .count = 2048, .dtype = COSET_F64, .ndim = 1},
                              {.id = 2, .count = 1024, .dtype = COSET_F32, .ndim = 1}};
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d[2];
    o.bucket_bytes = o.first_bytes = o.last_bytes = 8192;
    char buf[4096];
    size_t bytes = sizeof buf, buckets[2];
    for (int k = 0; k < 2; k++) {
        coset_ddp_report r = COSET_DDP_REPORT_INIT;
        if (group_want(c, coset_ddp_create(c, &o, p, 3, &d[k]), COSET_OK, "create") ||
            (k && group_want(c, coset_ddp_load(d[1], buf, bytes), COSET_OK, "load")))
            return 1;
        for (uint64_t id = 3; id-- > 0;)
            coset_ddp_ready(d[k], id);
        if (group_want(c, coset_ddp_finish(d[k], NULL), COSET_OK, "finish") ||
            group_want(c, coset_ddp_last_report(d[k], &r), COSET_OK, "report") ||
            (!k && group_want(c, coset_ddp_save(d[0], buf, &bytes), COSET_OK, "save")))
            return 1;
        buckets[k] = r.buckets;
    }
    coset_ddp_destroy(d[0]);
    coset_ddp_destroy(d[1]);
    return buckets[0] == buckets[1] ? 0 : group_fail(c, "%zu buckets before, %zu after", buckets[0], buckets[1]);
}

enum { ALIKE = 4 };

/* Buckets of equal size, so that their all-reduces fit together in any order. */
static coset_ddp *make_alike(coset_comm *c)
{
    coset_param p[ALIKE];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d = NULL;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    for (size_t i = 0; i < ALIKE; i++)
        p[i] = (coset_param){.id = i, .count = 5000, .dtype = COSET_F32, .ndim = 2};
    return group_want(c, coset_ddp_create(c, &o, p, ALIKE, &d), COSET_OK, "create") ? NULL : d;
}

static coset_status step_in_registered_order(coset_ddp *d)
{
    for (size_t i = 0; i < ALIKE; i++)
        coset_ddp_ready(d, i);
    return coset_ddp_finish(d, NULL);
}

/* A state that has come to one rank only is found by all. */
static int lopsided(coset_comm *c, void *arg)
{
    (void)arg;
    coset_ddp *before = make_alike(c), *after = make_alike(c);
    char buf[4096];
    size_t bytes = sizeof buf;
    if (!before || !after)
        return 1;
    int bad = group_want(c, step_in_registered_order(before), COSET_OK, "a step") ||
              group_want(c, coset_ddp_save(before, buf, &bytes), COSET_OK, "save");
    if (coset_comm_rank(c) == 1)
        bad = bad || group_want(c, coset_ddp_load(after, buf, bytes), COSET_OK, "load");
    bad = bad || group_want(c, step_in_registered_order(after), COSET_ERR_MISMATCH, "a step with half a state");
    if (!bad && !strstr(coset_ddp_why(after), "state"))
        bad = group_fail(c, "the text is '%s'", coset_ddp_why(after));
    coset_ddp_destroy(before);
    coset_ddp_destroy(after);
    return bad;
}

static int run_state(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, state, NULL) || group_run(&g, same_buckets, NULL) || group_run(&g, lopsided, NULL);
}

/* ---- a rank killed in the middle of a bucket ---- */

/* Gradients of parameters 0 to `until` (excluded), large enough for buckets to be moving. */
static void ready_some(coset_ddp *d, const coset_param *p, size_t until, int rank)
{
    for (size_t k = 0; k < until; k++) {
        float *g = coset_ddp_grad(d, p[k].id);
        for (size_t i = 0; i < p[k].count; i++)
            g[i] = sinf((float)(i + k) + (float)rank);
        coset_ddp_ready(d, p[k].id);
    }
}

static void be_killed(void)
{
    pid_t self = getpid(), killer = fork();
    if (killer == 0) {
        kill(self, SIGKILL);
        _exit(0);
    }
}

static int survive(coset_comm *c, void *arg)
{
    enum { N = 4 };
    coset_param p[N];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d;
    o.mean = arg;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    for (size_t i = 0; i < N; i++)
        p[i] = (coset_param){.id = i, .count = 1 << 18, .dtype = COSET_F32, .ndim = 2};
    if (group_want(c, coset_ddp_create(c, &o, p, N, &d), COSET_OK, "create"))
        return 1;
    ready_some(d, p, N, coset_comm_rank(c));
    if (group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "the first step"))
        return 1;
    if (coset_comm_rank(c) == 1) {
        be_killed(); /* at a moment of the kernel's choosing, but before the last gradient */
        ready_some(d, p, N - 1, 1);
        for (;;)
            pause();
    }
    ready_some(d, p, N, coset_comm_rank(c));
    int bad = group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_PEER, "finish with a dead rank");
    if (!bad && !strstr(coset_ddp_why(d), "rank 1"))
        bad = group_fail(c, "the text is '%s'", coset_ddp_why(d));
    bad = bad || group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_PEER, "a later finish");
    coset_ddp_destroy(d);
    return bad;
}

static void *give_up(void *ddp)
{
    coset_ddp_abort(ddp, "the watchdog barked");
    return NULL;
}

/* A thread of rank 0 aborts beside its finish, which waits for rank 1; all learn why, and their communicator goes on. */
static int aborted(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c), bad = 0;
    coset_param p[PARAMS];
    coset_ddp *d = make(c, p, NULL);
    pthread_t watchdog;
    if (!d)
        return 1;
    bad = group_want(c, coset_barrier(c), COSET_OK, "all have created"); /* else an abort may end another's create */
    for (size_t i = 0; i < PARAMS && rank != 1; i++) {
        write_grad(d, p, i, rank, 0);
        bad |= group_want(c, coset_ddp_ready(d, p[i].id), COSET_OK, "ready");
    }
    if (rank == 0)
        pthread_create(&watchdog, NULL, give_up, d);
    if (rank != 1)
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ABORTED, "finish beside an abort");
    if (rank == 0)
        pthread_join(watchdog, NULL);
    bad |= group_want(c, coset_barrier(c), COSET_OK, "the communicator after an abort of its reducer");
    if (rank == 1)
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ABORTED, "finish after an abort");
    if (!bad && !strstr(coset_ddp_why(d), "the watchdog barked"))
        bad = group_fail(c, "aborted because: %s", coset_ddp_why(d));
    coset_ddp_destroy(d);
    return bad;
}

static int run_abort(const char *transport)
{
    group g = GROUP(transport, 3);
    return group_run(&g, aborted, NULL);
}

static int run_death(const char *transport)
{
    if (!strcmp(transport, "threads"))
        return 0; /* threads die together */
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS;
    int bad = 0;
    for (int compressed = 0; compressed < 2; compressed++) {
        group g = GROUP(transport, 3);
        g.expect_dead = 1;
        g.seconds = 30;
        bad += abs(group_run(&g, survive, compressed ? &mean : NULL));
    }
    return bad;
}

/* ---- a forked child can neither use nor disturb the reducer ---- */

static int with_child(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make(c, p, NULL);
    int status, bad = !d || one_step(c, d, p, 0);
    pid_t child = bad ? -1 : fork();
    if (child == 0) {
        int refused = coset_ddp_ready(d, p[0].id) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_finish(d, NULL) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_join(d, NULL) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_save(d, NULL, &(size_t){0}) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_load(d, "", 1) == COSET_ERR_UNSUPPORTED;
        coset_ddp_destroy(d);
        _exit(!refused);
    }
    if (!bad && (waitpid(child, &status, 0) != child || status))
        bad = group_fail(c, "the child: %d", status);
    bad = bad || one_step(c, d, p, 1);
    coset_ddp_destroy(d);
    return bad;
}

static int run_fork(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, with_child, NULL);
}

/* ---- a rank with fewer steps ---- */

static int late(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make(c, p, NULL);
    int bad = !d || one_step(c, d, p, 0);
    if (!bad && coset_comm_rank(c) == 0) {
        d->comm->settings.late_ms = 300; /* of this rank and the reducer alone: the barrier below is patient */
        bad = group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_LATE, "finish of a step that rank 1 does not take");
        const char *why = coset_ddp_why(d);
        if (!strstr(why, "step 2: ") || !strstr(why, "rank 1") || !strstr(why, "coset_ddp_join"))
            bad |= group_fail(c, "the text is '%s'", why);
    }
    bad |= group_want(c, coset_barrier(c), COSET_OK, "barrier");
    coset_ddp_destroy(d);
    return bad;
}

static int run_late(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, late, NULL);
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
