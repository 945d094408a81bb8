/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/env.h"

#include <stdlib.h>
#include <string.h>

static void numbers_are_parsed_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        long value;
    } cases[] = {
        {"0", 0, 0},    {"-5", 0, -5},  {"100", 0, 100}, {"101", -1, 0}, {"-6", -1, 0},
        {"", -1, 0},    {"5x", -1, 0},  {"x5", -1, 0},   {"5 ", -1, 0},  {"99999999999999999999", -1, 0},
        {"0x5", -1, 0}, {"5.0", -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        long v = 12345;
        assert_int_equal(cst_parse_long(cases[i].text, -5, 100, &v), cases[i].result);
        assert_int_equal(v, cases[i].result ? 12345 : cases[i].value);
    }
}

static void unset_and_empty_are_the_same(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    int v = 5;
    unsetenv("COSET_LATE_MS");
    assert_null(cst_env("COSET_LATE_MS"));
    assert_int_equal(cst_env_int("COSET_LATE_MS", 1, 10, &v, &why), COSET_OK);
    setenv("COSET_LATE_MS", "", 1);
    assert_null(cst_env("COSET_LATE_MS"));
    assert_int_equal(cst_env_int("COSET_LATE_MS", 1, 10, &v, &why), COSET_OK);
    assert_int_equal(v, 5);
}

static void a_value_that_means_nothing_is_named(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    int v = 5;
    setenv("COSET_LATE_MS", "soon", 1);
    assert_int_equal(cst_env_int("COSET_LATE_MS", 1, 600, &v, &why), COSET_ERR_ARGUMENT);
    assert_int_equal(v, 5);
    assert_int_equal(why.status, COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_LATE_MS=soon"));
    assert_non_null(strstr(why.text, "1 to 600"));
    setenv("COSET_LATE_MS", "600", 1);
    assert_int_equal(cst_env_int("COSET_LATE_MS", 1, 600, &v, NULL), COSET_OK);
    assert_int_equal(v, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_parsed_whole),
        cmocka_unit_test(unset_and_empty_are_the_same),
        cmocka_unit_test(a_value_that_means_nothing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
