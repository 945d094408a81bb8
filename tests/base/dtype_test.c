/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/dtype.h"

#include <limits.h>

static const struct {
    const char *name;
    size_t size;
    bool is_float, is_half;
} expected[] = {
    {"f32", 4, true, false},  {"f64", 8, true, false},  {"f16", 2, true, true},   {"bf16", 2, true, true},
    {"i8", 1, false, false},  {"u8", 1, false, false},  {"i32", 4, false, false}, {"u32", 4, false, false},
    {"i64", 8, false, false}, {"u64", 8, false, false},
};

static void every_dtype_has_its_size_and_name(void **state)
{
    (void)state;
    assert_int_equal(sizeof expected / sizeof *expected, COSET_DTYPE_COUNT);
    for (int i = 0; i < COSET_DTYPE_COUNT; i++) {
        assert_true(cst_dtype_valid(i));
        assert_int_equal(coset_dtype_size((coset_dtype)i), expected[i].size);
        assert_string_equal(coset_dtype_name((coset_dtype)i), expected[i].name);
        assert_int_equal(cst_dtype_is_float((coset_dtype)i), expected[i].is_float);
        assert_int_equal(cst_dtype_is_half((coset_dtype)i), expected[i].is_half);
    }
}

static void every_op_has_its_name(void **state)
{
    (void)state;
    static const char *const names[COSET_OP_COUNT] = {"sum", "avg", "min", "max", "prod"};
    for (int i = 0; i < COSET_OP_COUNT; i++) {
        assert_true(cst_op_valid(i));
        assert_string_equal(coset_op_name((coset_op)i), names[i]);
    }
}

static void values_that_are_none_are_told_apart(void **state)
{
    (void)state;
    const int none[] = {-1, INT_MIN, INT_MAX, COSET_DTYPE_COUNT};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(cst_dtype_valid(none[i]));
        assert_false(cst_op_valid(none[i]));
        assert_int_equal(coset_dtype_size((coset_dtype)none[i]), 0);
        assert_string_equal(coset_dtype_name((coset_dtype)none[i]), "?");
        assert_string_equal(coset_op_name((coset_op)none[i]), "?");
    }
    assert_false(cst_op_valid(COSET_OP_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_has_its_size_and_name),
        cmocka_unit_test(every_op_has_its_name),
        cmocka_unit_test(values_that_are_none_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
