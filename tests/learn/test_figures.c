/* SPDX-License-Identifier: Apache-2.0 */
/* The lessons' figures against simulations that know nothing of coll/patterns. */
#include "learn/figures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A ring as one would write it down: chunk c is at rank c and moves right; returns elements sent by `rank`. */
static size_t walk_ring(int n, int rank, size_t elements)
{
    size_t sent = 0;
    for (int chunk = 0; chunk < n; chunk++)
        for (int move = 0; move < 2 * (n - 1); move++)
            if ((chunk + move) % n == rank)
                sent += learn_chunk(elements, n, chunk);
    return sent;
}

static void ring_volume(void **state)
{
    (void)state;
    for (int n = 2; n <= 64; n++)
        for (size_t elements = 0; elements < 200; elements += 7) {
            size_t most = 0;
            for (int rank = 0; rank < n; rank++) {
                size_t sent = walk_ring(n, rank, elements);
                assert_int_equal(learn_ring_sent_after(n, learn_ring_steps(n), rank, elements * LEARN_ELEMENT),
                                 sent * LEARN_ELEMENT);
                most = sent > most ? sent : most;
            }
            assert_int_equal(learn_sent(LEARN_RING, n, elements * LEARN_ELEMENT), most * LEARN_ELEMENT);
        }
}

static void ring_ends_complete(void **state)
{
    (void)state;
    for (int n = 2; n <= LEARN_MAX_RANKS; n++) {
        learn_ring_state s;
        unsigned all = (1u << n) - 1;
        learn_ring_after(n, n - 1, &s);
        for (int rank = 0; rank < n; rank++)
            for (int chunk = 0; chunk < n; chunk++)
                assert_true((s.parts[rank][chunk] == all) == (chunk == (rank + 1) % n));
        learn_ring_after(n, learn_ring_steps(n), &s);
        for (int rank = 0; rank < n; rank++)
            for (int chunk = 0; chunk < n; chunk++)
                assert_int_equal(s.parts[rank][chunk], all);
    }
}

/* A part is never added twice: what is sent and what is there are disjoint in every step of the first phase. */
static void nothing_is_added_twice(void **state)
{
    (void)state;
    for (int n = 2; n <= LEARN_MAX_RANKS; n++)
        for (int k = 0; k < n - 1; k++) {
            learn_ring_state s;
            learn_ring_after(n, k, &s);
            for (int rank = 0; rank < n; rank++) {
                learn_move m = learn_ring_move(n, k, rank);
                assert_true(m.add);
                assert_int_equal(s.parts[rank][m.chunk] & s.parts[m.to][m.chunk], 0);
            }
        }
}

static void naive_volume(void **state)
{
    (void)state;
    for (int n = 2; n <= 64; n++) {
        assert_int_equal(learn_sent(LEARN_NAIVE, n, 4000), (n - 1) * 4000);
        for (int messages = 0; messages < n + 3; messages++)
            assert_int_equal(learn_naive_sent_after(n, messages, 4000), (messages < n - 1 ? messages : n - 1) * 4000);
        assert_int_equal(learn_algorithms[LEARN_NAIVE].steps(n), n - 1);
    }
}

static void powers_of_two(void **state)
{
    (void)state;
    for (int n = 2, log = 1; n <= 1024; n *= 2, log++) {
        size_t bytes = (size_t)n * 4096;
        assert_int_equal(learn_sent(LEARN_RD, n, bytes), (size_t)log * bytes);
        assert_int_equal(learn_algorithms[LEARN_RD].steps(n), log);
        assert_int_equal(learn_sent(LEARN_RHD, n, bytes), 2 * (bytes - bytes / (size_t)n));
        assert_int_equal(learn_algorithms[LEARN_RHD].steps(n), 2 * log);
        assert_int_equal(learn_algorithms[LEARN_TREE].steps(n), 2 * log); /* as the lesson says: about 2 log2 N */
        assert_true(learn_sent(LEARN_TREE, n, bytes) <= 2 * bytes);
    }
}

/* Bytes that leave node 0, edge by edge: every edge of a ring carries all chunks but one, in each of two phases. */
static void flat_ring_over_nodes(void **state)
{
    (void)state;
    for (int nodes = 2; nodes <= 8; nodes++)
        for (int local = 1; local <= 8; local++) {
            int n = nodes * local;
            size_t bytes = (size_t)n * 4096, edge = 2 * (bytes - bytes / (size_t)n);
            assert_int_equal(learn_flat_leaving(nodes, local, LEARN_BLOCKS, bytes), edge);
            assert_int_equal(learn_flat_leaving(nodes, local, LEARN_DEALT, bytes), (size_t)local * edge);
            assert_int_equal(learn_hier_leaving(nodes, local, bytes), 2 * (bytes - bytes / (size_t)nodes));
            assert_int_equal(learn_hier_slow_steps(nodes), 2 * (nodes - 1));
            assert_int_equal(learn_flat_slow_steps(nodes, local), 2 * (n - 1));
        }
}

static void time_is_latency_and_bytes(void **state)
{
    (void)state;
    learn_link link = {1e-3, 1e6};
    assert_true(fabs(learn_time(LEARN_RING, 4, 4000, link) - (6e-3 + 6000 / 1e6)) < 1e-12);
    assert_true(fabs(learn_busbw(4, 4000, 2) - 3000) < 1e-9);
    assert_true(fabs(learn_algbw(4000, 2) - 2000) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_volume),
        cmocka_unit_test(ring_ends_complete),
        cmocka_unit_test(nothing_is_added_twice),
        cmocka_unit_test(naive_volume),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(flat_ring_over_nodes),
        cmocka_unit_test(time_is_latency_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
