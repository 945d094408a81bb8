/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model's facts against the schedules that run, and what is told of the choice. */
#include "coll/cost.h"

#include "coll/build.h"
#include "coll/tuning.h"
#include "unit.h"

#include <limits.h>
#include <string.h>

static const cst_algo algos[] = {CST_ALGO_FLAT, CST_ALGO_DIRECT, CST_ALGO_RING,
                                 CST_ALGO_RD,   CST_ALGO_RHD,    CST_ALGO_TREE};
enum { ALGOS = sizeof algos / sizeof *algos };

typedef struct {
    double messages, sent, added;
} counted;

static counted count_schedule(cst_schedule *s, const cst_plan *plan, cst_algo algo)
{
    counted c = {0, 0, 0};
    assert_int_equal(cst_build(s, plan, algo, NULL), COSET_OK);
    for (int i = 0; i < s->steps; i++) {
        const cst_step *step = &s->step[i];
        c.messages += step->kind == CST_STEP_SEND;
        c.sent += step->kind == CST_STEP_SEND ? (double)cst_step_bytes(s, step) : 0;
        c.added += step->kind == CST_STEP_REDUCE ? (double)cst_step_bytes(s, step) * step->sources : 0;
    }
    return c;
}

static double more(double a, double b)
{
    return a > b ? a : b;
}

/* The rank with most of each: bytes exactly; messages and operands as far as the model rounds them. */
static void facts_are_those_of_the_schedules(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 1000, 65536, 300000};
    cst_schedule *s = cst_schedule_create();
    for (int a = 0; a < ALGOS; a++)
        for (int n = 2; n <= 17; n++)
            for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
                cst_plan plan = {
                    .call = {.kind = CST_ALLREDUCE, .dtype = COSET_F32, .op = COSET_SUM, .count = counts[k]},
                    .size = n,
                    .segment_bytes = 64 << 10};
                cst_cost cost = cst_cost_of(&plan, algos[a]);
                counted most = {0, 0, 0};
                for (plan.rank = 0; plan.rank < n; plan.rank++) {
                    counted one = count_schedule(s, &plan, algos[a]);
                    most = (counted){more(most.messages, one.messages), more(most.sent, one.sent),
                                     more(most.added, one.added)};
                }
                assert_true(cost.sent == most.sent);
                assert_true(cost.messages >= 0.4 * most.messages && cost.messages <= 2 * most.messages + 2);
                if (counts[k] >= 1000)
                    assert_true(cost.added >= 0.6 * most.added && cost.added <= 1.7 * most.added);
            }
    cst_schedule_destroy(s);
}

/* A price that is raised makes nothing cheaper, and what has more of it more so. */
static void prices_count(void **state)
{
    (void)state;
    cst_plan plan = {.call = {.kind = CST_ALLREDUCE, .dtype = COSET_F32, .count = 1 << 20}, .size = 8};
    cst_prices low = {"", 1, 1, 1, 1, 1}, slow_rounds = {"", 1000, 1, 1, 1, 1}, slow_wire = {"", 1, 1, 1000, 1, 1};
    cst_cost ring = cst_cost_of(&plan, CST_ALGO_RING), flat = cst_cost_of(&plan, CST_ALGO_FLAT);
    assert_true(cst_cost_us(&ring, &slow_rounds) > cst_cost_us(&ring, &low));
    assert_true(cst_cost_us(&ring, &slow_rounds) - cst_cost_us(&ring, &low) >
                cst_cost_us(&flat, &slow_rounds) - cst_cost_us(&flat, &low));
    assert_true(cst_cost_us(&flat, &slow_wire) - cst_cost_us(&flat, &low) >
                cst_cost_us(&ring, &slow_wire) - cst_cost_us(&ring, &low));
}

/* Whatever the ranks and the size, a row is found, and rows of fewer ranks come first. */
static void table_is_whole(void **state)
{
    (void)state;
    for (int network = 0; network < 2; network++) {
        int last_ranks = 0;
        size_t last_bytes = SIZE_MAX;
        for (int i = 0; i < cst_tuned_row_count; i++) {
            const cst_tuned_row *r = &cst_tuned_rows[i];
            if (r->network != network)
                continue;
            assert_true(r->ranks >= last_ranks);
            /* sizes grow until all are taken; then may come rows for calls that some algorithms cannot serve */
            assert_true(r->ranks == last_ranks && last_bytes < SIZE_MAX ? r->bytes > last_bytes
                                                                        : last_bytes == SIZE_MAX);
            last_ranks = r->ranks;
            last_bytes = r->bytes;
        }
        assert_int_equal(last_ranks, INT_MAX);
        assert_true(last_bytes == SIZE_MAX);
    }
}

static void what_is_told_is_what_is_done(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 64; ranks *= 2)
        for (size_t bytes = 4; bytes <= (size_t)64 << 20; bytes *= 4) {
            coset_tuning t = {.struct_size = sizeof t};
            cst_plan plan = {.call = {.kind = CST_ALLREDUCE, .dtype = COSET_F32, .count = bytes / 4}, .size = ranks};
            assert_int_equal(coset_tuning_of("tcp", ranks, 1, bytes, &t), COSET_OK);
            assert_string_equal(t.chosen, cst_algo_name(cst_select(&plan, CST_ALGO_AUTO)));
            plan.network = true;
            assert_int_equal(coset_tuning_of("mpi", ranks, ranks, bytes, &t), COSET_OK);
            assert_string_equal(t.chosen, cst_algo_name(cst_select(&plan, CST_ALGO_AUTO)));
            int found = 0;
            for (int i = 0; i < t.rows; i++) {
                assert_true(t.row[i].us > 0);
                found += !strcmp(t.row[i].algorithm, t.chosen);
            }
            assert_int_equal(found, 1);
        }
}

static void wrong_questions_are_refused(void **state)
{
    (void)state;
    coset_tuning t = {.struct_size = sizeof t}, unset = {0};
    assert_int_equal(coset_tuning_of("tcp", 1, 1, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("tcp", 1025, 1, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("tcp", 4, 3, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("tcp", 4, 0, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("shm", 4, 2, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("pigeon", 4, 1, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of(NULL, 4, 1, 64, &t), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("tcp", 4, 1, 64, NULL), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_tuning_of("tcp", 4, 1, 64, &unset), COSET_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_those_of_the_schedules),
        cmocka_unit_test(prices_count),
        cmocka_unit_test(table_is_whole),
        cmocka_unit_test(what_is_told_is_what_is_done),
        cmocka_unit_test(wrong_questions_are_refused),
    };
    return cmocka_run_group_tests_name("coll cost", tests, NULL, NULL);
}
