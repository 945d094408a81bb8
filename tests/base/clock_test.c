/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/clock.h"

static void time_never_runs_backwards(void **state)
{
    (void)state;
    uint64_t before = cst_now_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = cst_now_ns();
        assert_true(now >= before);
        before = now;
    }
}

static void a_deadline_counts_down(void **state)
{
    (void)state;
    cst_deadline far = cst_deadline_in(1000000);
    int left = cst_deadline_left(far, 2000000);
    assert_in_range(left, 900000, 1000000);
    assert_int_equal(cst_deadline_left(far, 50), 50);
    assert_false(cst_deadline_passed(far));
}

static void a_deadline_of_zero_has_passed(void **state)
{
    (void)state;
    cst_deadline now = cst_deadline_in(0);
    assert_true(cst_deadline_passed(now));
    assert_int_equal(cst_deadline_left(now, 100), 0);
}

static void a_started_millisecond_counts_whole(void **state)
{
    (void)state;
    /* a poll() of 0 ms in the last part of a millisecond would be a busy loop */
    assert_int_equal(cst_deadline_left(cst_now_ns() + 400000000, 1000), 400);
    assert_true(cst_deadline_left(cst_now_ns() + 500000000 + 1, 1000) >= 500);
}

static void negative_is_never(void **state)
{
    (void)state;
    assert_true(cst_deadline_in(-1) == CST_NEVER);
    assert_false(cst_deadline_passed(CST_NEVER));
    assert_int_equal(cst_deadline_left(CST_NEVER, 77), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_never_runs_backwards),
        cmocka_unit_test(a_deadline_counts_down),
        cmocka_unit_test(a_deadline_of_zero_has_passed),
        cmocka_unit_test(a_started_millisecond_counts_whole),
        cmocka_unit_test(negative_is_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
