/* SPDX-License-Identifier: Apache-2.0 */
/* Names, preconditions, and the table: every kind, size and count finds an algorithm that a builder exists for. */
#include "coll/build.h"
#include "unit.h"
#include <string.h>

static cst_plan allreduce(int size, size_t count, coset_dtype dtype)
{
    return (cst_plan){.call = {.kind = CST_ALLREDUCE, .dtype = dtype, .op = COSET_SUM, .count = count}, .size = size};
}

static void names_go_there_and_back(void **state)
{
    (void)state;
    char list[200] = "";
    for (int i = 0; i < CST_ALGO_COUNT; i++) {
        assert_int_equal(cst_algo_parse(cst_algo_name(i)), i);
        strcat(strcat(list, i ? ", " : ""), cst_algo_name(i));
    }
    assert_string_equal(list, cst_algo_list());
    assert_int_equal(cst_algo_parse(""), -1);
    assert_int_equal(cst_algo_parse("Ring"), -1);
    assert_int_equal(cst_algo_parse("ringo"), -1);
    assert_string_equal(cst_algo_name(-1), "?");
    assert_string_equal(cst_algo_name(CST_ALGO_COUNT), "?");
}

static void preconditions_say_what_can(void **state)
{
    (void)state;
    cst_plan plan = allreduce(4, 100, COSET_F32);
    for (int i = 0; i < CST_ALGO_COUNT; i++)
        assert_int_equal(cst_algo_check(i, &plan, NULL), i == CST_ALGO_HIER ? COSET_ERR_UNSUPPORTED : COSET_OK);
    plan.hosts = true;
    assert_int_equal(cst_algo_check(CST_ALGO_HIER, &plan, NULL), COSET_OK);
    plan.rank_order = true;
    for (int i = 0; i < CST_ALGO_COUNT; i++) {
        bool can = i == CST_ALGO_AUTO || i == CST_ALGO_DIRECT || i == CST_ALGO_FLAT || i == CST_ALGO_NAIVE;
        coset_error why = COSET_ERROR_INIT;
        assert_int_equal(cst_algo_check(i, &plan, &why), can ? COSET_OK : COSET_ERR_UNSUPPORTED);
        if (can)
            continue;
        assert_int_equal(why.status, COSET_ERR_UNSUPPORTED);
        assert_non_null(strstr(why.text, cst_algo_name(i)));
        assert_non_null(strstr(why.text, "auto"));
    }
}

static void what_is_asked_for_is_taken(void **state)
{
    (void)state;
    cst_plan plan = allreduce(8, 1000, COSET_F32);
    for (int i = CST_ALGO_FLAT; i < CST_ALGO_COUNT; i++)
        assert_int_equal(cst_select(&plan, i), i);
    plan.call.kind = CST_BARRIER; /* the name is that of an all-reduce algorithm */
    assert_int_equal(cst_select(&plan, CST_ALGO_RING), CST_ALGO_RD);
}

/* Between hosts one sender at a time to each; within one a round costs more than the bytes. */
static void several_hosts_have_rows_of_their_own(void **state)
{
    (void)state;
    cst_plan plan = allreduce(4, 1 << 20, COSET_F32);
    assert_int_equal(cst_select(&plan, CST_ALGO_AUTO), CST_ALGO_DIRECT);
    plan.network = true;
    assert_int_equal(cst_select(&plan, CST_ALGO_AUTO), CST_ALGO_RING);
    plan.rank_order = true; /* a promise counts for more than the time */
    assert_int_equal(cst_select(&plan, CST_ALGO_AUTO), CST_ALGO_DIRECT);
    plan = allreduce(4, 1, COSET_BF16);
    plan.network = true;
    assert_int_equal(cst_select(&plan, CST_ALGO_AUTO), CST_ALGO_FLAT); /* 16 bits on the wire */
}

static bool in_rank_order(cst_algo algo)
{
    return algo == CST_ALGO_DIRECT || algo == CST_ALGO_FLAT || algo == CST_ALGO_NAIVE;
}

static void auto_keeps_promises_and_has_a_builder(void **state)
{
    (void)state;
    static const coset_dtype types[] = {COSET_F32, COSET_BF16, COSET_U8};
    cst_schedule *s = cst_schedule_create();
    for (int kind = CST_ALLREDUCE; kind <= CST_RECV; kind++) {
        for (int size = 1; size <= 200; size += 1 + size / 3) {
            for (size_t count = 0; count < 100000; count = 3 * count + 1) {
                for (int i = 0; i < 6; i++) {
                    cst_plan plan = allreduce(size, count, types[i % 3]);
                    plan.call.kind = kind;
                    plan.call.root = size > 1;
                    plan.rank_order = i / 3;
                    cst_algo algo = cst_select(&plan, CST_ALGO_AUTO);
                    bool sums = kind == CST_ALLREDUCE || kind == CST_REDUCE_SCATTER || kind == CST_REDUCE;
                    if (sums && (plan.rank_order || types[i % 3] == COSET_BF16))
                        assert_true(in_rank_order(algo));
                    assert_int_equal(cst_build(s, &plan, algo, NULL), COSET_OK);
                }
            }
        }
    }
    cst_schedule_destroy(s);
}

static void what_has_no_builder_is_unsupported(void **state)
{
    (void)state;
    cst_plan plan = allreduce(4, 100, COSET_F32);
    cst_schedule *s = cst_schedule_create();
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_build(s, &plan, CST_ALGO_HIER, &why), COSET_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "hier"));
    assert_int_equal(cst_build(s, &plan, CST_ALGO_AUTO, NULL), COSET_ERR_UNSUPPORTED);
    cst_schedule_destroy(s);
}

static void short_vectors_take_few_rounds_and_long_ones_few_bytes(void **state)
{
    (void)state;
    for (int network = 0; network < 2; network++)
        for (int size = 2; size <= 64; size++) {
            cst_plan tiny = allreduce(size, 1, COSET_F32), large = allreduce(size, (size_t)1 << 24, COSET_F32);
            tiny.network = large.network = network;
            cst_algo short_algo = cst_select(&tiny, CST_ALGO_AUTO), long_algo = cst_select(&large, CST_ALGO_AUTO);
            assert_true(short_algo == CST_ALGO_FLAT || short_algo == CST_ALGO_RD);
            assert_true(long_algo != CST_ALGO_FLAT && long_algo != CST_ALGO_RD && long_algo != CST_ALGO_NAIVE);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_there_and_back),
        cmocka_unit_test(preconditions_say_what_can),
        cmocka_unit_test(what_is_asked_for_is_taken),
        cmocka_unit_test(several_hosts_have_rows_of_their_own),
        cmocka_unit_test(auto_keeps_promises_and_has_a_builder),
        cmocka_unit_test(what_has_no_builder_is_unsupported),
        cmocka_unit_test(short_vectors_take_few_rounds_and_long_ones_few_bytes),
    };
    return cmocka_run_group_tests_name("coll select", tests, NULL, NULL);
}
