/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"

#include <stdlib.h>

static void memory_is_aligned_and_zeroed(void **state)
{
    (void)state;
    for (size_t align = sizeof(void *); align <= 4096; align *= 2)
        for (size_t bytes = 0; bytes < 300; bytes += 7) {
            unsigned char *p = cst_alloc_aligned(align, bytes);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % align, 0);
            for (size_t i = 0; i < bytes; i++)
                assert_int_equal(p[i], 0);
            for (size_t i = 0; i < bytes; i++)
                p[i] = 0xa5; /* what the next allocation may find */
            free(p);
        }
}

static void impossible_sizes_give_null(void **state)
{
    (void)state;
    assert_null(cst_alloc_aligned(64, SIZE_MAX));
    assert_null(cst_alloc_aligned(64, SIZE_MAX - 63));
    assert_null(cst_alloc_aligned(64, SIZE_MAX / 2));
}

static void size_arithmetic_reports_overflow(void **state)
{
    (void)state;
    size_t out;
    assert_true(cst_size_mul(SIZE_MAX, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(cst_size_mul((size_t)1 << 32, ((size_t)1 << 32) - 1, &out));
    assert_false(cst_size_mul((size_t)1 << 32, (size_t)1 << 32, &out));
    assert_true(cst_size_mul(0, SIZE_MAX, &out));
    assert_true(out == 0);
    assert_true(cst_size_add(SIZE_MAX, 0, &out));
    assert_false(cst_size_add(SIZE_MAX, 1, &out));
}

static void rounding_up_reaches_the_next_multiple(void **state)
{
    (void)state;
    for (size_t unit = 1; unit <= 256; unit *= 2)
        for (size_t v = 0; v < 600; v++) {
            size_t r = cst_round_up(v, unit);
            assert_true(r % unit == 0 && r >= v && r - v < unit);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_zeroed),
        cmocka_unit_test(impossible_sizes_give_null),
        cmocka_unit_test(size_arithmetic_reports_overflow),
        cmocka_unit_test(rounding_up_reaches_the_next_multiple),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
