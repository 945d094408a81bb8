/* SPDX-License-Identifier: Apache-2.0 */
/* Every pattern, every N up to 64, every rank, every step: simulated with sets of contributing ranks, one bit each. */
#include "coll/patterns/binomial.h"
#include "coll/patterns/dissemination.h"
#include "coll/patterns/naive.h"
#include "coll/patterns/pairwise.h"
#include "coll/patterns/rd.h"
#include "coll/patterns/rhd.h"
#include "coll/patterns/ring.h"
#include "coll/patterns/tree.h"
#include "unit.h"
#include <string.h>

enum { MAX_N = 64 };
typedef uint64_t set;

static set one(int rank)
{
    return (set)1 << rank;
}
static set all_of(int n)
{
    return n == 64 ? ~(set)0 : one(n) - 1;
}
/* A sum may be added to another only if no rank contributes to both. */
static set add(set a, set b)
{
    assert_int_equal(a & b, 0);
    return a | b;
}

static const size_t counts[] = {
    0, 1, 2, 3, 5, 7, 63, 64, 65, 127, 1000, 4096, 4097, 1000003, ((size_t)1 << 20) + 7, ((size_t)1 << 40) + 3};
enum { COUNTS = sizeof counts / sizeof counts[0] };

/* ---- chunks ---- */

static void check_chunks(size_t count, int n)
{
    size_t at = 0, shortest = SIZE_MAX, longest = 0;
    for (int i = 0; i < n; i++) {
        cst_range c = cst_chunk(count, n, i);
        assert_int_equal(c.begin, at);
        assert_true(c.end >= c.begin);
        at = c.end;
        size_t size = cst_range_size(c);
        shortest = size < shortest ? size : shortest;
        longest = size > longest ? size : longest;
        if (count / (size_t)n >= CST_CHUNK_LONG)
            assert_int_equal(c.begin % CST_CHUNK_ALIGN, 0);
    }
    assert_int_equal(at, count);
    size_t slack = count / (size_t)n >= CST_CHUNK_LONG ? 2 * CST_CHUNK_ALIGN - 1 : 1;
    assert_true(longest - shortest <= slack);
}
static void chunks_cover_the_vector_evenly(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (size_t i = 0; i < COUNTS; i++)
            check_chunks(counts[i], n);
        for (size_t count = 0; count < 300; count++)
            check_chunks(count, n);
        for (size_t count = 4094 * (size_t)n; count < 4098 * (size_t)n; count += 1 + count % 3)
            check_chunks(count, n);
        check_chunks(SIZE_MAX, n);
    }
}
static void neighbouring_chunks_make_one_range(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (int first = 0; first < n; first++) {
            cst_range r = cst_chunks(1000003, n, first, n - first);
            assert_int_equal(r.begin, cst_chunk(1000003, n, first).begin);
            assert_int_equal(r.end, 1000003);
        }
    }
}

/* ---- ring ---- */

static void ring_is_the_textbooks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        assert_int_equal(cst_ring_steps(n), 2 * (n - 1));
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n - 1; k++) {
                cst_ring_step s = cst_ring(n, i, k);
                assert_int_equal(s.to, (i + 1) % n);
                assert_int_equal(s.from, (i + n - 1) % n);
                assert_int_equal(s.send_chunk, (i - k + n) % n);
                assert_int_equal(s.recv_chunk, (i - k - 1 + n) % n);
                assert_true(s.add);
                s = cst_ring(n, i, n - 1 + k);
                assert_int_equal(s.send_chunk, (i + 1 - k + n) % n);
                assert_int_equal(s.recv_chunk, (i - k + n) % n);
                assert_false(s.add);
            }
        }
    }
}
/* holds[i][c]: whose parts are in rank i's chunk c. */
static void ring_step(int n, int k, set holds[MAX_N][MAX_N])
{
    static set before[MAX_N][MAX_N];
    memcpy(before, holds, sizeof before);
    for (int i = 0; i < n; i++) {
        cst_ring_step s = cst_ring(n, i, k);
        /* What I receive is what my neighbour sends to me in the same step. */
        cst_ring_step theirs = cst_ring(n, s.from, k);
        assert_int_equal(theirs.to, i);
        assert_int_equal(theirs.send_chunk, s.recv_chunk);
        assert_int_not_equal(s.send_chunk, s.recv_chunk);
        set got = before[s.from][s.recv_chunk];
        holds[i][s.recv_chunk] = s.add ? add(got, before[i][s.recv_chunk]) : got;
    }
}
static void ring_completes_every_chunk(void **state)
{
    (void)state;
    static set holds[MAX_N][MAX_N];
    for (int n = 1; n <= MAX_N; n++) {
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++)
                holds[i][c] = one(i);
        for (int k = 0; k < n - 1; k++)
            ring_step(n, k, holds);
        for (int i = 0; i < n; i++)
            assert_int_equal(holds[i][cst_ring_owned_chunk(n, i)], all_of(n));
        for (int k = n - 1; k < cst_ring_steps(n); k++)
            ring_step(n, k, holds);
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++)
                assert_int_equal(holds[i][c], all_of(n));
    }
}
static void ring_sends_what_it_says(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (size_t j = 0; j < COUNTS; j++) {
            for (int i = 0; i < n; i++) {
                size_t sent = 0;
                for (int k = 0; k < cst_ring_steps(n); k++)
                    sent += cst_range_size(cst_chunk(counts[j], n, cst_ring(n, i, k).send_chunk));
                assert_int_equal(sent, cst_ring_sent(n, i, counts[j]));
            }
        }
        /* Exactly 2(N - 1)/N when the chunks are equal. */
        size_t count = (size_t)n * 8192;
        assert_int_equal(cst_ring_sent(n, 0, count) * (size_t)n, 2 * (size_t)(n - 1) * count);
    }
}
static void ring_allgather_starts_from_own_chunks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        set have[MAX_N];
        for (int i = 0; i < n; i++)
            have[i] = one(i);
        for (int k = 0; k < n - 1; k++) {
            set before[MAX_N];
            memcpy(before, have, sizeof before);
            for (int i = 0; i < n; i++) {
                cst_ring_step s = cst_ring_allgather(n, i, k, 0);
                assert_true(before[s.from] & one(s.recv_chunk));
                assert_true(before[i] & one(s.send_chunk));
                have[i] = add(have[i], one(s.recv_chunk));
            }
        }
        for (int i = 0; i < n; i++)
            assert_int_equal(have[i], all_of(n));
    }
}

/* ---- direct, naive, pairwise ---- */

static void every_peer_once(int n, int (*to)(int, int, int), int (*from)(int, int, int), int first)
{
    for (int i = 0; i < n; i++) {
        set sent = one(i), received = one(i);
        for (int k = first; k < n - 1 + first; k++) {
            sent = add(sent, one(to(n, i, k)));
            received = add(received, one(from(n, i, k)));
            assert_int_equal(from(n, to(n, i, k), k), i);
        }
        assert_int_equal(sent, all_of(n));
        assert_int_equal(received, all_of(n));
    }
}
static void all_peers_are_served_without_collisions(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        every_peer_once(n, cst_direct_to, cst_direct_from, 0);
        every_peer_once(n, cst_naive_to, cst_naive_from, 0);
        every_peer_once(n, cst_pairwise_to, cst_pairwise_from, 1);
        assert_int_equal(cst_pairwise_steps(n), n - 1);
        assert_int_equal(cst_direct_steps(n), n > 1 ? 2 : 0);
        assert_int_equal(cst_naive_steps(n), n > 1);
    }
}
static void direct_sends_as_little_as_the_ring(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        size_t count = (size_t)n * 8192;
        for (int i = 0; i < n; i++)
            assert_int_equal(cst_direct_sent(n, i, count), cst_ring_sent(n, i, count));
        assert_int_equal(cst_naive_sent(n, count), (size_t)(n - 1) * count);
        assert_int_equal(cst_pairwise_sent(n, 5), 5 * (size_t)(n - 1));
        /* Over all ranks, each chunk is sent n - 1 times in either round. */
        for (size_t j = 0; j < COUNTS; j++) {
            size_t sum = 0;
            for (int i = 0; i < n; i++)
                sum += cst_direct_sent(n, i, counts[j]);
            assert_int_equal(sum, n == 1 ? 0 : 2 * (size_t)(n - 1) * counts[j]);
        }
    }
}

/* ---- recursive doubling, halving ---- */

static void folding_numbers_the_takers(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        int p = cst_pow2_floor(n), next = 0;
        assert_true((p & (p - 1)) == 0 && p <= n && 2 * p > n);
        for (int i = 0; i < n; i++) {
            int v = cst_fold_virtual(n, i), partner = cst_fold_partner(n, i);
            if (partner >= 0) {
                assert_int_equal(cst_fold_partner(n, partner), i);
                assert_int_equal(partner / 2, i / 2);
                assert_int_not_equal(cst_fold(n, i), cst_fold(n, partner));
            } else {
                assert_int_equal(cst_fold(n, i), CST_FOLD_ALONE);
            }
            if (cst_fold(n, i) == CST_FOLD_GIVES) {
                assert_int_equal(v, -1);
                continue;
            }
            assert_int_equal(v, next++);
            assert_int_equal(cst_fold_real(n, v), i);
        }
        assert_int_equal(next, p);
    }
}
static void fold_sets(int n, set holds[MAX_N])
{
    for (int i = 0; i < n; i++)
        holds[i] = one(i);
    for (int i = 0; i < n; i++)
        if (cst_fold(n, i) == CST_FOLD_TAKES)
            holds[i] = add(holds[cst_fold_partner(n, i)], holds[i]);
}
static void recursive_doubling_reaches_all(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        set holds[MAX_N], before[MAX_N];
        size_t sends[MAX_N] = {0};
        fold_sets(n, holds);
        for (int k = 0; k < cst_rd_exchanges(n); k++) {
            memcpy(before, holds, sizeof before);
            for (int i = 0; i < n; i++) {
                int partner = cst_rd_partner(n, i, k);
                if (partner < 0)
                    continue;
                assert_int_equal(cst_rd_partner(n, partner, k), i);
                holds[i] = add(before[i], before[partner]);
                sends[i]++;
            }
        }
        for (int i = 0; i < n; i++) {
            cst_fold_role role = cst_fold(n, i);
            if (role != CST_FOLD_GIVES)
                assert_int_equal(holds[i], all_of(n));
            sends[i] += role != CST_FOLD_ALONE; /* the gift, or its return */
            assert_int_equal(cst_rd_sent(n, i, 1000), 1000 * sends[i]);
        }
        int pow2 = (n & (n - 1)) == 0;
        assert_int_equal(cst_rd_steps(n), cst_rd_exchanges(n) + (pow2 ? 0 : 2));
    }
}
static void halving_completes_one_chunk_each(void **state)
{
    (void)state;
    static set holds[MAX_N][MAX_N], before[MAX_N][MAX_N];
    for (int n = 1; n <= MAX_N; n++) {
        int p = cst_pow2_floor(n), steps = cst_rhd_halvings(n);
        set folded[MAX_N], owned = 0;
        fold_sets(n, folded);
        for (int i = 0; i < n; i++)
            for (int c = 0; c < p; c++)
                holds[i][c] = folded[i];
        for (int k = 0; k < steps; k++) {
            memcpy(before, holds, sizeof before);
            for (int i = 0; i < n; i++) {
                if (cst_fold(n, i) == CST_FOLD_GIVES)
                    continue;
                cst_rhd_step s = cst_rhd(n, i, k), theirs = cst_rhd(n, s.partner, k);
                assert_int_equal(theirs.partner, i);
                assert_int_equal(theirs.give_first, s.keep_first);
                assert_int_equal(theirs.chunks, s.chunks);
                for (int c = s.keep_first; c < s.keep_first + s.chunks; c++)
                    holds[i][c] = add(before[i][c], before[s.partner][c]);
                for (int c = s.give_first; c < s.give_first + s.chunks; c++)
                    holds[i][c] = 0; /* no longer needed */
            }
        }
        for (int i = 0; i < n; i++) {
            if (cst_fold(n, i) == CST_FOLD_GIVES)
                continue;
            assert_int_equal(holds[i][cst_rhd_owned_chunk(n, i)], all_of(n));
            owned = add(owned, one(cst_rhd_owned_chunk(n, i)));
        }
        assert_int_equal(owned, all_of(p));
        /* Doubling. */
        for (int k = steps - 1; k >= 0; k--) {
            memcpy(before, holds, sizeof before);
            for (int i = 0; i < n; i++) {
                if (cst_fold(n, i) == CST_FOLD_GIVES)
                    continue;
                cst_rhd_step s = cst_rhd(n, i, k);
                for (int c = s.give_first; c < s.give_first + s.chunks; c++)
                    holds[i][c] = before[s.partner][c];
            }
        }
        for (int i = 0; i < n; i++)
            for (int c = 0; c < p && cst_fold(n, i) != CST_FOLD_GIVES; c++)
                assert_int_equal(holds[i][c], all_of(n));
    }
}
static void halving_sends_as_little_as_the_ring(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n *= 2) {
        size_t count = (size_t)n * 8192;
        for (int i = 0; i < n; i++)
            assert_int_equal(cst_rhd_sent(n, i, count), cst_ring_sent(n, i, count));
        assert_int_equal(cst_rhd_steps(n), 2 * cst_log2_floor(n));
    }
    /* With folding, the pair sends its vector once each way on top. */
    size_t count = 4 * 8192;
    assert_int_equal(cst_rhd_sent(5, 0, count), count);
    assert_int_equal(cst_rhd_sent(5, 1, count), cst_rhd_sent(4, 1, count) + count);
    assert_int_equal(cst_rhd_sent(5, 2, count), cst_rhd_sent(4, 2, count));
}

/* ---- trees ---- */

static set subtree(int n, int tree, int rank)
{
    cst_tree_node node = cst_tree(n, tree, rank);
    set s = one(rank);
    for (int j = 0; j < 2; j++) {
        if (node.child[j] < 0)
            continue;
        assert_int_equal(cst_tree(n, tree, node.child[j]).parent, rank);
        s = add(s, subtree(n, tree, node.child[j]));
    }
    return s;
}
static void both_trees_span_all_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (int tree = 0; tree < CST_TREES; tree++) {
            int roots = 0;
            for (int rank = 0; rank < n; rank++) {
                assert_int_equal(cst_tree_rank(n, tree, cst_tree_label(n, tree, rank)), rank);
                if (cst_tree(n, tree, rank).parent >= 0)
                    continue;
                roots++;
                assert_int_equal(subtree(n, tree, rank), all_of(n));
            }
            assert_int_equal(roots, 1);
        }
        assert_true(cst_tree_steps(n) <= 2 * cst_log2_ceil(n));
    }
}
static void inner_nodes_of_one_tree_are_leaves_of_the_other(void **state)
{
    (void)state;
    for (int n = 2; n <= MAX_N; n++) {
        int twice_inner = 0;
        for (int rank = 0; rank < n; rank++) {
            int inner = 0, links = 0;
            for (int tree = 0; tree < CST_TREES; tree++) {
                cst_tree_node node = cst_tree(n, tree, rank);
                int children = (node.child[0] >= 0) + (node.child[1] >= 0);
                inner += children > 0;
                links += children + (node.parent >= 0);
            }
            twice_inner += inner > 1;
            /* Up and down together no rank sends more than two vectors (four halves). */
            assert_in_range(links, 1, n % 2 == 0 ? 4 : 5);
            assert_int_equal(cst_tree_sent(n, rank, 2000), 1000 * links);
        }
        assert_true(twice_inner <= n % 2);
    }
}
static void left_subtrees_lie_below_in_tree_0(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (int rank = 0; rank < n; rank++) {
            cst_tree_node node = cst_tree(n, 0, rank);
            for (int j = 0; j < 2; j++) {
                if (node.child[j] < 0)
                    continue;
                set s = subtree(n, 0, node.child[j]);
                assert_true(j == 0 ? s < one(rank) : s > one(rank) && (s & (one(rank) - 1)) == 0);
            }
        }
    }
}
static void binomial_tree_spans_all_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        for (int root = 0; root < n; root++) {
            set reached = one(root);
            int deepest = 0;
            for (int rank = 0; rank < n; rank++) {
                for (int j = 0; j < cst_binomial_children(n, root, rank); j++) {
                    int child = cst_binomial_child(n, rank, j);
                    assert_int_equal(cst_binomial_parent(n, root, child), rank);
                    reached = add(reached, one(child));
                }
                int depth = 0;
                for (int r = rank; r != root; r = cst_binomial_parent(n, root, r))
                    depth++;
                deepest = depth > deepest ? depth : deepest;
            }
            assert_int_equal(reached, all_of(n));
            assert_true(deepest <= cst_binomial_steps(n));
            assert_int_equal(cst_binomial_children(n, root, root), cst_binomial_steps(n));
        }
    }
}
static void dissemination_hears_of_all(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        set heard[MAX_N], before[MAX_N];
        for (int i = 0; i < n; i++)
            heard[i] = one(i);
        for (int k = 0; k < cst_dissemination_steps(n); k++) {
            memcpy(before, heard, sizeof before);
            for (int i = 0; i < n; i++) {
                int from = cst_dissemination_from(n, i, k);
                assert_int_equal(cst_dissemination_to(n, from, k), i);
                heard[i] |= before[from];
            }
        }
        for (int i = 0; i < n; i++)
            assert_int_equal(heard[i], all_of(n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_cover_the_vector_evenly),
        cmocka_unit_test(neighbouring_chunks_make_one_range),
        cmocka_unit_test(ring_is_the_textbooks),
        cmocka_unit_test(ring_completes_every_chunk),
        cmocka_unit_test(ring_sends_what_it_says),
        cmocka_unit_test(ring_allgather_starts_from_own_chunks),
        cmocka_unit_test(all_peers_are_served_without_collisions),
        cmocka_unit_test(direct_sends_as_little_as_the_ring),
        cmocka_unit_test(folding_numbers_the_takers),
        cmocka_unit_test(recursive_doubling_reaches_all),
        cmocka_unit_test(halving_completes_one_chunk_each),
        cmocka_unit_test(halving_sends_as_little_as_the_ring),
        cmocka_unit_test(both_trees_span_all_ranks),
        cmocka_unit_test(inner_nodes_of_one_tree_are_leaves_of_the_other),
        cmocka_unit_test(left_subtrees_lie_below_in_tree_0),
        cmocka_unit_test(binomial_tree_spans_all_ranks),
        cmocka_unit_test(dissemination_hears_of_all),
    };
    return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
