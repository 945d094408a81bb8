/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind and algorithm x ranks x counts x in place or not: exact results, under random delivery. */
#include "coll/job.h"
#include "unit.h"

static const cst_algo allreduce_algos[] = {CST_ALGO_FLAT, CST_ALGO_NAIVE, CST_ALGO_DIRECT, CST_ALGO_RING,
                                           CST_ALGO_RD,   CST_ALGO_RHD,   CST_ALGO_TREE};
enum { ALGOS = sizeof allreduce_algos / sizeof allreduce_algos[0] };
static const int sizes[] = {1, 2, 3, 4, 5, 7, 8};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t seed;

static void for_counts(job_spec spec)
{
    size_t n = (size_t)spec.n, counts[] = {0, 1, n - 1, n, n + 1, 31, 211, 1009};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        /* Some dozens of segments show what hundreds do. */
        if (spec.segment_bytes && counts[i] > 20 * spec.segment_bytes)
            continue;
        for (int in_place = 0; in_place < 2; in_place++) {
            spec.count = counts[i];
            spec.in_place = in_place;
            spec.seed = ++seed;
            job_do(&spec);
        }
    }
}

static void allreduce_every_algorithm(void **state)
{
    (void)state;
    /* Segments of one, of three and of sixteen elements, and no cutting at all. */
    static const size_t segments[] = {4, 12, 64, 0};
    for (int a = 0; a < ALGOS; a++)
        for (int i = 0; i < SIZES; i++)
            for (int g = seed % 2; g < 4; g += 2)
                for_counts((job_spec){.kind = CST_ALLREDUCE,
                                      .algo = allreduce_algos[a],
                                      .dtype = COSET_F32,
                                      .op = COSET_SUM,
                                      .n = sizes[i],
                                      .segment_bytes = segments[g]});
}

static void allreduce_every_type_and_operator(void **state)
{
    (void)state;
    for (int a = 0; a < ALGOS; a++) {
        for (int dtype = 0; dtype < COSET_DTYPE_COUNT; dtype++) {
            for (int op = 0; op < COSET_OP_COUNT; op++) {
                for (int n = 2; n <= 7; n += 1 + n % 2) {
                    job_spec spec = {.kind = CST_ALLREDUCE,
                                     .algo = allreduce_algos[a],
                                     .dtype = dtype,
                                     .op = op,
                                     .n = n,
                                     .count = 157,
                                     .in_place = n % 2,
                                     .segment_bytes = 64,
                                     .seed = ++seed};
                    job_do(&spec);
                }
            }
        }
    }
}

static void halves_go_through_all_counts(void **state)
{
    (void)state;
    for (int a = 0; a < ALGOS; a++)
        for (int i = 0; i < SIZES; i++)
            for_counts((job_spec){.kind = CST_ALLREDUCE,
                                  .algo = allreduce_algos[a],
                                  .dtype = i % 2 ? COSET_F16 : COSET_BF16,
                                  .op = COSET_AVG,
                                  .n = sizes[i],
                                  .segment_bytes = i % 3 ? 40 : 0});
}

static void messages_respect_the_limit(void **state)
{
    (void)state;
    for (int a = 0; a < ALGOS; a++) {
        for (int n = 2; n <= 5; n++) {
            job_spec spec = {.kind = CST_ALLREDUCE,
                             .algo = allreduce_algos[a],
                             .dtype = n % 2 ? COSET_BF16 : COSET_F64,
                             .op = COSET_SUM,
                             .n = n,
                             .count = 1009,
                             .segment_bytes = 4096,
                             .max_message = 100,
                             .in_place = true,
                             .seed = ++seed};
            job_do(&spec);
        }
    }
}

static void long_chunks_are_aligned_and_right(void **state)
{
    (void)state;
    for (int a = 0; a < ALGOS; a++) {
        for (int n = 3; n <= 4; n++) {
            job_spec spec = {.kind = CST_ALLREDUCE,
                             .algo = allreduce_algos[a],
                             .dtype = n == 3 ? COSET_F32 : COSET_F16,
                             .op = COSET_SUM,
                             .n = n,
                             .count = 20011,
                             .segment_bytes = 2048,
                             .in_place = n == 4,
                             .seed = ++seed};
            job_do(&spec);
        }
    }
}

static void many_ranks(void **state)
{
    (void)state;
    static const int many[] = {13, 16, 31, 64};
    for (int a = 0; a < ALGOS; a++) {
        for (int i = 0; i < 4; i++) {
            job_spec spec = {.kind = CST_ALLREDUCE,
                             .algo = allreduce_algos[a],
                             .dtype = i % 2 ? COSET_F16 : COSET_I32,
                             .op = COSET_SUM,
                             .n = many[i],
                             .count = 401,
                             .segment_bytes = 32,
                             .in_place = i < 2,
                             .seed = ++seed,
                             .lazy = 10};
            job_do(&spec);
        }
    }
}

static void other_kinds(void **state)
{
    (void)state;
    static const struct {
        cst_kind kind;
        cst_algo algo;
    } row[] = {
        {CST_REDUCE_SCATTER, CST_ALGO_DIRECT}, {CST_REDUCE_SCATTER, CST_ALGO_RING}, {CST_ALLGATHER, CST_ALGO_DIRECT},
        {CST_ALLGATHER, CST_ALGO_RING},        {CST_BROADCAST, CST_ALGO_TREE},      {CST_BROADCAST, CST_ALGO_RING},
        {CST_REDUCE, CST_ALGO_FLAT},           {CST_REDUCE, CST_ALGO_DIRECT},       {CST_REDUCE, CST_ALGO_TREE}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        for (int j = 0; j < SIZES; j++) {
            for (int half = 0; half < 2; half++) {
                for (int root = 0; root < sizes[j]; root += 3)
                    for_counts((job_spec){.kind = row[i].kind,
                                          .algo = row[i].algo,
                                          .dtype = half ? COSET_BF16 : COSET_I64,
                                          .op = COSET_AVG,
                                          .n = sizes[j],
                                          .root = root,
                                          .segment_bytes = 48});
            }
        }
    }
}

static void alltoall_barrier_and_messages(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        for (size_t count = 0; count < 40; count += 13) {
            job_spec spec = {.kind = CST_ALLTOALL,
                             .algo = CST_ALGO_DIRECT,
                             .dtype = COSET_U8,
                             .n = sizes[i],
                             .count = count,
                             .segment_bytes = 9,
                             .seed = ++seed};
            job_do(&spec);
            spec.kind = CST_SEND;
            spec.root = sizes[i] / 2;
            if (sizes[i] > 1)
                job_do(&spec);
        }
        job_spec spec = {.kind = CST_BARRIER, .algo = CST_ALGO_RD, .n = sizes[i], .seed = ++seed};
        job_do(&spec);
    }
}

/* Nobody may leave a barrier before everybody has entered. */
static void barrier_waits_for_the_last(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        for (int last = 0; last < n; last++) {
            job j;
            job_open(&j, &(job_spec){.kind = CST_BARRIER, .algo = CST_ALGO_RD, .n = n, .seed = ++seed});
            for (int i = 0; i < 100 * n; i++) {
                int rank = (int)(world_random(&j.w) >> 33) % n;
                if (rank != last)
                    assert_int_equal(cst_schedule_step(j.schedule[rank]), COSET_IN_PROGRESS);
            }
            assert_true(job_run(&j, 1000000));
            job_close(&j);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_every_algorithm),
        cmocka_unit_test(allreduce_every_type_and_operator),
        cmocka_unit_test(halves_go_through_all_counts),
        cmocka_unit_test(messages_respect_the_limit),
        cmocka_unit_test(long_chunks_are_aligned_and_right),
        cmocka_unit_test(many_ranks),
        cmocka_unit_test(other_kinds),
        cmocka_unit_test(alltoall_barrier_and_messages),
        cmocka_unit_test(barrier_waits_for_the_last),
    };
    return cmocka_run_group_tests_name("coll matrix", tests, NULL, NULL);
}
