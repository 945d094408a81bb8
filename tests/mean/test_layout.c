/* SPDX-License-Identifier: Apache-2.0 */
/* How calls are cut into blocks and blocks dealt to owners: what must hold of any, and that no deal is better. */
#include "kernels/block.h"
#include "mean/layout.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- dealing ---- */

static uint64_t largest(const uint32_t *weights, const uint32_t *first, int n)
{
    uint64_t most = 0;
    for (int j = 0; j < n; j++) {
        uint64_t sum = 0;
        for (uint32_t b = first[j]; b < first[j + 1]; b++)
            sum += weights[b];
        most = sum > most ? sum : most;
    }
    return most;
}

/* Tries all. */
static uint64_t best_of_all(const uint32_t *weights, uint32_t nblocks, int n)
{
    uint64_t best = UINT64_MAX, sum = 0;
    if (n == 1) {
        for (uint32_t b = 0; b < nblocks; b++)
            sum += weights[b];
        return sum;
    }
    for (uint32_t take = 0; take <= nblocks; sum += take < nblocks ? weights[take] : 0, take++) {
        uint64_t rest = best_of_all(weights + take, nblocks - take, n - 1), most = rest > sum ? rest : sum;
        best = most < best ? most : best;
    }
    return best;
}

static void deal(const uint32_t *weights, uint32_t nblocks, int n)
{
    uint32_t first[8];
    cst_layout_deal(weights, nblocks, n, first);
    assert_int_equal(first[0], 0);
    assert_int_equal(first[n], nblocks);
    for (int j = 0; j < n; j++)
        assert_true(first[j] <= first[j + 1]);
    assert_int_equal(largest(weights, first, n), best_of_all(weights, nblocks, n));
}

/* Up to seven blocks of weight 1, 3 or 7, up to five owners. */
static void no_deal_is_better(void **state)
{
    (void)state;
    const uint32_t of[3] = {1, 3, 7};
    for (uint32_t nblocks = 0, cases = 1; nblocks <= 7; nblocks++, cases *= 3)
        for (uint32_t k = 0; k < cases; k++) {
            uint32_t weights[8] = {0}, rest = k;
            for (uint32_t b = 0; b < nblocks; b++, rest /= 3)
                weights[b] = of[rest % 3];
            for (int n = 1; n <= 5; n++)
                deal(weights, nblocks, n);
        }
}

static void equal_blocks_are_spread(void **state)
{
    (void)state;
    uint32_t weights[64], first[8];
    for (int b = 0; b < 64; b++)
        weights[b] = 4096;
    for (int n = 1; n < 8; n++)
        for (uint32_t nblocks = 0; nblocks <= 64; nblocks++) {
            cst_layout_deal(weights, nblocks, n, first);
            uint32_t most = (nblocks + (uint32_t)n - 1) / (uint32_t)n;
            for (int j = 0; j < n; j++) {
                uint32_t has = first[j + 1] - first[j];
                assert_true(has <= most && has + 1 >= nblocks / (uint32_t)n);
            }
        }
}

/* ---- cutting ---- */

enum { SPANS = 4, SIDE = 60 /* bytes of a block beside its codes, at a byte per coordinate */ };

typedef struct {
    coset_span spans[SPANS];
    cst_cut cut[SPANS];
    int owners;
} call;

static uint64_t share_of(const call *c, const cst_cut *cut)
{
    cst_layout layout;
    assert_int_equal(cst_layout_make(&layout, c->spans, cut, SPANS, NULL), COSET_OK);
    uint32_t *weights = calloc(layout.nblocks + 1, sizeof *weights),
             *first = calloc((size_t)c->owners + 1, sizeof *first);
    assert_true(weights && first);
    for (uint32_t b = 0; b < layout.nblocks; b++)
        weights[b] = layout.blocks[b].n + SIDE;
    cst_layout_deal(weights, layout.nblocks, c->owners, first);
    uint64_t most = largest(weights, first, c->owners);
    free(weights);
    free(first);
    cst_layout_free(&layout);
    return most;
}

/* Blocks follow each other through every tensor, none empty, padded by no more coordinates than it would cost bytes to cut five times. */
static void check_blocks(const call *c)
{
    cst_layout layout;
    assert_int_equal(cst_layout_make(&layout, c->spans, c->cut, SPANS, NULL), COSET_OK);
    uint32_t b = 0;
    for (uint32_t i = 0; i < SPANS; i++) {
        size_t at = 0;
        uint32_t index = 0;
        for (; b < layout.nblocks && layout.blocks[b].span == i; b++) {
            const cst_block *block = &layout.blocks[b];
            assert_int_equal(block->index, index++);
            assert_int_equal(block->offset, at);
            assert_true(block->count > 0 && block->count <= block->n && block->n <= c->cut[i].block);
            assert_true(block->n - (block->count + CST_UNIT - 1) / CST_UNIT * CST_UNIT <= 5 * SIDE);
            at += block->count;
        }
        assert_int_equal(at, c->spans[i].count);
        assert_int_equal(index, cst_blocks_of(c->spans[i].count, &c->cut[i]));
        assert_true(cst_cut_valid(&c->cut[i], c->spans[i].count));
    }
    assert_int_equal(b, layout.nblocks);
    cst_layout_free(&layout);
}

/* Sizes of all magnitudes: never worse than whole blocks, all the same when asked again, and within a seventh of an
 * even deal where there are 4096 coordinates and more for each owner. */
static void cuts_are_even(void **state)
{
    (void)state;
    static float memory[1];
    double worst = 0;
    uint64_t random = 1;
    for (int k = 0; k < 3000; k++) {
        call c = {.owners = 2 + k % 9};
        size_t coords = 0;
        for (int i = 0; i < SPANS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t count = (size_t)((random >> 33) % ((size_t)1 << (random >> 60)) * 3);
            c.spans[i] = (coset_span){(uint64_t)i, memory, memory, count};
            coords += count;
        }
        cst_cut whole[SPANS] = {{.block = 4096}, {.block = 4096}, {.block = 4096}, {.block = 4096}},
                again[SPANS] = {{0}};
        assert_int_equal(cst_layout_choose(c.spans, c.cut, SPANS, c.owners), COSET_OK);
        assert_int_equal(cst_layout_choose(c.spans, again, SPANS, c.owners), COSET_OK);
        assert_memory_equal(again, c.cut, sizeof again);
        check_blocks(&c);
        uint64_t share = share_of(&c, c.cut);
        assert_true(share <= share_of(&c, whole));
        double even = (double)coords / c.owners, ratio = even > 0 ? (double)share / even : 1;
        if (even >= 4096 && ratio > worst)
            worst = ratio;
    }
    printf("the largest share is at most %.3f of an even one\n", worst);
    assert_true(worst < 1.15);
}

/* What a tensor's first call has settled stays, whatever comes with it later. */
static void given_cuts_stay(void **state)
{
    (void)state;
    static float memory[1];
    call c = {.owners = 4};
    for (int i = 0; i < SPANS; i++)
        c.spans[i] = (coset_span){(uint64_t)i, memory, memory, 5000 * (size_t)(i + 1)};
    assert_int_equal(cst_layout_choose(c.spans, c.cut, SPANS, 4), COSET_OK);
    cst_cut mixed[SPANS] = {c.cut[0], {0}, c.cut[2], {0}};
    assert_int_equal(cst_layout_choose(c.spans, mixed, SPANS, 4), COSET_OK);
    assert_memory_equal(&mixed[0], &c.cut[0], sizeof(cst_cut));
    assert_memory_equal(&mixed[2], &c.cut[2], sizeof(cst_cut));
    memcpy(c.cut, mixed, sizeof mixed);
    check_blocks(&c);
}

static void meaningless_cuts_are_refused(void **state)
{
    (void)state;
    const cst_cut bad[] = {
        {0},
        {64, 0, 0, 0, 0},
        {96, 0, 0, 0, 0},
        {8192, 0, 0, 0, 0},
        {4096, 0, 2, 0, 8},     /* shares without a grain */
        {4096, 64, 2, 0, 8},    /* grains of no unit */
        {4096, 384, 2, 0, 8},   /* of no power of two */
        {4096, 4096, 2, 0, 80}, /* as large as blocks */
        {4096, 128, 1, 0, 8},   /* one share */
        {4096, 128, 65536, 0, 100000},
        {4096, 256, 4, 0, 7}, /* less than a grain for each share */
        {4096, 128, 2, 9, 8}, /* beyond the call */
        {4096, 128, 2, 1, 8}, /* 1000 coordinates are eight units */
        {4096, 128, 0, 0, 8},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cst_cut_valid(&bad[i], 1000));
    assert_true(cst_cut_valid(&(cst_cut){4096, 128, 2, 0, 8}, 1000));
    assert_true(cst_cut_valid(&(cst_cut){128, 0, 0, 0, 0}, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_deal_is_better),
        cmocka_unit_test(equal_blocks_are_spread),
        cmocka_unit_test(cuts_are_even),
        cmocka_unit_test(given_cuts_stay),
        cmocka_unit_test(meaningless_cuts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
