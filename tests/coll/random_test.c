/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random jobs in random worlds: eager and strict transports, a rank that is hardly ever scheduled, messages cut
 * anyhow. Each is checked like those of the matrix. `coll_random FIRST COUNT` runs other seeds than the usual.
 */
#include "base/dtype.h"
#include "coll/job.h"
#include "unit.h"
#include <stdlib.h>

static const struct {
    cst_kind kind;
    cst_algo algo;
} rows[] = {
    {CST_ALLREDUCE, CST_ALGO_FLAT},      {CST_ALLREDUCE, CST_ALGO_DIRECT},      {CST_ALLREDUCE, CST_ALGO_RING},
    {CST_ALLREDUCE, CST_ALGO_RD},        {CST_ALLREDUCE, CST_ALGO_RHD},         {CST_ALLREDUCE, CST_ALGO_TREE},
    {CST_REDUCE_SCATTER, CST_ALGO_RING}, {CST_REDUCE_SCATTER, CST_ALGO_DIRECT}, {CST_ALLGATHER, CST_ALGO_RING},
    {CST_ALLGATHER, CST_ALGO_DIRECT},    {CST_BROADCAST, CST_ALGO_TREE},        {CST_BROADCAST, CST_ALGO_RING},
    {CST_REDUCE, CST_ALGO_FLAT},         {CST_REDUCE, CST_ALGO_DIRECT},         {CST_REDUCE, CST_ALGO_TREE},
    {CST_ALLTOALL, CST_ALGO_DIRECT},     {CST_SEND, CST_ALGO_DIRECT},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static unsigned long first_seed = 1, jobs = 1500;

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(next_random(state) >> 20) % n;
}

static job_spec random_spec(uint64_t seed)
{
    uint64_t r = random_state(seed);
    size_t row = below(&r, ROWS);
    job_spec spec = {.kind = rows[row].kind, .algo = rows[row].algo, .seed = seed};
    spec.n = 2 + (int)below(&r, below(&r, 4) ? 7 : 22);
    spec.root = (int)below(&r, (size_t)spec.n);
    spec.dtype = (coset_dtype)below(&r, COSET_DTYPE_COUNT);
    spec.op = (coset_op)below(&r, COSET_OP_COUNT);
    if (spec.op == COSET_PROD && cst_dtype_is_float(spec.dtype))
        spec.op = COSET_MAX; /* products of 22 factors round */
    spec.count = below(&r, below(&r, 3) ? 60 : 700);
    spec.segment_bytes = 8 + below(&r, spec.count + 40) * 2;
    spec.max_message = below(&r, 2) ? 0 : 8 + below(&r, 300);
    spec.in_place = below(&r, 2) && spec.kind != CST_ALLTOALL && spec.kind != CST_SEND;
    spec.lazy = 1 + (int)below(&r, 80);
    return spec;
}

/* Between turns of the slow rank everybody else gets a few hundred. */
static void run_with_a_slow_rank(job *j, int slow)
{
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < 300; i++) {
            int rank = (int)(world_random(&j->w) >> 33) % j->spec.n;
            if (rank != slow && j->status[rank] == COSET_IN_PROGRESS)
                j->status[rank] = cst_schedule_step(j->schedule[rank]);
        }
        if (j->status[slow] == COSET_IN_PROGRESS)
            j->status[slow] = cst_schedule_step(j->schedule[slow]);
    }
}

static void random_jobs_are_right(void **state)
{
    (void)state;
    static const int eager[] = {0, 50, 100};
    for (uint64_t seed = first_seed; seed < first_seed + jobs; seed++) {
        job j;
        job_spec spec = random_spec(seed);
        job_open(&j, &spec);
        j.w.eager = eager[seed % 3];
        if (seed % 4 == 0)
            run_with_a_slow_rank(&j, (int)(seed / 4) % spec.n);
        assert_true(job_run(&j, 50000000));
        job_check(&j);
        job_close(&j);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_jobs_are_right)};
    if (argc > 2) {
        first_seed = strtoul(argv[1], NULL, 10);
        jobs = strtoul(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests_name("coll random", tests, NULL, NULL);
}
