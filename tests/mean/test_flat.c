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

/* Bits of both phases, everything counted, that the exchange needs at budget 0.05 in the long run, by ranks: mean 0 and
 * mean of 10 spreads and more; a first call may take 0.4 more. */
static const struct {
    int ranks;
    double bits_centred, bits_far;
} known[] = {{2, 5.49, 7.40}, {8, 5.89, 9.18}, {32, 5.96, 10.44}};

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

static void centred(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        average_and_check(known[i].ranks, 0, known[i].bits_centred);
}

static void far_from_the_origin(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        for (double mean = 10; mean <= 1000; mean *= 100)
            average_and_check(known[i].ranks, mean, known[i].bits_far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(centred),
        cmocka_unit_test(far_from_the_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
