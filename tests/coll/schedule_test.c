/* SPDX-License-Identifier: Apache-2.0 */
/* The list itself: dependencies point back, memory stays small for huge vectors, steps can be named, runs repeated. */
#include "coll/job.h"
#include "unit.h"
#include <string.h>

static const cst_algo algos[] = {CST_ALGO_FLAT, CST_ALGO_NAIVE, CST_ALGO_DIRECT, CST_ALGO_RING,
                                 CST_ALGO_RD,   CST_ALGO_RHD,   CST_ALGO_TREE};
enum { ALGOS = sizeof algos / sizeof algos[0] };

static cst_schedule *built(cst_algo algo, int size, int rank, size_t count, coset_dtype dtype)
{
    cst_plan plan = {
        .call = {.kind = CST_ALLREDUCE, .dtype = dtype, .op = COSET_SUM, .count = count}, .rank = rank, .size = size};
    cst_schedule *s = cst_schedule_create();
    assert_non_null(s);
    assert_int_equal(cst_build(s, &plan, algo, NULL), COSET_OK);
    return s;
}

static void dependencies_point_back(void **state)
{
    (void)state;
    for (int a = 0; a < ALGOS; a++) {
        for (int size = 2; size <= 20; size++) {
            cst_schedule *s = built(algos[a], size, size / 2, 100000, COSET_F16);
            for (int i = 0; i < s->steps; i++) {
                const cst_step *step = &s->step[i];
                for (int d = 0; d < step->deps; d++)
                    assert_in_range(s->deps[step->dep + d], 0, i - 1);
                assert_true(step->dep + step->deps <= s->ndeps && step->source + step->sources <= s->nsources);
                if (step->kind == CST_STEP_REDUCE)
                    assert_in_range(step->sources, 2, size);
            }
            cst_schedule_destroy(s);
        }
    }
}

/* Beyond 2^31 and 2^32 bytes: every element of the result is written once by its last writer; the schedule stays small. */
static void huge_vectors_need_short_lists(void **state)
{
    (void)state;
    const size_t count = ((size_t)1 << 32) + 12345;
    for (int a = 0; a < ALGOS; a++) {
        for (int size = 2; size <= 8; size += 3) {
            for (int half = 0; half < 2; half++) {
                cst_schedule *s = built(algos[a], size, size - 1, count, half ? COSET_BF16 : COSET_F32);
                size_t memory = (size_t)s->step_room * sizeof *s->step + (size_t)s->dep_room * sizeof *s->deps +
                                (size_t)s->source_room * sizeof *s->sources;
                size_t bytes = count * coset_dtype_size(s->plan.call.dtype), stored = 0;
                assert_true(memory < bytes / 1000);
                assert_true(s->scratch_bytes < bytes / 4 + bytes / 4 * half);
                for (int i = 0; i < s->steps; i++) {
                    const cst_step *step = &s->step[i];
                    bool writes = step->kind != CST_STEP_SEND && step->at.buffer == CST_IN_RECV;
                    stored += writes ? cst_step_bytes(s, step) : 0;
                    if (writes)
                        assert_true(step->at.offset + cst_step_bytes(s, step) <= bytes);
                }
                /* Halving keeps partial sums in the result buffer, so it writes some of it more than once. */
                if (algos[a] == CST_ALGO_RHD && !half)
                    assert_true(stored >= bytes);
                else
                    assert_int_equal(stored, bytes);
                cst_schedule_destroy(s);
            }
        }
    }
}

static void steps_have_names(void **state)
{
    (void)state;
    char text[200], small[8];
    cst_schedule *s = built(CST_ALGO_RING, 4, 1, 1000, COSET_F32);
    assert_true(cst_schedule_describe(s, 0, text, sizeof text) > 0);
    assert_string_equal(text, "recv 1000 B from 0 into scratch+0 (round 0, segment 0, tag 0)");
    cst_schedule_describe(s, 1, text, sizeof text);
    assert_string_equal(text, "send 1000 B to 2 from send+1000 (round 0, segment 0, tag 0)");
    cst_schedule_describe(s, 2, text, sizeof text);
    assert_string_equal(text, "reduce 2 operands into scratch+0, 1000 B (round 0, segment 0)");
    assert_int_equal(cst_schedule_describe(s, 2, small, sizeof small), (int)strlen(text));
    assert_string_equal(small, "reduce ");
    cst_schedule_destroy(s);
    s = built(CST_ALGO_RING, 1, 0, 10, COSET_F32);
    assert_int_equal(s->steps, 0); /* send == recv == NULL: in place */
    cst_schedule_destroy(s);
}

static void a_schedule_can_run_again(void **state)
{
    (void)state;
    static const coset_entry entry = {{9}};
    for (int a = 0; a < ALGOS; a++) {
        job j;
        job_open(&j, &(job_spec){.kind = CST_ALLREDUCE,
                                 .algo = algos[a],
                                 .dtype = COSET_F16,
                                 .op = COSET_AVG,
                                 .n = 5,
                                 .count = 300,
                                 .segment_bytes = 100,
                                 .seed = 400 + (uint64_t)a});
        for (int run = 0; run < 3; run++) {
            assert_true(job_run(&j, 50000000));
            job_check(&j);
            for (int rank = 0; rank < 5 && run < 2; rank++) {
                assert_int_equal(cst_schedule_done(j.schedule[rank]), j.schedule[rank]->steps);
                assert_int_equal(cst_schedule_current(j.schedule[rank]), -1);
                memset(j.recv[rank], 0, 600);
                assert_int_equal(cst_schedule_start(j.schedule[rank], &j.w.end[rank].base, (uint64_t)(8 + run), &entry),
                                 COSET_OK);
                j.status[rank] = COSET_IN_PROGRESS;
            }
        }
        job_close(&j);
    }
}

/* When a step has been made and nothing moved, there is nothing to do but wait. */
static void standing_still_is_seen(void **state)
{
    (void)state;
    job j;
    job_open(&j, &(job_spec){.kind = CST_ALLREDUCE,
                             .algo = CST_ALGO_RING,
                             .dtype = COSET_F32,
                             .op = COSET_SUM,
                             .n = 3,
                             .count = 30,
                             .seed = 1});
    assert_int_equal(cst_schedule_current(j.schedule[0]), 0);
    cst_schedule_step(j.schedule[0]);
    assert_true(cst_schedule_moved(j.schedule[0])); /* posted its first messages */
    for (int i = 0; i < 100; i++)
        cst_schedule_step(j.schedule[0]);
    assert_false(cst_schedule_moved(j.schedule[0])); /* nobody else does anything */
    assert_int_equal(cst_schedule_current(j.schedule[0]), 0);
    assert_int_equal(j.schedule[0]->step[0].kind, CST_STEP_RECV);
    assert_true(job_run(&j, 1000000));
    job_check(&j);
    job_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dependencies_point_back), cmocka_unit_test(huge_vectors_need_short_lists),
        cmocka_unit_test(steps_have_names),        cmocka_unit_test(a_schedule_can_run_again),
        cmocka_unit_test(standing_still_is_seen),
    };
    return cmocka_run_group_tests_name("coll schedule", tests, NULL, NULL);
}
