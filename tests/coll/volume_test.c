/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and messages that each rank sends, counted at the transport, against what the patterns say. */
#include "coll/job.h"
#include "coll/patterns/binomial.h"
#include "coll/patterns/dissemination.h"
#include "coll/patterns/naive.h"
#include "coll/patterns/pairwise.h"
#include "coll/patterns/rd.h"
#include "coll/patterns/rhd.h"
#include "coll/patterns/ring.h"
#include "coll/patterns/tree.h"
#include "unit.h"

static uint64_t seed;

static size_t elements_sent(const job_spec *p, int rank)
{
    switch (p->algo) {
    case CST_ALGO_FLAT:
    case CST_ALGO_NAIVE: return cst_naive_sent(p->n, p->count);
    case CST_ALGO_DIRECT: return cst_direct_sent(p->n, rank, p->count);
    case CST_ALGO_RING: return cst_ring_sent(p->n, rank, p->count);
    case CST_ALGO_RD: return cst_rd_sent(p->n, rank, p->count);
    case CST_ALGO_RHD: return cst_rhd_sent(p->n, rank, p->count);
    default: return cst_tree_sent(p->n, rank, p->count);
    }
}

static void allreduce_sends_what_the_pattern_says(void **state)
{
    (void)state;
    static const cst_algo algos[] = {CST_ALGO_FLAT, CST_ALGO_NAIVE, CST_ALGO_DIRECT, CST_ALGO_RING,
                                     CST_ALGO_RD,   CST_ALGO_RHD,   CST_ALGO_TREE};
    for (int a = 0; a < 7; a++) {
        for (int n = 1; n <= 9; n++) {
            for (size_t segment = 64; segment <= 8192; segment *= 128) {
                job j;
                job_spec spec = {.kind = CST_ALLREDUCE,
                                 .algo = algos[a],
                                 .dtype = COSET_F32,
                                 .op = COSET_SUM,
                                 .n = n,
                                 .count = 521,
                                 .segment_bytes = segment,
                                 .seed = ++seed};
                job_open(&j, &spec);
                assert_true(job_run(&j, 50000000));
                for (int rank = 0; rank < n; rank++)
                    assert_int_equal(j.w.end[rank].sent_bytes, 4 * elements_sent(&spec, rank));
                job_close(&j);
            }
        }
    }
}

/* 2(N - 1)/N of the vector, for equal chunks, whatever the rank. */
static void ring_and_direct_send_the_least_possible(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++) {
        for (int direct = 0; direct < 2; direct++) {
            job j;
            size_t count = 96 * (size_t)n;
            job_open(&j, &(job_spec){.kind = CST_ALLREDUCE,
                                     .algo = direct ? CST_ALGO_DIRECT : CST_ALGO_RING,
                                     .dtype = direct ? COSET_F16 : COSET_F32,
                                     .op = COSET_SUM,
                                     .n = n,
                                     .count = count,
                                     .seed = ++seed});
            assert_true(job_run(&j, 50000000));
            for (int rank = 0; rank < n; rank++)
                assert_int_equal(j.w.end[rank].sent_bytes * (size_t)n, 2 * (size_t)(n - 1) * count * (direct ? 2 : 4));
            job_close(&j);
        }
    }
}

/* Of the ring's messages of a 16-bit vector those that carry partial sums, N - 2 of 2(N - 1), are f32. */
static void partial_sums_of_halves_are_twice_as_long(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++) {
        job j;
        size_t chunk = 40, bytes = chunk * (size_t)(2 * 2 * (n - 1) + 2 * (n - 2));
        job_open(&j, &(job_spec){.kind = CST_ALLREDUCE,
                                 .algo = CST_ALGO_RING,
                                 .dtype = COSET_BF16,
                                 .op = COSET_SUM,
                                 .n = n,
                                 .count = chunk * (size_t)n,
                                 .seed = ++seed});
        assert_true(job_run(&j, 50000000));
        for (int rank = 0; rank < n; rank++)
            assert_int_equal(j.w.end[rank].sent_bytes, bytes);
        job_close(&j);
    }
}

static void other_kinds_send_what_the_pattern_says(void **state)
{
    (void)state;
    for (int n = 2; n <= 9; n++) {
        const job_spec specs[] = {
            {.kind = CST_BROADCAST, .algo = CST_ALGO_TREE},      {.kind = CST_REDUCE, .algo = CST_ALGO_TREE},
            {.kind = CST_ALLTOALL, .algo = CST_ALGO_DIRECT},     {.kind = CST_ALLGATHER, .algo = CST_ALGO_RING},
            {.kind = CST_REDUCE_SCATTER, .algo = CST_ALGO_RING}, {.kind = CST_BROADCAST, .algo = CST_ALGO_RING},
        };
        for (int i = 0; i < 6; i++) {
            job j;
            job_spec spec = specs[i];
            spec.dtype = COSET_I32;
            spec.n = n;
            spec.root = n - 1;
            spec.count = 29;
            spec.segment_bytes = 40;
            spec.seed = ++seed;
            job_open(&j, &spec);
            assert_true(job_run(&j, 50000000));
            for (int rank = 0; rank < n; rank++) {
                const size_t expected[] = {cst_binomial_broadcast_sent(n, n - 1, rank, 29),
                                           cst_binomial_reduce_sent(n - 1, rank, 29),
                                           cst_pairwise_sent(n, 29),
                                           29 * (size_t)(n - 1),
                                           29 * (size_t)(n - 1),
                                           rank == n - 2 ? 0 : 29};
                assert_int_equal(j.w.end[rank].sent_bytes, 4 * expected[i]);
            }
            job_close(&j);
        }
    }
}

/* An empty vector still says something to everybody that the pattern names, so that disagreement is noticed. */
static void zero_elements_are_still_sent(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++) {
        job j;
        job_open(&j, &(job_spec){.kind = CST_ALLREDUCE,
                                 .algo = CST_ALGO_RING,
                                 .dtype = COSET_F32,
                                 .op = COSET_SUM,
                                 .n = n,
                                 .count = 0,
                                 .seed = ++seed});
        assert_true(job_run(&j, 50000000));
        for (int rank = 0; rank < n; rank++) {
            assert_int_equal(j.w.end[rank].messages, cst_ring_steps(n));
            assert_int_equal(j.w.end[rank].sent_bytes, 0);
        }
        job_close(&j);
        job_open(&j, &(job_spec){.kind = CST_BARRIER, .algo = CST_ALGO_RD, .n = n, .seed = ++seed});
        assert_true(job_run(&j, 50000000));
        for (int rank = 0; rank < n; rank++)
            assert_int_equal(j.w.end[rank].messages, cst_dissemination_steps(n));
        job_close(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_sends_what_the_pattern_says),
        cmocka_unit_test(ring_and_direct_send_the_least_possible),
        cmocka_unit_test(partial_sums_of_halves_are_twice_as_long),
        cmocka_unit_test(other_kinds_send_what_the_pattern_says),
        cmocka_unit_test(zero_elements_are_still_sent),
    };
    return cmocka_run_group_tests_name("coll volume", tests, NULL, NULL);
}
