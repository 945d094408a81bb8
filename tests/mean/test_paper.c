/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's protocols: star (Algorithm 3), tree (4), robust agreement (5, 6), known y and known sigma (Theorem 17).
 *
 * Confidence: squared errors are means over at least 10^4 coordinates (1.5 % one deviation); bounds are 10 %.
 */
#include "mean/field.h"
#include "../../tools/mean/local.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static field *make(const char *protocol, int ranks, size_t dim, double y, double sigma, double bits, int parameter)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    options.protocol = protocol;
    options.y = y;
    options.sigma = sigma;
    options.bits = bits;
    options.parameter = parameter;
    return field_make(ranks, dim, &options, 31);
}

/* What the step of star and tree is, from their rules. */
static double step_of(int ranks, size_t dim, double y, double q, double less)
{
    double n = 128;
    while (n < (double)dim)
        n *= 2;
    double infinity = dim < 128 ? y : y * fmin(1, sqrt(2 * log(2 * n * ranks * ranks / 1e-6) / n));
    return 2 * infinity / (q - less);
}

static double average_mse(field *f, int calls, double mean, double *bits)
{
    double mse = 0;
    *bits = 0;
    for (int call = 0; call < calls; call++) {
        field_fill(f, FIELD_GAUSS, mean, 1);
        field_result r = field_average(f);
        assert_true(r.identical);
        mse += r.mse / calls;
        *bits += r.bits / calls;
    }
    return mse;
}

/* Two rounds, error (s^2/12) ((n-1)/n^2 + 1), whatever the mean. Distances of Gaussian pairs: sqrt(2 d) at most 1.3 times. */
static void star_as_in_algorithm_3(void **state)
{
    (void)state;
    const struct {
        int ranks;
        size_t dim;
        int calls;
        double bits;
    } cases[] = {{8, 1024, 12, 4}, {8, 5000, 3, 4}, {16, 12, 300, 6}, {2, 129, 60, 3}, {5, 127, 60, 8}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        double y = sqrt(2.0 * (double)cases[i].dim) * (cases[i].dim < 200 ? 2.5 : 1.3), bits;
        field *f = make("star", cases[i].ranks, cases[i].dim, y, 0, cases[i].bits, 0);
        double n = cases[i].ranks, s = step_of(cases[i].ranks, cases[i].dim, y, exp2(cases[i].bits), 2);
        double expected = s * s / 12 * ((n - 1) / (n * n) + 1), mse = average_mse(f, cases[i].calls, 10, &bits);
        printf("star, %d ranks, d = %zu, q = 2^%g: error %.5f, expected %.5f\n", cases[i].ranks, cases[i].dim,
               cases[i].bits, mse, expected);
        assert_true(fabs(mse / expected - 1) < 0.1);
        field_free(f);
    }
}

static void star_takes_two_transfers(void **state)
{
    (void)state;
    field *f = make("star", 8, 4096, 120, 0, 4, 0);
    field_fill(f, FIELD_GAUSS, 1000, 1);
    field_result r = field_average(f);
    assert_int_equal(r.report.transfers, 2);
    field_free(f);
}

static coset_status try_once(field *f, coset_error *why)
{
    coset_span spans[16];
    const coset_span *each[16];
    for (int r = 0; r < f->ranks; r++) {
        spans[r] = (coset_span){1, f->x[r], f->out + f->dim * (size_t)r, f->dim};
        each[r] = &spans[r];
    }
    return tool_mean_local(f->means, f->ranks, each, 1, COSET_F32, NULL, why);
}

/* A promise that does not hold is noticed: no wrong mean. */
static void a_broken_promise_is_an_error(void **state)
{
    (void)state;
    const char *protocols[] = {"star", "tree"};
    for (int i = 0; i < 2; i++) {
        field *f =
            make(protocols[i], 5, 3000, 40, 0, i ? 0 : 4, 0); /* pairs are sqrt(6000) = 77 apart, and one far more */
        field_fill(f, FIELD_GAUSS, 3, 1);
        for (size_t k = 0; k < f->dim; k++)
            f->x[2][k] += 100;
        coset_error why = COSET_ERROR_INIT;
        assert_int_equal(try_once(f, &why), COSET_ERR_ARGUMENT);
        assert_non_null(strstr(why.text, "farther apart"));
        field_free(f);
    }
}

static void nan_is_refused(void **state)
{
    (void)state;
    field *f = make("star", 3, 500, 100, 0, 4, 0);
    field_fill(f, FIELD_GAUSS, 1, 1);
    f->x[1][7] = NAN;
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(try_once(f, &why), COSET_ERR_ARGUMENT);
    field_free(f);
}

/* Rotating adds up: what would leave f32's range on the way there or back is refused, too, and never comes out as NaN. */
static void too_large_to_rotate_is_refused(void **state)
{
    (void)state;
    const char *protocols[] = {"star", "tree", "robust", "sublinear"};
    for (int i = 0; i < 8; i++) {
        float large = i < 4 ? 3e38f : 1e36f;
        field *f = make(protocols[i % 4], 4, 5000, i % 4 == 2 ? 0 : large, i % 4 == 2 ? large : 0, 0, 0);
        for (int r = 0; r < 4; r++)
            for (size_t k = 0; k < f->dim; k++)
                f->x[r][k] = large * (float)(1 - 0.001 * field_uniform(f));
        coset_error why = COSET_ERROR_INIT;
        coset_status status = try_once(f, &why);
        assert_true(i < 4 ? status == COSET_ERR_ARGUMENT : status == COSET_OK || status == COSET_ERR_ARGUMENT);
        for (size_t k = 0; status == COSET_OK && k < f->dim; k++)
            assert_true(isfinite(f->out[k]));
        field_free(f);
    }
}

/* Known sigma: y = 2 sigma sqrt(alpha n); never fails here, since Gaussian vectors are closer than Chebyshev's bound. */
static void star_with_sigma(void **state)
{
    (void)state;
    double bits, sigma = sqrt(2000.0), y = 2 * sigma * sqrt(10 * 4.0);
    field *f = make("star", 4, 2000, 0, sigma, 8, 0);
    double s = step_of(4, 2000, y, 256, 2), mse = average_mse(f, 6, 5, &bits), expected = s * s / 12 * (3.0 / 16 + 1);
    printf("star, sigma: error %.5f, expected %.5f\n", mse, expected);
    assert_true(fabs(mse / expected - 1) < 0.1);
    field_free(f);
}

/* All leaves: error at most that of the levels, (s^2/12) (1 + sum over levels); few messages per rank. */
static void tree_as_in_algorithm_4(void **state)
{
    (void)state;
    const int ranks[] = {2, 3, 5, 8, 13};
    for (unsigned i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        double bits, y = sqrt(2.0 * 2000) * 1.4;
        field *f = make("tree", ranks[i], 2000, y, 0, 0, 0);
        int m = ranks[i] < 4 ? 4 : ranks[i], depth = 0;
        for (int node = 2 * ranks[i] - 1; node > 1; node /= 2)
            depth++;
        double s = step_of(ranks[i], 2000, y, (double)m * m * m, depth + 3), mse = average_mse(f, 6, 100, &bits);
        printf("tree, %d ranks: error %.3g, at most %.3g\n", ranks[i], mse, s * s / 12 * 2);
        assert_true(mse <= s * s / 12 * 2 * 1.05); /* each level's error is halved: 1 + 1/2 + ... */
        assert_true(mse >= s * s / 12 * 0.9);      /* the root's own */
        field_free(f);
    }
}

/* m = 4 leaves of 12 ranks: the mean of a random subset. Sampling variance (1/4)(1 - 4/12) per coordinate. */
static void tree_with_fewer_leaves(void **state)
{
    (void)state;
    double bits;
    field *f = make("tree", 12, 3000, sqrt(2.0 * 3000) * 1.4, 0, 10, 4);
    double mse = average_mse(f, 40, 100, &bits), sampling = 1.0 / 4 * (1 - 4.0 / 12);
    printf("tree, 4 of 12 leaves: error %.4f, sampling %.4f\n", mse, sampling);
    assert_true(fabs(mse / sampling - 1) < 0.1);
    field_free(f);
}

/* No distance known: step from sigma and q, digits as they are needed. The error is that of the step and, if q < n, of sampling. */
static void robust_as_in_algorithm_6(void **state)
{
    (void)state;
    const struct {
        int ranks;
        double sigma_factor;
    } cases[] = {{8, 1}, {8, 0.05}, {3, 0.001}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        double bits, sigma = sqrt(3000.0) * cases[i].sigma_factor, q = 16, n = cases[i].ranks;
        field *f = make("robust", cases[i].ranks, 3000, 0, sigma, 4, 0);
        double mse = average_mse(f, 6, 20, &bits), step2 = pow(sigma / q, 2) / 3000;
        double expected = step2 * ((n - 1) / (n * n) + 1);
        printf("robust, sigma %g of the true one: error %.3g, expected %.3g\n", cases[i].sigma_factor, mse, expected);
        assert_true(fabs(mse / expected - 1) < 0.1);
        field_free(f);
    }
}

static void robust_with_one_rank_far_away(void **state)
{
    (void)state;
    field *f = make("robust", 5, 3000, 0, sqrt(3000.0), 4, 0);
    for (int call = 0; call < 5; call++) {
        field_fill(f, FIELD_GAUSS, 1, 1);
        for (size_t k = 0; k < f->dim; k++)
            f->x[call][k] += 20000;
        field_result r = field_average(f);
        printf("robust, one far away: error %.3g, %d pieces repaired, %d transfers\n", r.mse, (int)r.report.repaired,
               (int)r.report.transfers);
        assert_true(r.identical);
        assert_true(r.mse < 2 * pow(sqrt(3000.0) / 16, 2) / 3000);
    }
    field_free(f);
}

/* Half a bit per coordinate: the step settles 2 y' / s of the coordinates by parities; the mean's step is larger, for its own
 * error. Unbiased: over calls the errors average out. */
static void sublinear(void **state)
{
    (void)state;
    const double bits[] = {0.5, 0.75, 1};
    for (int i = 0; i < 3; i++) {
        enum { DIM = 4096, RANKS = 8, CALLS = 12 };
        double y = sqrt(2.0 * DIM) * 1.1, used, infinity = step_of(RANKS, DIM, y, 4, 2);
        field *f = make("sublinear", RANKS, DIM, y, 0, bits[i], 0);
        double mse = average_mse(f, CALLS, 50, &used), rows = floor((bits[i] * DIM - 128) / 8 / 8) * 8, share = 0;
        while (512 * (share + 1e-5) + 6 * sqrt(512 * (share + 1e-5) * (1 - share)) + 24 <= rows)
            share += 1e-5;
        double s1 = 2 * infinity / share, s2 = 2 * (infinity + 5.5 * s1 * sqrt(7.0 / 12) / 8) / share;
        double expected = s1 * s1 / 12 * 7 / 64 + s2 * s2 / 12;
        printf("sublinear, %g bits: error %.3f, expected %.3f, %.3f bits per phase\n", bits[i], mse, expected,
               used / 2);
        assert_true(fabs(mse / expected - 1) < 0.1);
        assert_true(used / 2 <= bits[i] + 0.25); /* and two headers */
        field_free(f);
    }
}

static void options_that_make_no_sense(void **state)
{
    (void)state;
    const struct {
        const char *protocol;
        double y, sigma, bits;
        int parameter;
        const char *codec;
    } bad[] = {
        {"star", 0, 0, 4, 0, NULL},     {"star", 1, 0, 1, 0, NULL},    {"star", 1, 0, 0, 70000, NULL},
        {"tree", 0, 0, 0, 0, NULL},     {"tree", 1, 0, 0, 50, NULL},   {"tree", 1, 0, 2, 8, NULL},
        {"robust", 1, 0, 0, 0, NULL},   {"star", -1, 0, 4, 0, NULL},   {"star", 1, 0, 4, 0, "none"},
        {"star", 1, 0, 4, 0, "eden"},   {"nothing", 1, 1, 4, 0, NULL}, {"homomorphic", 0, 0, 4, 0, NULL},
        {"robust", 0, NAN, 0, 0, NULL}, {"tree", 1, 0, 0, 1, NULL},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
        o.protocol = bad[i].protocol;
        o.y = bad[i].y;
        o.sigma = bad[i].sigma;
        o.bits = bad[i].bits;
        o.parameter = bad[i].parameter;
        o.codec = bad[i].codec;
        coset_mean *mean = NULL;
        coset_error why = COSET_ERROR_INIT;
        assert_int_equal(coset_mean_create(0, 4, &o, &mean, &why), COSET_ERR_ARGUMENT);
        assert_true(why.text[0] != 0);
        assert_null(mean);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(star_as_in_algorithm_3),
        cmocka_unit_test(star_takes_two_transfers),
        cmocka_unit_test(a_broken_promise_is_an_error),
        cmocka_unit_test(nan_is_refused),
        cmocka_unit_test(too_large_to_rotate_is_refused),
        cmocka_unit_test(star_with_sigma),
        cmocka_unit_test(tree_as_in_algorithm_4),
        cmocka_unit_test(tree_with_fewer_leaves),
        cmocka_unit_test(robust_as_in_algorithm_6),
        cmocka_unit_test(robust_with_one_rank_far_away),
        cmocka_unit_test(sublinear),
        cmocka_unit_test(options_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
