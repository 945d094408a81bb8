/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs that break quantisers: right answers, the same bits on all ranks, never a silent failure.
 *
 * Confidence: with m coordinates the excess has a relative standard error of about sqrt(2 / m) for Gaussian errors; bounds
 * leave five of them and more.
 */
#include "mean/field.h"
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static field *make(int ranks, size_t dim)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    return field_make(ranks, dim, &options, 99);
}

static field_result average(field *f, const char *what)
{
    field_result r = field_average(f);
    printf("%-28s excess %.4f bits %.2f transfers %d repaired %d corrected %d refined %d exact %d\n", what, r.excess,
           r.bits, (int)r.report.transfers, (int)r.report.repaired, (int)r.report.corrected, (int)r.report.refined,
           (int)r.report.exact);
    assert_true(r.identical);
    return r;
}

static double exact_mean(const field *f, size_t i)
{
    double mean = 0;
    for (int r = 0; r < f->ranks; r++)
        mean += (double)f->x[r][i] / f->ranks;
    return mean;
}

static double largest_error(const field *f)
{
    double most = 0;
    for (size_t i = 0; i < f->dim; i++)
        most = fmax(most, fabs((double)f->out[i] - exact_mean(f, i)));
    return most;
}

static void heavy_tails(void **state)
{
    (void)state;
    field *f = make(8, 1 << 17);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_T3, 0.5, 1);
        field_result r = average(f, "Student t, 3 degrees");
        assert_true(r.excess > 0.03 && r.excess <= 0.055);
    }
    field_free(f);
}

/* One coordinate in every block is a hundred spreads high, on one rank or on all: rotation spreads it. Those on all are a mean
 * of 100 / 64 spreads per coordinate, so they are compared with a Gaussian one of that. */
static void spikes_cost_little(void **state)
{
    (void)state;
    double bits[4];
    for (int kind = 0; kind < 4; kind++) {
        field *f = make(8, 1 << 17);
        for (int call = 0; call < 2; call++) {
            field_fill(f, FIELD_GAUSS, kind == 3 ? 100.0 / 64 : 0, 1);
            for (size_t i = 1234; i < f->dim; i += 4096)
                for (int r = 0; r < (kind == 1 ? 1 : kind == 2 ? 8 : 0); r++)
                    f->x[r][i] += 100;
            const char *names[] = {"no spikes", "spikes on one rank", "spikes on all ranks", "a mean instead"};
            field_result r = average(f, names[kind]);
            assert_true(r.excess <= 0.055);
            bits[kind] = r.bits;
        }
        field_free(f);
    }
    printf("spikes: %.2f %.2f %.2f %.2f bits\n", bits[0], bits[1], bits[2], bits[3]);
    assert_true(bits[1] <= bits[0] + 0.5);
    assert_true(bits[2] <= bits[3] + 0.5);
}

static void one_rank_far_away(void **state)
{
    (void)state;
    field *f = make(8, 1 << 16);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 0, 1);
        for (size_t i = 0; i < f->dim; i++)
            f->x[3][i] += 1000;
        field_result r = average(f, "one rank far away");
        assert_true(r.excess <= 0.055);
    }
    field_free(f);
}

static void all_ranks_equal(void **state)
{
    (void)state;
    field *f = make(4, 20000);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 1, 0);
        average(f, "all ranks equal");
        assert_true(largest_error(f) < 4e-6); /* steps of 2^-20 of the rms */
    }
    field_free(f);
}

static void zeros_stay_zero(void **state)
{
    (void)state;
    field *f = make(4, 20000);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 0, call == 1 ? 1 : 0);
        field_result r = average(f, call == 1 ? "noise after zeros" : "zeros");
        assert_true(call == 1 ? r.excess <= 0.055 : largest_error(f) == 0);
    }
    field_free(f);
}

static void tiny_and_huge(void **state)
{
    (void)state;
    const struct {
        double scale;
        const char *what;
    } cases[] = {{1e-42, "denormals"}, {1e-30, "1e-30"}, {1e30, "1e30"}, {FLT_MAX / 6, "near FLT_MAX"}};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        field *f = make(4, 1 << 15);
        for (int call = 0; call < 2; call++) {
            field_fill(f, FIELD_GAUSS, cases[c].scale, cases[c].scale);
            for (size_t i = 0; i < f->dim; i++)
                for (int r = 0; r < 4; r++)
                    f->x[r][i] = fmaxf(fminf(f->x[r][i], FLT_MAX), -FLT_MAX);
            field_result r = average(f, cases[c].what);
            /* denormals of 1e-42 are whole multiples of 1.4e-45: rounding the result adds (1.4e-45)^2 / 12 */
            assert_true(r.excess > 0.03 && r.excess <= 0.055);
            for (size_t i = 0; i < f->dim; i++)
                assert_true(isfinite(f->out[i]));
        }
        field_free(f);
    }
}

/* A block keeps its scale whatever its neighbours are like: one that has sunk to denormals, or that lies beside one near the
 * largest number, must neither end the call nor come out as zeros. */
static void neighbours_of_other_magnitudes(void **state)
{
    (void)state;
    const struct {
        double loud, quiet;
    } cases[] = {{1, 1e-30}, {1, 1e-38}, {1, 1e-42}, {FLT_MAX / 8, 1}, {FLT_MAX / 8, 1e-41}};
    for (unsigned c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        field *f = make(3, 4 * 4096);
        double loud = cases[c / 2].loud, quiet = cases[c / 2].quiet, error = 0, spread = 0;
        for (int call = 0; call < 3; call++) { /* the first one's step is that of the whole tensor */
            field_fill_part(f, FIELD_GAUSS, 0, loud, 0, 4096);
            field_fill_part(f, FIELD_GAUSS, 3 * quiet, quiet, 4096, 3 * 4096);
            for (int r = 0; c % 2 && r < 2; r++) /* one rank alone has anything there */
                memset(f->x[r] + 4096, 0, 3 * 4096 * sizeof(float));
            field_result r = average(f, "neighbours");
            assert_true(isfinite(r.mse));
        }
        for (size_t i = 2 * 4096; i < f->dim; i++) {
            double off = ((double)f->out[i] - exact_mean(f, i)) / quiet;
            error += off * off;
            for (int r = 0; r < 3; r++)
                spread += pow((f->x[r][i] - exact_mean(f, i)) / quiet, 2) / 2;
        }
        /* multiples of 1.4e-45 of 1e-42: rounding adds 6e-8 */
        printf("%g beside %g: excess %.4f\n", quiet, loud, error / (spread / 3));
        assert_true(error < 0.06 * spread / 3);
        field_free(f);
    }
}

/* Neighbours at one owner share a step, which may be beyond f32 in a quiet one's units; then it is refined. */
static void steps_far_above_a_block(void **state)
{
    (void)state;
    field *f = make(2, 4 * 4096);
    for (int call = 0; call < 5; call++) {
        double spread = call < 2 ? 1e10 : call == 2 ? 1e7 : 1e4, loud = 0, error = 0;
        for (size_t b = 0; b < 4; b++)
            field_fill_part(f, FIELD_GAUSS, b % 2 ? 1e-30 : 1e10, b % 2 ? 1e-32 : spread, 4096 * b, 4096);
        field_result r = average(f, "a step far above a block");
        assert_true(call != 2 || r.report.refined > 0);
        for (size_t i = 0; i < 4096; i++) {
            error += pow(f->out[i] - exact_mean(f, i), 2);
            loud += pow((double)f->x[0][i] - exact_mean(f, i), 2); /* of two: a half of s^2 each */
        }
        assert_true(error < 0.12 * loud); /* two blocks at an owner, one of which has no spread to speak of */
    }
    field_free(f);
}

/* What a tensor's exact first call has told of it holds at any scale. */
static void small_tensors_at_any_scale(void **state)
{
    (void)state;
    const double scales[] = {1, 1e-20, 1e20, 1e-37};
    for (unsigned c = 0; c < sizeof scales / sizeof *scales; c++) {
        field *f = make(2, 512);
        for (int call = 0; call < 2; call++) {
            field_fill(f, FIELD_GAUSS, 10 * scales[c], scales[c]);
            field_result r = average(f, "small tensor");
            assert_true(fabs(r.report.spread2 / r.spread2 - 1) < 0.05);
            assert_int_equal(r.report.transfers, 2);
        }
        field_free(f);
    }
}

static void far_mean_small_spread(void **state)
{
    (void)state;
    field *f = make(8, 1 << 15);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 1000, 1e-3);
        field_result r = average(f, "mean 1000, spread 1e-3");
        /* inputs are multiples of 6e-5 around 1000; so is the output: its rounding adds 0.3 % of s^2/n */
        assert_true(r.excess > 0.03 && r.excess <= 0.055);
    }
    field_free(f);
}

static void any_length(void **state)
{
    (void)state;
    const size_t lengths[] = {1,    2,    3,    7,    127,  128,  129,  255,  1000, 1023,
                              1024, 1025, 2047, 2100, 4095, 4096, 4097, 6000, 12289};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int ranks = 2; ranks <= 5; ranks += 3) {
            field *f = make(ranks, lengths[i]);
            double excess = 0;
            enum { CALLS = 12 };
            for (int call = 0; call < CALLS; call++) {
                field_fill(f, FIELD_GAUSS, call % 2 ? 0 : 5, 1);
                field_result r = field_average(f);
                assert_true(r.identical);
                excess += r.mse / CALLS * ranks; /* spread 1 */
            }
            printf("%d ranks, %zu coordinates: excess %.4f\n", ranks, lengths[i], excess);
            assert_true(excess <= 0.05 * (1 + 6 * sqrt(2.0 / (CALLS * (double)lengths[i]))) + 0.01);
            field_free(f);
        }
}

static void nan_and_infinity_arrive(void **state)
{
    (void)state;
    field *f = make(4, 30000);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 1, 1);
        f->x[1][5] = NAN;
        f->x[2][9000] = INFINITY;
        f->x[0][9001] = INFINITY;
        f->x[3][9001] = -INFINITY;
        f->x[3][29999] = -INFINITY;
        field_result r = average(f, "NaN and infinity");
        assert_int_equal(r.report.exact, 3);
        assert_true(isnan(f->out[5]));
        assert_true(f->out[9000] == INFINITY);
        assert_true(isnan(f->out[9001]));
        assert_true(f->out[29999] == -INFINITY);
        double error = 0;
        size_t finite = 0;
        for (size_t i = 0; i < f->dim; i++) {
            double mean = exact_mean(f, i);
            if (!isfinite(mean))
                continue;
            assert_true(isfinite(f->out[i]));
            error += pow((double)f->out[i] - mean, 2);
            finite++;
        }
        assert_int_equal(finite, f->dim - 4);
        assert_true(error / (double)finite * 4 <= 0.055);
    }
    field_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heavy_tails),
        cmocka_unit_test(spikes_cost_little),
        cmocka_unit_test(one_rank_far_away),
        cmocka_unit_test(all_ranks_equal),
        cmocka_unit_test(zeros_stay_zero),
        cmocka_unit_test(tiny_and_huge),
        cmocka_unit_test(neighbours_of_other_magnitudes),
        cmocka_unit_test(steps_far_above_a_block),
        cmocka_unit_test(small_tensors_at_any_scale),
        cmocka_unit_test(far_mean_small_spread),
        cmocka_unit_test(any_length),
        cmocka_unit_test(nan_and_infinity_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
