/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes that add up, 8 bits, 8 ranks: excess at most 0.5 % with E8 at any mean and with Z at means up to 1, repairs rare,
 * repairs right when the statistics jump, exact blocks.
 *
 * Confidence: 2^17 coordinates: the excess is known to 0.4 % of itself (one deviation).
 */
#include "mean/field.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

enum { RANKS = 8, DIM = 1 << 17, BLOCKS = DIM / 4096 };

static field *make(const char *codec, size_t dim)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    options.protocol = "homomorphic";
    options.codec = codec;
    return field_make(RANKS, dim, &options, 5);
}

static void check(const char *codec, double mean)
{
    field *f = make(codec, DIM);
    unsigned long repaired = 0;
    enum { CALLS = 4 };
    for (int call = 0; call < CALLS; call++) {
        field_fill(f, FIELD_GAUSS, mean, 1);
        field_result r = field_average(f);
        printf("%s, mean %g: excess %.5f (predicted %.5f), %.2f bits, %d repaired, %d corrected\n", codec, mean,
               r.excess, r.report.predicted_excess, r.bits, (int)r.report.repaired, (int)r.report.corrected);
        assert_true(r.identical);
        assert_true(r.excess <= 0.005);
        assert_true(fabs(r.report.predicted_excess / r.excess - 1) < 0.1);
        assert_true(r.bits <= 16.4); /* 8 and 8, and 0.2 for checks and votes; the first call's sketch */
        repaired += r.report.repaired;
    }
    assert_true((double)repaired < 0.01 * CALLS * BLOCKS);
    field_free(f);
}

static void e8_at_any_mean(void **state)
{
    (void)state;
    check("lattice:e8", 0);
    check("lattice:e8", 1);
    check("lattice:e8", 10);
    check("lattice:e8", 1000);
}

static void z_at_small_means(void **state)
{
    (void)state;
    check("lattice:z", 0);
    check("lattice:z", 1);
}

static void a_jump_is_repaired(void **state)
{
    (void)state;
    field *f = make("lattice", 40000);
    for (int call = 0; call < 6; call++) {
        double spread = call == 2 || call == 3 ? 10 : 1;
        field_fill(f, FIELD_GAUSS, 10, spread);
        field_result r = field_average(f);
        printf("spread %g: excess %.5f, %d repaired\n", spread, r.excess, (int)r.report.repaired);
        assert_true(r.identical);
        assert_true((r.report.repaired > 0) == (call == 2));
        /* a coarser step from before the spread fell: 100 times the error, for one call */
        assert_true(r.excess <= (call == 4 ? 0.5 : 0.005));
    }
    field_free(f);
}

static void exact_and_zero_blocks(void **state)
{
    (void)state;
    field *f = make("lattice", 20000);
    for (int call = 0; call < 3; call++) {
        field_fill(f, FIELD_GAUSS, 1, 1);
        for (size_t i = 8192; i < 12288; i++)
            for (int u = 0; u < RANKS; u++)
                f->x[u][i] = call < 2 ? 0 : f->x[u][i]; /* zero, and then not */
        f->x[2][7] = NAN;
        f->x[5][19999] = -INFINITY;
        field_result r = field_average(f);
        assert_true(r.identical);
        assert_true(isnan(f->out[7]) && f->out[19999] == -INFINITY);
        double error = 0;
        for (size_t i = 0; i < f->dim; i++) {
            double mean = 0;
            for (int u = 0; u < RANKS; u++)
                mean += (double)f->x[u][i] / RANKS;
            if (!isfinite(mean))
                continue;
            if (call < 2 && i >= 8192 && i < 12288)
                assert_true(f->out[i] == 0);
            error += pow((double)f->out[i] - mean, 2);
        }
        assert_true(error / 20000 * RANKS <= 0.006);
    }
    field_free(f);
}

static void any_length(void **state)
{
    (void)state;
    const size_t lengths[] = {1, 5, 100, 129, 1025, 2100, 4097};
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        field *f = make("lattice", lengths[i]);
        double error = 0;
        enum { CALLS = 8 };
        for (int call = 0; call < CALLS; call++) {
            field_fill(f, FIELD_GAUSS, 3, 1);
            field_result r = field_average(f);
            assert_true(r.identical);
            error += r.mse / CALLS * RANKS;
        }
        assert_true(error <= 0.01 * (1 + 8 * sqrt(2.0 / (CALLS * (double)lengths[i]))));
        field_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e8_at_any_mean),     cmocka_unit_test(z_at_small_means),
        cmocka_unit_test(a_jump_is_repaired), cmocka_unit_test(exact_and_zero_blocks),
        cmocka_unit_test(any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
