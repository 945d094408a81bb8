/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that have the same vector: the mean is that vector, bit for bit, for next to nothing; and what happens when they
 * only nearly have it, or no longer, or only from now on. */
#include "mean/field.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIM = 5 * 4096 + 1000 };

static const double next_to_nothing = 1.6; /* bits of both phases per coordinate: headers, checks of small blocks */

static field *alike(int ranks, double mean)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    field *f = field_make(ranks, DIM, &options, 5);
    field_fill(f, FIELD_GAUSS, mean, 0);
    return f;
}

static bool is_exact(const field *f)
{
    return memcmp(f->out, f->x[0], DIM * sizeof(float)) == 0;
}

/* From the first call on; the vector changes from call to call, together. */
static void exact_and_cheap(void **state)
{
    (void)state;
    const int ranks[] = {2, 3, 5};
    const double scale[] = {1, 1e-42, 1e30}; /* denormals and large numbers too */
    for (int i = 0; i < 9; i++) {
        field *f = alike(ranks[i / 3], scale[i % 3]);
        for (int call = 0; call < 4; call++) {
            field_result r = field_average(f);
            assert_true(r.identical);
            assert_true(is_exact(f));
            assert_true(r.bits < (call == 0 ? 3 : next_to_nothing)); /* a sketch is worth it for larger tensors */
            assert_int_equal(r.report.transfers, call == 0 ? 4 : 2);
            assert_int_equal(r.report.exact, 0);
            field_fill(f, FIELD_GAUSS, scale[i % 3], 0);
        }
        field_free(f);
    }
}

/* One rank differs in one element, by a little or by a sign of zero: seen, and its block's mean is right. */
static void one_element_differs(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        field *f = alike(3, 1);
        field_average(f);
        if (what == 0)
            f->x[2][4097] = nextafterf(f->x[2][4097], 10);
        else if (what == 1)
            f->x[2][4097] = 100;
        else
            f->x[0][4097] = 0, f->x[1][4097] = 0, f->x[2][4097] = -0.0f;
        field_result r;
        for (int call = 0; call < 6; call++) {
            r = field_average(f);
            assert_true(r.identical);
            double mean = ((double)f->x[0][4097] + (double)f->x[1][4097] + (double)f->x[2][4097]) / 3;
            double tolerance = call == 0 ? 1e-7 : what == 1 ? 2 : 1e-5;
            assert_true(fabs((double)f->out[4097] - mean) <= tolerance * (1 + fabs(mean)));
            /* the other blocks stay what they were */
            assert_memory_equal(f->out, f->x[0], 4096 * sizeof(float));
            assert_memory_equal(f->out + 8192, f->x[0] + 8192, (DIM - 8192) * sizeof(float));
            if (call == 0)
                assert_int_equal(r.report.exact, 1);
        }
        printf("case %d: %d transfers in the last call, %.3f bits\n", what, (int)r.report.transfers, r.bits);
        assert_int_equal(r.report.transfers, 2); /* nobody asks again and again */
        field_free(f);
    }
}

/* Same, different, same again. */
static void comes_and_goes(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks += 2) {
        field *f = alike(ranks, 10);
        int exact_after = -1;
        for (int call = 0; call < 14; call++) {
            bool same = call < 2 || call >= 8;
            field_fill(f, FIELD_GAUSS, 10, same ? 0 : 1);
            field_result r = field_average(f);
            assert_true(r.identical);
            if (!same)
                assert_true(r.excess < 0.055);
            else if (call < 2)
                assert_true(is_exact(f));
            else if (is_exact(f) && exact_after < 0)
                exact_after = call - 8;
            else
                assert_true(exact_after < 0 || is_exact(f)); /* once found, kept */
            assert_true(!same || r.mse <= 0.05 / ranks * 1.2);
        }
        printf("%d ranks: exact %d calls after they agree again\n", ranks, exact_after);
        assert_in_range(exact_after, 0, 3);
        field_free(f);
    }
}

/* Zeros had no room in the frames: what comes instead, the same on all ranks, is heard a round later, and has to be made finer
 * then as it would have been before. */
static void alike_after_zeros(void **state)
{
    (void)state;
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    field *f = field_make(4, 20000, &o, 5);
    field_fill(f, FIELD_GAUSS, 0, 0);
    field_average(f);
    field_fill(f, FIELD_GAUSS, 1, 0);
    field_result r = field_average(f);
    printf("after zeros: rms error %g, %d transfers\n", sqrt(r.mse), (int)r.report.transfers);
    assert_true(r.identical && r.mse < 1e-5);
    field_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_and_cheap),
        cmocka_unit_test(one_element_differs),
        cmocka_unit_test(comes_and_goes),
        cmocka_unit_test(alike_after_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
