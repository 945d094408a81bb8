/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, at every single allocation that building and starting make: COSET_ERR_MEMORY, and nothing is lost. */
#include "coll/job.h"
#include "refusal.h"
#include "unit.h"
#include <stdlib.h>

/* Builds and starts with the k-th allocation failing; false when there are fewer than k. */
static bool survives(cst_kind kind, cst_algo algo, long k)
{
    static const coset_entry entry = {{1}};
    static float send[2000], recv[2000];
    cst_plan plan = {
        .call = {.kind = kind, .dtype = COSET_F16, .op = COSET_AVG, .count = 300, .send = send, .recv = recv},
        .rank = 1,
        .size = 5,
        .segment_bytes = 64};
    world w;
    coset_status status = COSET_ERR_MEMORY;
    world_open(&w, 5, 1);
    refuse_allocation(k);
    cst_schedule *s = cst_schedule_create();
    if (s)
        status = cst_build(s, &plan, algo, NULL);
    if (s && status == COSET_OK)
        status = cst_schedule_start(s, &w.end[1].base, 0, &entry);
    bool failed = allocation_was_refused();
    refuse_allocation(0);
    assert_int_equal(status, failed ? COSET_ERR_MEMORY : COSET_OK);
    if (s && failed) { /* with memory, the same schedule works */
        assert_int_equal(cst_build(s, &plan, algo, NULL), COSET_OK);
        assert_int_equal(cst_schedule_start(s, &w.end[1].base, 0, &entry), COSET_OK);
    }
    if (s)
        cst_schedule_step(s);
    cst_schedule_destroy(s);
    w.dead = 0; /* what it has sent nobody will fetch */
    world_close(&w);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const cst_algo algos[] = {CST_ALGO_FLAT, CST_ALGO_DIRECT, CST_ALGO_RING,
                                     CST_ALGO_RD,   CST_ALGO_RHD,    CST_ALGO_TREE};
    for (int a = 0; a < 6; a++) {
        long k = 1;
        while (survives(CST_ALLREDUCE, algos[a], k))
            k++;
        assert_in_range(k, 8, 100); /* the list, its three arrays more than once, the run */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests_name("coll memory", tests, NULL, NULL);
}
