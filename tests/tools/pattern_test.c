/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "bench_allreduce/pattern.h"

#include <stdlib.h>
#include <string.h>

static void f16_and_bf16_are_the_published_encodings(void **state)
{
    (void)state;
    /* the first element of rank r is r - 40 */
    static const struct {
        int rank;
        uint16_t f16, bf16;
    } known[] = {{0, 0xd100, 0xc220}, {8, 0xd000, 0xc200}, {24, 0xcc00, 0xc180}, {31, 0xc880, 0xc110}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint16_t half;
        pattern p = pattern_of_rank(COSET_F16, COSET_SUM, known[i].rank);
        memcpy(&half, p.values, sizeof half);
        assert_int_equal(half, known[i].f16);
        p = pattern_of_rank(COSET_BF16, COSET_SUM, known[i].rank);
        memcpy(&half, p.values, sizeof half);
        assert_int_equal(half, known[i].bf16);
    }
    uint16_t zero = 1;
    pattern p = pattern_of_rank(COSET_F16, COSET_SUM, 0);
    memcpy(&zero, p.values + 40 * sizeof zero, sizeof zero);
    assert_int_equal(zero, 0);
}

static void f32_results_are_those_of_plain_arithmetic(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 64; ranks++) {
        pattern sum = pattern_of_result(COSET_F32, COSET_SUM, ranks),
                avg = pattern_of_result(COSET_F32, COSET_AVG, ranks);
        pattern low = pattern_of_result(COSET_F32, COSET_MIN, ranks),
                high = pattern_of_result(COSET_F32, COSET_MAX, ranks);
        static float all[PATTERN_PERIOD], least[PATTERN_PERIOD], most[PATTERN_PERIOD];
        for (int r = 0; r < ranks; r++) {
            pattern p = pattern_of_rank(COSET_F32, COSET_SUM, r);
            for (int i = 0; i < PATTERN_PERIOD; i++) {
                float v;
                memcpy(&v, p.values + i * 4, sizeof v);
                all[i] = r ? all[i] + v : v;
                least[i] = r && least[i] < v ? least[i] : v;
                most[i] = r && most[i] > v ? most[i] : v;
            }
        }
        assert_memory_equal(all, sum.values, sizeof all);
        assert_memory_equal(least, low.values, sizeof least);
        assert_memory_equal(most, high.values, sizeof most);
        for (int i = 0; i < PATTERN_PERIOD; i++)
            all[i] /= (float)ranks;
        assert_memory_equal(all, avg.values, sizeof all);
    }
}

static void integers_wrap_before_they_are_divided(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 64; ranks++) {
        pattern avg = pattern_of_result(COSET_I8, COSET_AVG, ranks),
                prod = pattern_of_result(COSET_U8, COSET_PROD, ranks);
        int8_t sums[PATTERN_PERIOD] = {0};
        uint8_t products[PATTERN_PERIOD];
        memset(products, 1, sizeof products);
        for (int r = 0; r < ranks; r++) {
            pattern a = pattern_of_rank(COSET_I8, COSET_AVG, r), b = pattern_of_rank(COSET_U8, COSET_PROD, r);
            for (int i = 0; i < PATTERN_PERIOD; i++) {
                sums[i] = (int8_t)(sums[i] + (int8_t)a.values[i]);
                products[i] = (uint8_t)(products[i] * b.values[i]);
            }
        }
        for (int i = 0; i < PATTERN_PERIOD; i++) {
            assert_int_equal((int8_t)avg.values[i], sums[i] / ranks);
            assert_int_equal(prod.values[i], products[i]);
        }
    }
}

static void a_changed_bit_is_counted(void **state)
{
    (void)state;
    enum { COUNT = 3 * PATTERN_PERIOD + 17 };
    for (int dtype = 0; dtype < COSET_DTYPE_COUNT; dtype++) {
        size_t element = coset_dtype_size((coset_dtype)dtype);
        pattern p = pattern_of_rank((coset_dtype)dtype, COSET_SUM, 3);
        unsigned char *v = malloc(COUNT * element);
        pattern_write(&p, v, COUNT);
        assert_int_equal(pattern_wrong(&p, v, COUNT), 0);
        v[0] ^= 1;
        v[(COUNT - 1) * element + element - 1] ^= 0x80;
        assert_int_equal(pattern_wrong(&p, v, COUNT), 2);
        free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_and_bf16_are_the_published_encodings),
        cmocka_unit_test(f32_results_are_those_of_plain_arithmetic),
        cmocka_unit_test(integers_wrap_before_they_are_divided),
        cmocka_unit_test(a_changed_bit_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
