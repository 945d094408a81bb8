/* SPDX-License-Identifier: Apache-2.0 */
/* A long call cut into segments: nothing lost, nothing twice, the same pieces in any company. */
#include "unit.h"

#include "mean/cuts.h"

#include <stdint.h>
#include <stdlib.h>

enum { LENGTH = 1 << 15, BLOCK = 4096, SPANS = 40 };

static float *const memory = (float *)4096; /* never touched */

static size_t fill(coset_span *spans, size_t n, unsigned seed)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        size_t count = (seed >> 8) % (seed % 3 ? 3000 : 10 * LENGTH);
        spans[i] = (coset_span){i + 1, memory + at, memory + at, count};
        at += count;
    }
    return at;
}

static void pieces_cover_the_spans_in_order(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        coset_span spans[SPANS];
        cst_cuts cuts;
        size_t n = seed % (SPANS + 1), total = fill(spans, n, seed), at = 0, owner = 0, within = 0;
        assert_int_equal(cst_cuts_make(&cuts, spans, n, COSET_F32, LENGTH), COSET_OK);
        assert_int_equal(cuts.first[0], 0);
        for (size_t k = 0; k < cuts.count; k++) {
            size_t held = 0;
            for (size_t i = cuts.first[k]; i < cuts.first[k + 1]; i++) {
                const coset_span *s = &cuts.spans[i];
                assert_ptr_equal(s->send, memory + at);
                assert_ptr_equal(s->recv, memory + at);
                if (within) { /* a tensor goes on: at a whole block */
                    assert_int_equal(within % BLOCK, 0);
                    assert_true(s->id != spans[owner].id);
                } else {
                    assert_int_equal(s->id, spans[owner].id);
                }
                within += s->count;
                at += s->count;
                held += s->count;
                if (within == spans[owner].count) {
                    owner++;
                    within = 0;
                }
            }
            assert_true(held <= LENGTH + LENGTH / 2 + BLOCK);
            if (n)
                assert_true(cuts.first[k + 1] > cuts.first[k]);
        }
        assert_int_equal(at, total);
        assert_int_equal(owner, n);
        cst_cuts_free(&cuts);
    }
}

static void company_changes_no_piece(void **state)
{
    (void)state;
    coset_span spans[SPANS];
    fill(spans, SPANS, 7);
    cst_cuts all;
    assert_int_equal(cst_cuts_make(&all, spans, SPANS, COSET_F32, LENGTH), COSET_OK);
    size_t at = 0;
    for (size_t i = 0; i < SPANS; i++) {
        cst_cuts one;
        assert_int_equal(cst_cuts_make(&one, &spans[i], 1, COSET_F32, LENGTH), COSET_OK);
        for (size_t k = 0; k < one.first[one.count]; k++, at++) {
            assert_int_equal(one.spans[k].id, all.spans[at].id);
            assert_int_equal(one.spans[k].count, all.spans[at].count);
        }
        cst_cuts_free(&one);
    }
    cst_cuts_free(&all);
}

static void nothing_is_cut_without_a_length_or_buffers(void **state)
{
    (void)state;
    coset_span spans[2] = {{1, memory, memory, 100 * LENGTH}, {2, memory, NULL, 100 * LENGTH}};
    cst_cuts cuts;
    assert_int_equal(cst_cuts_make(&cuts, spans, 2, COSET_F32, 0), COSET_OK);
    assert_int_equal(cuts.count, 1);
    assert_int_equal(cuts.first[1], 2);
    cst_cuts_free(&cuts);
    assert_int_equal(cst_cuts_make(&cuts, spans + 1, 1, COSET_F32, LENGTH), COSET_OK);
    assert_int_equal(cuts.first[cuts.count], 1);
    cst_cuts_free(&cuts);
}

/* Far beyond memory: arithmetic must not overflow, the last piece must not be empty. */
static void huge_counts(void **state)
{
    (void)state;
    for (size_t count = ((size_t)1 << 33) - 3; count < ((size_t)1 << 33) + 3; count++) {
        coset_span span = {1, memory, memory, count};
        cst_cuts cuts;
        size_t total = 0;
        assert_int_equal(cst_cuts_make(&cuts, &span, 1, COSET_F64, (size_t)1 << 20), COSET_OK);
        for (size_t i = 0; i < cuts.first[cuts.count]; i++) {
            assert_true(cuts.spans[i].count > 0);
            total += cuts.spans[i].count;
        }
        assert_int_equal(total, count);
        cst_cuts_free(&cuts);
    }
}

static void every_owner_fills_its_streams(void **state)
{
    (void)state;
    for (int owners = 0; owners < 5000; owners++) {
        size_t wished = (size_t)1 << 20, length = cst_cut_length(wished, owners);
        assert_true(length >= wished && length >= (size_t)owners * 32 * BLOCK);
        assert_true(length == wished || length == (size_t)owners * 32 * BLOCK);
        assert_int_equal(cst_cut_length(0, owners), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_the_spans_in_order),
        cmocka_unit_test(company_changes_no_piece),
        cmocka_unit_test(nothing_is_cut_without_a_length_or_buffers),
        cmocka_unit_test(huge_counts),
        cmocka_unit_test(every_owner_fills_its_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
