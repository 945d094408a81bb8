/* SPDX-License-Identifier: Apache-2.0 */
/* A message fails, or somebody cancels, at any moment of any algorithm: the error is reported, nothing is left. */
#include "coll/job.h"
#include "unit.h"

static uint64_t seed;

static const struct {
    cst_kind kind;
    cst_algo algo;
} rows[] = {
    {CST_ALLREDUCE, CST_ALGO_FLAT},      {CST_ALLREDUCE, CST_ALGO_DIRECT},
    {CST_ALLREDUCE, CST_ALGO_RING},      {CST_ALLREDUCE, CST_ALGO_RD},
    {CST_ALLREDUCE, CST_ALGO_RHD},       {CST_ALLREDUCE, CST_ALGO_TREE},
    {CST_REDUCE_SCATTER, CST_ALGO_RING}, {CST_REDUCE_SCATTER, CST_ALGO_DIRECT},
    {CST_ALLGATHER, CST_ALGO_RING},      {CST_ALLGATHER, CST_ALGO_DIRECT},
    {CST_BROADCAST, CST_ALGO_TREE},      {CST_BROADCAST, CST_ALGO_RING},
    {CST_REDUCE, CST_ALGO_FLAT},         {CST_REDUCE, CST_ALGO_DIRECT},
    {CST_REDUCE, CST_ALGO_TREE},         {CST_ALLTOALL, CST_ALGO_DIRECT},
    {CST_BARRIER, CST_ALGO_RD},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static job_spec spec_of(int row, int n)
{
    return (job_spec){.kind = rows[row].kind,
                      .algo = rows[row].algo,
                      .dtype = COSET_F16,
                      .op = COSET_SUM,
                      .n = n,
                      .count = 61,
                      .segment_bytes = 16,
                      .in_place = rows[row].kind != CST_ALLTOALL,
                      .seed = ++seed};
}

/* Every rank that ended with an error names a step that has to do with the dead one, and stays ended. */
static void check_ended(job *j)
{
    for (int rank = 0; rank < j->spec.n; rank++) {
        coset_status status = j->status[rank];
        const cst_schedule *s = j->schedule[rank];
        if (status == COSET_IN_PROGRESS || status == COSET_OK)
            continue;
        assert_int_equal(status, COSET_ERR_PEER);
        assert_in_range(cst_schedule_failed(s), 0, s->steps - 1);
        assert_int_equal(s->step[cst_schedule_failed(s)].peer, j->w.dead);
        assert_int_equal(world_pending(&j->w, rank), 0);
        assert_int_equal(cst_schedule_step(j->schedule[rank]), COSET_ERR_PEER);
    }
}

static void a_failed_message_ends_the_operation(void **state)
{
    (void)state;
    for (int row = 0; row < ROWS; row++) {
        for (int n = 2; n <= 6; n += 1 + n % 2) {
            for (long after = 1; after < 60; after += 1 + after / 4) {
                job j;
                job_spec spec = spec_of(row, n);
                job_open(&j, &spec);
                j.w.fail_after = after;
                /* Ranks that wait for one who gave up wait on: the communicator's notices end that, not this layer. */
                job_run(&j, 3000);
                if (j.w.dead < 0)
                    assert_true(job_run(&j, 50000000));
                check_ended(&j);
                job_close(&j); /* cancels, and checks that nothing is pending */
            }
        }
    }
}

static void cancelling_leaves_nothing(void **state)
{
    (void)state;
    for (int row = 0; row < ROWS; row++) {
        for (long steps = 0; steps < 200; steps += 1 + steps / 3) {
            job j;
            job_spec spec = spec_of(row, 5);
            job_open(&j, &spec);
            job_run(&j, steps);
            for (int rank = 0; rank < 5; rank++) {
                coset_status before = j.status[rank];
                cst_schedule_cancel(j.schedule[rank]);
                assert_int_equal(cst_schedule_step(j.schedule[rank]),
                                 before == COSET_IN_PROGRESS ? COSET_ERR_ABORTED : before);
                assert_int_equal(world_pending(&j.w, rank), 0);
            }
            j.w.dead = 0; /* letters sent early and never fetched are no fault here */
            job_close(&j);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_message_ends_the_operation),
        cmocka_unit_test(cancelling_leaves_nothing),
    };
    return cmocka_run_group_tests_name("coll faults", tests, NULL, NULL);
}
