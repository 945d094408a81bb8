/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget is met and used, whatever the common mean: Gaussian vectors with spread 1, mean of 0 to 1000 per coordinate.
 *
 * Confidence: one call estimates the excess from 2^20 coordinates, so its relative standard error is sqrt(2 / 2^20) =
 * 0.14 %; 0.05 is 30 of them above 0.048. Bits vary by less than 0.01.
 */
#include "mean/field.h"
#include "unit.h"

#include <stdio.h>

enum { DIM = 1 << 20 };

/* Bits of both phases, everything counted, that the exchange needs at budget 0.05 in the long run, by ranks, for a mean of 0,
 * 0.3, 1, and 10 spreads and more: simulated for 0 and 10, for those between the entropy of ideal codes and 0.06 for what
 * travels beside them. A first call may take 0.4 more. */
static const struct {
    int ranks;
    double bits[4];
} known[] = {{2, {5.49, 5.69, 6.74, 7.40}}, {8, {5.89, 6.32, 7.91, 9.18}}, {32, {5.96, 6.96, 8.91, 10.44}}};

static void average_and_check(int ranks, double mean, double bits)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    field *f = field_make(ranks, DIM, &options, 17);
    for (int call = 0; call < (ranks > 8 ? 1 : 2); call++) {
        field_fill(f, FIELD_GAUSS, mean, 1);
        field_result r = field_average(f);
        printf("%d ranks, mean %g, call %d: excess %.4f, %.3f bits, %d transfers\n", ranks, mean, call, r.excess,
               r.bits, (int)r.report.transfers);
        assert_true(r.identical);
        assert_true(r.excess <= 0.05 && r.excess >= 0.03);
        assert_true(r.bits <= bits + 0.4);
        assert_int_equal(r.report.exact, 0);
    }
    field_free(f);
}

static void flat_in_the_mean(void **state)
{
    (void)state;
    const double means[] = {0, 0.3, 1, 10, 1000};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        for (int m = 0; m < 5; m++)
            average_and_check(known[i].ranks, means[m], known[i].bits[m < 3 ? m : 3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_in_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
