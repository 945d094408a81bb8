/* SPDX-License-Identifier: Apache-2.0 */
/* In which order sums are taken: values that round, compared bit by bit. */
#include "coll/job.h"
#include "coll/patterns/ring.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

static uint64_t seed;
static const coset_dtype floats[] = {COSET_F32, COSET_F64, COSET_F16, COSET_BF16};

/* job_check compares with the sum in rank order. */
static void rank_order(cst_kind kind, cst_algo algo)
{
    for (int n = 2; n <= 8; n++) {
        for (int d = 0; d < 4; d++) {
            for (size_t segment = 16; segment <= 4096; segment *= 16) {
                job_spec spec = {.kind = kind,
                                 .algo = algo,
                                 .dtype = floats[d],
                                 .op = COSET_AVG,
                                 .n = n,
                                 .root = n / 2,
                                 .count = 331,
                                 .in_place = n % 2,
                                 .rough = true,
                                 .segment_bytes = segment,
                                 .max_message = n % 3 ? 0 : 48,
                                 .seed = ++seed,
                                 .values = 5};
                job_do(&spec);
            }
        }
    }
}
static void direct_flat_and_naive_sum_in_rank_order(void **state)
{
    (void)state;
    rank_order(CST_ALLREDUCE, CST_ALGO_DIRECT);
    rank_order(CST_ALLREDUCE, CST_ALGO_FLAT);
    rank_order(CST_ALLREDUCE, CST_ALGO_NAIVE);
    rank_order(CST_REDUCE_SCATTER, CST_ALGO_DIRECT);
    rank_order(CST_REDUCE, CST_ALGO_DIRECT);
    rank_order(CST_REDUCE, CST_ALGO_FLAT);
}

/* Runs an all-reduce; returns the result, which all ranks must share, to be freed. */
static char *result_of(const job_spec *spec, int *order_for_chunk)
{
    job j;
    size_t bytes = spec->count * coset_dtype_size(spec->dtype);
    char *result = malloc(bytes + 1), *expected = malloc(bytes + 1);
    job_open(&j, spec);
    assert_true(job_run(&j, 50000000));
    for (int rank = 0; rank < spec->n; rank++) {
        assert_int_equal(j.status[rank], COSET_OK);
        assert_memory_equal(j.recv[rank], j.recv[0], bytes);
    }
    memcpy(result, j.recv[0], bytes);
    for (int c = 0; c < spec->n && order_for_chunk; c++) {
        cst_range r = cst_chunk(spec->count, spec->n, c);
        for (int k = 0; k < spec->n; k++)
            order_for_chunk[k] = (c + k) % spec->n;
        job_reduce(&j, order_for_chunk, r.begin, r.end, expected);
    }
    if (order_for_chunk)
        assert_memory_equal(result, expected, bytes);
    job_close(&j);
    free(expected);
    return result;
}

static void ring_sums_along_the_journey(void **state)
{
    (void)state;
    int order[WORLD_MAX];
    for (int n = 2; n <= 9; n++) {
        for (int d = 0; d < 4; d++) {
            job_spec spec = {.kind = CST_ALLREDUCE,
                             .algo = CST_ALGO_RING,
                             .dtype = floats[d],
                             .op = COSET_AVG,
                             .n = n,
                             .count = 997,
                             .in_place = d % 2,
                             .rough = true,
                             .segment_bytes = 64,
                             .seed = ++seed};
            free(result_of(&spec, order));
        }
    }
}

/* Not promised but so: the same bits for every delivery order, segment size and message limit, in place or not. */
static void same_bits(job_spec spec)
{
    size_t bytes = spec.count * coset_dtype_size(spec.dtype);
    spec.seed = ++seed;
    char *first = result_of(&spec, NULL);
    for (int i = 0; i < 4; i++) {
        spec.seed = ++seed;
        spec.in_place = i % 2;
        spec.segment_bytes = i < 2 ? 80 : 1024;
        spec.max_message = i == 3 ? 60 : 0;
        char *again = result_of(&spec, NULL);
        assert_memory_equal(first, again, bytes);
        free(again);
    }
    free(first);
}
static void every_algorithm_gives_the_same_bits_again(void **state)
{
    (void)state;
    static const cst_algo algos[] = {CST_ALGO_RING, CST_ALGO_RD, CST_ALGO_RHD, CST_ALGO_TREE};
    for (int a = 0; a < 4; a++)
        for (int n = 2; n <= 8; n++)
            for (int d = 0; d < 4; d++)
                same_bits((job_spec){.kind = CST_ALLREDUCE,
                                     .algo = algos[a],
                                     .dtype = floats[d],
                                     .op = COSET_SUM,
                                     .n = n,
                                     .count = 401,
                                     .rough = true,
                                     .values = 77});
}

static void doubling_and_halving_add_the_same_pairs(void **state)
{
    (void)state;
    for (int n = 2; n <= 17; n++) {
        for (int d = 0; d < 4; d++) {
            job_spec spec = {.kind = CST_ALLREDUCE,
                             .algo = CST_ALGO_RD,
                             .dtype = floats[d],
                             .op = COSET_AVG,
                             .n = n,
                             .count = 301,
                             .rough = true,
                             .segment_bytes = 256,
                             .seed = ++seed,
                             .values = 3};
            char *rd = result_of(&spec, NULL);
            spec.algo = CST_ALGO_RHD;
            char *rhd = result_of(&spec, NULL);
            assert_memory_equal(rd, rhd, spec.count * coset_dtype_size(spec.dtype));
            free(rd);
            free(rhd);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_flat_and_naive_sum_in_rank_order),
        cmocka_unit_test(ring_sums_along_the_journey),
        cmocka_unit_test(every_algorithm_gives_the_same_bits_again),
        cmocka_unit_test(doubling_and_halving_add_the_same_pairs),
    };
    return cmocka_run_group_tests_name("coll order", tests, NULL, NULL);
}
