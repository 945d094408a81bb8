/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compressed mean where ranks share hosts, on ranks of one machine that pretend to be on several.
 * usage: hier_mean TRANSPORT
 */
#include "comm/group.h"

#include "kernels/convert/convert.h"

#include <coset_mean.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 200000, CALLS = 8, MOST_SPANS = 8 };
static const double budget = 0.05;

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* A common vector, and a deviation of each rank, both Gaussian with variance 1. */
static float draw(uint64_t *common, uint64_t *own)
{
    double a = sqrt(-2 * log(uniform(common))) * cos(6.283185307179586 * uniform(common));
    double b = sqrt(-2 * log(uniform(own))) * cos(6.283185307179586 * uniform(own));
    return (float)(a + b);
}

static void fill(float *x, size_t n, int rank)
{
    uint64_t common = 12345, own = (uint64_t)rank * 7919 + 99;
    for (size_t i = 0; i < n; i++)
        x[i] = draw(&common, &own);
}

typedef struct {
    const char *codec, *protocol;
    int apart; /* an algorithm was asked for that keeps the ranks' vectors apart */
} kind;

static int same_everywhere(coset_comm *c, const void *x, size_t bytes, const char *what)
{
    int64_t sum = 0, most, least;
    const unsigned char *b = x;
    for (size_t i = 0; i < bytes; i++)
        sum = (int64_t)((uint64_t)sum * 1099511628211u + b[i]);
    if (coset_allreduce(&sum, &most, 1, COSET_I64, COSET_MAX, c) ||
        coset_allreduce(&sum, &least, 1, COSET_I64, COSET_MIN, c))
        return group_fail(c, "%s: comparing", what);
    return most == least ? 0 : group_fail(c, "%s: ranks differ", what);
}

/* Tensors of several sizes, some smaller than a block, cut out of one vector. */
static size_t cut(coset_span *spans, float *send, float *recv)
{
    static const size_t sizes[MOST_SPANS] = {0, 1, 4095, 4097, 100000, 5, 20480, 60001};
    size_t at = 0;
    for (size_t i = 0; i < MOST_SPANS; i++) {
        spans[i] = (coset_span){100 + i, send + at, recv + at, sizes[i]};
        at += sizes[i];
    }
    return at;
}

/* The excess over the sampling variance is what was asked for, call after call, and averages out: no bias. */
static int accurate(coset_comm *c, coset_mean *mean)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c), bad = 0;
    float *x = malloc(MOST * sizeof *x), *y = malloc(MOST * sizeof *y);
    double *exact = malloc(MOST * sizeof *exact), *average = calloc(MOST, sizeof *average);
    coset_span spans[MOST_SPANS];
    if (!x || !y || !exact || !average)
        return group_fail(c, "memory");
    size_t n = cut(spans, x, y);
    fill(x, n, rank);
    for (size_t i = 0; i < n; i++)
        exact[i] = x[i];
    bad |= group_want(c, coset_allreduce(exact, exact, n, COSET_F64, COSET_AVG, c), COSET_OK, "exact");
    for (int call = 0; call < CALLS && !bad; call++) {
        coset_mean_report report = COSET_MEAN_REPORT_INIT;
        bad |= group_want(c, coset_mean_allreduce(mean, spans, MOST_SPANS, COSET_F32, c, &report), COSET_OK, "mean");
        double error = 0;
        for (size_t i = 0; i < n; i++) {
            error += (y[i] - exact[i]) * (y[i] - exact[i]);
            average[i] += y[i] / CALLS;
        }
        /* n coordinates make the relative error of this figure below 1 %; sampling variance per coordinate: 1 / size */
        double excess = error / (double)n * size;
        if (!bad && excess > 1.2 * budget)
            bad |= group_fail(c, "call %d: excess %g", call, excess);
        if (!bad && report.coords != n)
            bad |= group_fail(c, "%llu coordinates", (unsigned long long)report.coords);
        bad = bad || same_everywhere(c, y, n * sizeof *y, "f32");
    }
    double left = 0;
    for (size_t i = 0; i < n; i++)
        left += (average[i] - exact[i]) * (average[i] - exact[i]);
    if (!bad && left / (double)n * size > 1.5 * budget / CALLS)
        bad |= group_fail(c, "the mean of %d calls is off by %g: bias", CALLS, left / (double)n * size);
    free(x);
    free(y);
    free(exact);
    free(average);
    return bad;
}

/* Two hosts: less than half of what an exact all-reduce sends between them, which is 32 bits per coordinate each way. */
static int fewer_bits(coset_comm *c, coset_mean *mean)
{
    coset_mean_report report = COSET_MEAN_REPORT_INIT;
    float *x = malloc(MOST * sizeof *x);
    if (!x)
        return group_fail(c, "memory");
    int bad = 0;
    for (int call = 0; call < 2; call++) {
        fill(x, MOST, coset_comm_rank(c));
        coset_span span = {1, x, x, MOST};
        bad |= group_want(c, coset_mean_allreduce(mean, &span, 1, COSET_F32, c, &report), COSET_OK, "bits");
    }
    double bits = (double)report.bits_sent, all = 0;
    bad |= group_want(c, coset_allreduce(&bits, &all, 1, COSET_F64, COSET_SUM, c), COSET_OK, "sum");
    if (!bad && all > 0.5 * 2 * 32.0 * MOST)
        bad |= group_fail(c, "%g bits per coordinate between the hosts", all / MOST);
    free(x);
    return bad;
}

/* NaN and infinity arrive as what they are, everywhere. */
static int not_finite(coset_comm *c, coset_mean *mean)
{
    enum { N = 30000 };
    float *x = malloc(N * sizeof *x);
    if (!x)
        return 1;
    fill(x, N, coset_comm_rank(c));
    if (coset_comm_rank(c) == coset_comm_size(c) - 1) {
        x[17] = NAN;
        x[20000] = INFINITY;
    }
    coset_span span = {2, x, x, N};
    int bad = group_want(c, coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL), COSET_OK, "not finite");
    for (size_t i = 0; i < N && !bad; i++)
        if (i == 17 ? !isnan(x[i]) : i == 20000 ? !isinf(x[i]) : !isfinite(x[i]))
            bad |= group_fail(c, "element %zu is %g", i, (double)x[i]);
    bad = bad || same_everywhere(c, x, N * sizeof *x, "not finite");
    free(x);
    return bad;
}

static int other_types(coset_comm *c, coset_mean *mean)
{
    enum { N = 20000 };
    int rank = coset_comm_rank(c), size = coset_comm_size(c), bad = 0;
    float *x = malloc(N * sizeof *x);
    double *d = malloc(N * sizeof *d), *exact = malloc(N * sizeof *exact);
    uint16_t *h = malloc(N * sizeof *h);
    if (!x || !d || !exact || !h)
        return 1;
    fill(x, N, rank);
    cst_narrow(COSET_F16, h, x, N, 1);
    for (size_t i = 0; i < N; i++)
        exact[i] = d[i] = x[i];
    bad |= group_want(c, coset_allreduce(exact, exact, N, COSET_F64, COSET_AVG, c), COSET_OK, "exact");
    coset_span wide = {3, d, d, N}, half = {4, h, h, N};
    bad |= group_want(c, coset_mean_allreduce(mean, &wide, 1, COSET_F64, c, NULL), COSET_OK, "f64");
    bad |= group_want(c, coset_mean_allreduce(mean, &half, 1, COSET_F16, c, NULL), COSET_OK, "f16");
    cst_widen(COSET_F16, x, h, N);
    double wide_error = 0, half_error = 0;
    for (size_t i = 0; i < N; i++) {
        wide_error += (d[i] - exact[i]) * (d[i] - exact[i]);
        half_error += (x[i] - exact[i]) * (x[i] - exact[i]);
    }
    if (!bad && (wide_error * size > 1.3 * budget * N || half_error * size > 1.3 * budget * N))
        bad |= group_fail(c, "excess %g for f64, %g for f16", wide_error / N * size, half_error / N * size);
    bad = bad || same_everywhere(c, d, N * sizeof *d, "f64") || same_everywhere(c, h, N * sizeof *h, "f16");
    free(x);
    free(d);
    free(exact);
    free(h);
    return bad;
}

/* A mean that has loaded what another saved goes on as that one: the same bits, call after call. */
static int goes_on(coset_comm *c, coset_mean *mean, const coset_mean_options *o)
{
    enum { N = 30000 };
    float *x = malloc(3 * N * sizeof *x), *one = x + N, *two = one + N;
    size_t bytes = 0;
    coset_mean *other = NULL;
    int bad = !x || coset_mean_create(coset_comm_rank(c), coset_comm_size(c), o, &other, NULL);
    bad = bad || group_want(c, coset_mean_save(mean, NULL, &bytes), COSET_OK, "size of the state");
    void *saved = malloc(bytes + 1);
    bad = bad || !saved || group_want(c, coset_mean_save(mean, saved, &bytes), COSET_OK, "save") ||
          group_want(c, coset_mean_load(other, saved, bytes), COSET_OK, "load");
    for (int call = 0; call < 3 && !bad; call++) {
        fill(x, N, coset_comm_rank(c) + call);
        coset_span first = {2, x, one, N}, second = {2, x, two, N};
        bad = group_want(c, coset_mean_allreduce(mean, &first, 1, COSET_F32, c, NULL), COSET_OK, "unstopped") ||
              group_want(c, coset_mean_allreduce(other, &second, 1, COSET_F32, c, NULL), COSET_OK, "loaded");
        if (!bad && memcmp(one, two, N * sizeof *x) != 0)
            bad = group_fail(c, "call %d after loading has other bits", call);
    }
    coset_mean_destroy(other);
    free(saved);
    free(x);
    return bad;
}

static int body(coset_comm *c, void *arg)
{
    const kind *k = arg;
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    coset_mean *mean;
    o.codec = k->codec;
    o.protocol = k->protocol;
    o.error_budget = k->protocol ? 0 : budget;
    o.bits = k->protocol ? 8 : 0;
    o.seed = 7;
    if (group_want(c, coset_mean_create(coset_comm_rank(c), coset_comm_size(c), &o, &mean, NULL), COSET_OK, "create"))
        return 1;
    int bad = accurate(c, mean) || (!k->apart && fewer_bits(c, mean)) || other_types(c, mean) || not_finite(c, mean) ||
              goes_on(c, mean, &o);
    coset_mean_destroy(mean);
    return bad;
}

/* Wrong arguments on all ranks: an error, not a hang. */
static int wrong(coset_comm *c, void *arg)
{
    (void)arg;
    float x[10] = {0};
    coset_mean *mean;
    if (coset_mean_create(coset_comm_rank(c), coset_comm_size(c), NULL, &mean, NULL))
        return group_fail(c, "create");
    coset_span span = {5, x, x + 1, 5};
    int bad = group_want(c, coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL), COSET_ERR_ARGUMENT, "overlap");
    coset_mean_destroy(mean);
    return bad;
}

/* Ranks that disagree about the tensors: every rank hears of it. */
static int disagree(coset_comm *c, void *arg)
{
    (void)arg;
    static float x[9000];
    coset_mean *mean;
    if (coset_mean_create(coset_comm_rank(c), coset_comm_size(c), NULL, &mean, NULL))
        return 1;
    coset_span span = {5, x, x, coset_comm_rank(c) == 1 ? 8999 : 9000};
    int bad = group_want(c, coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL), COSET_ERR_MISMATCH, "disagree");
    coset_mean_destroy(mean);
    return bad;
}

/* A rank dies in the middle of means: every other rank hears who it was. */
static int death(coset_comm *c, void *arg)
{
    (void)arg;
    static float x[100000];
    coset_mean *mean;
    coset_error e = COSET_ERROR_INIT;
    if (coset_mean_create(coset_comm_rank(c), coset_comm_size(c), NULL, &mean, NULL))
        return group_fail(c, "create");
    coset_span span = {5, x, x, 100000};
    coset_status status = coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL);
    if (coset_comm_rank(c) == 2)
        raise(SIGKILL);
    while (status == COSET_OK)
        status = coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL);
    coset_last_error(c, &e);
    coset_mean_destroy(mean);
    return status == COSET_ERR_PEER && e.peer == 2
               ? 0
               : group_fail(c, "a death gave %s, rank %d: %s", coset_strerror(status), e.peer, e.text);
}

int main(int argc, char **argv)
{
    static const kind kinds[] = {{NULL, NULL, 0}, {"lattice:e8", NULL, 0}, {NULL, "homomorphic", 0}};
    int bad = 0;
    if (argc < 2)
        return 2;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        group g = GROUP(argv[1], k ? 4 : 6);
        g.per_host = k ? 2 : 3;
        int failed = group_run(&g, body, (void *)&kinds[k]);
        if (failed)
            fprintf(stderr, "FAILED: kind %zu\n", k);
        bad += failed;
    }
    kind apart = {NULL, NULL, 1};
    group a = GROUP(argv[1], 4);
    a.per_host = 2;
    a.options.algorithm = "direct";
    bad += group_run(&a, body, &apart);
    group uneven = GROUP(argv[1], 3);
    uneven.per_host = 2;
    bad += group_run(&uneven, body, &apart);
    a.options.algorithm = NULL;
    bad += group_run(&a, wrong, NULL);
    bad += group_run(&a, disagree, NULL);
    a.expect_dead = 1;
    a.seconds = 20;
    bad += abs(group_run(&a, death, NULL));
    return bad != 0;
}
