/* SPDX-License-Identifier: Apache-2.0 */
/* Portable logarithms against libm, and exact where they promise to be. */
#include "codec/portable.h"
#include "unit.h"

#include <float.h>
#include <math.h>

static void log2_matches_libm(void **state)
{
    (void)state;
    for (double x = 1e-320; x < 1e300; x *= 1.37) {
        double want = log2(x), got = cst_log2(x);
        assert_true(fabs(got - want) <= 1e-13 * fmax(1, fabs(want)));
    }
    assert_true(cst_log2(0) == -2000 && cst_log2(-1) == -2000);
    for (int e = -1074; e <= 1023; e++)
        assert_true(cst_log2(ldexp(1, e)) == e);
}

static void exp2_matches_libm(void **state)
{
    (void)state;
    for (double x = -1021.9; x < 1023; x += 0.173) {
        double want = exp2(x);
        assert_true(fabs(cst_exp2(x) - want) <= 1e-13 * want);
    }
    for (int e = -1022; e <= 1023; e++)
        assert_true(cst_exp2(e) == ldexp(1, e));
    assert_true(cst_exp2(-1200) == 0);
    assert_true(cst_exp2(5000) == ldexp(1, 1023));
}

static void scaling_is_ldexp_without_double_rounding_above_denormals(void **state)
{
    (void)state;
    const double values[] = {1, -1.2345678901234567, 0, DBL_MAX, DBL_MIN};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        for (int e = -2100; e <= 2100; e += 7) {
            double want = ldexp(values[i], e), got = cst_scale2(values[i], e);
            if (fabs(want) >= DBL_MIN || want == 0 || isinf(want))
                assert_true(got == want || (fabs(want) < DBL_MIN && fabs(got) < DBL_MIN));
        }
    assert_true(isinf(cst_scale2(1, 1000000)));
    assert_true(cst_scale2(1, -1000000) == 0);
}

static void exponents(void **state)
{
    (void)state;
    for (double x = 5e-324; x < 1e308; x *= 1.9)
        assert_int_equal(cst_exponent(x), ilogb(x));
    assert_int_equal(cst_exponent(-3), 1);
    assert_int_equal(cst_exponent(0), -2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log2_matches_libm),
        cmocka_unit_test(exp2_matches_libm),
        cmocka_unit_test(scaling_is_ldexp_without_double_rounding_above_denormals),
        cmocka_unit_test(exponents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
