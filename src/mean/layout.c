/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/layout.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static size_t units_of(size_t count)
{
    return (count + CST_UNIT - 1) / CST_UNIT;
}

static bool power_of_two(uint32_t x)
{
    return x && (x & (x - 1)) == 0;
}

bool cst_cut_valid(const cst_cut *c, size_t count)
{
    if (!power_of_two(c->block) || c->block < CST_UNIT || c->block > CST_BLOCK || count / CST_UNIT > UINT32_MAX / 2)
        return false;
    if (!c->grain)
        return !c->shares && !c->before && !c->total;
    return power_of_two(c->grain) && c->grain >= CST_UNIT && c->grain < CST_BLOCK && c->shares >= 2 &&
           c->shares <= UINT16_MAX && c->total / c->shares >= c->grain / CST_UNIT && c->before <= c->total &&
           units_of(count) <= c->total - c->before;
}

/* Where the part of the tensor that holds coordinate `at` ends. Shares are no shorter than the grain, so no two of them
 * end at the same place. */
static size_t part_end(const cst_cut *c, size_t count, size_t at)
{
    uint64_t j = c->grain ? (c->before + at / CST_UNIT) * c->shares / c->total : c->shares;
    for (; j < c->shares; j++) {
        uint64_t end = c->total * j / c->shares;
        end = end < c->before ? 0 : ((end - c->before) * CST_UNIT + c->grain / 2) / c->grain * c->grain;
        if (end > at && end < count)
            return (size_t)end;
        if (end >= count)
            break;
    }
    return count; /* where the call ends, nothing is rounded */
}

/* Bytes of both phases that a block of n padded coordinates takes: codes at the default budget; descriptors, statistics,
 * checks, a part of a sketch. Both fitted to calls of 1500 to 100000 coordinates. */
static uint32_t bytes_of(uint32_t n)
{
    const uint32_t side = 60, bits = 8;
    return n * bits / 8 + side;
}

/* Bytes of less than a whole block: padded, or cut in two; *take: the first block. */
static uint32_t bytes_of_rest(size_t rest, uint32_t *take)
{
    uint32_t n = cst_padded_length(rest), padded = bytes_of(n), unused;
    *take = (uint32_t)rest;
    if (rest <= n / 2 || rest <= CST_UNIT)
        return padded;
    uint32_t cut = bytes_of(n / 2) + bytes_of_rest(rest - n / 2, &unused);
    if (cut >= padded)
        return padded;
    *take = n / 2;
    return cut;
}

static uint32_t next_block(const cst_cut *c, size_t rest)
{
    uint32_t take = c->block;
    if (rest < c->block)
        bytes_of_rest(rest, &take);
    return take;
}

uint32_t cst_blocks_of(size_t count, const cst_cut *cut)
{
    uint32_t blocks = 0;
    for (size_t at = 0, end; at < count; at = end) {
        end = part_end(cut, count, at);
        blocks += (uint32_t)((end - at) / cut->block);
        for (size_t rest = (end - at) % cut->block; rest; rest -= next_block(cut, rest))
            blocks++;
    }
    return blocks;
}

static void cut_span(cst_layout *layout, uint32_t span, size_t count, const cst_cut *cut)
{
    uint32_t index = 0;
    for (size_t offset = 0, end = 0; offset < count; index++) {
        if (offset == end)
            end = part_end(cut, count, offset);
        uint32_t take = next_block(cut, end - offset);
        cst_block *b = &layout->blocks[layout->nblocks++];
        *b = (cst_block){span, index, offset, take, cst_padded_length(take), layout->padded};
        layout->padded += b->n;
        layout->coords += take;
        offset += take;
    }
}

coset_status cst_layout_make(cst_layout *layout, const coset_span *spans, const cst_cut *cut, size_t nspans,
                             coset_error *why)
{
    *layout = (cst_layout){0};
    uint64_t blocks = 0;
    for (size_t i = 0; i < nspans; i++) {
        if (spans[i].count / cut[i].block > UINT32_MAX / 4 || blocks > UINT32_MAX / 2)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "too many coordinates in one call: split it");
        blocks += cst_blocks_of(spans[i].count, &cut[i]);
    }
    layout->blocks = malloc((blocks ? blocks : 1) * sizeof *layout->blocks);
    if (!layout->blocks)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for the table of %llu blocks",
                        (unsigned long long)blocks);
    for (size_t i = 0; i < nspans; i++)
        cut_span(layout, (uint32_t)i, spans[i].count, &cut[i]);
    return COSET_OK;
}

void cst_layout_free(cst_layout *layout)
{
    free(layout->blocks);
    *layout = (cst_layout){0};
}

/* ---- dealing ---- */

/* From the end: owner j and those after it hold the blocks from late[j] on if each takes `most` at most and as much as that
 * allows. False: blocks are left. */
static bool deal_from_the_end(const uint32_t *weights, uint32_t nblocks, int n, uint64_t most, uint32_t *late)
{
    uint32_t b = nblocks;
    late[n] = b;
    for (int owner = n - 1; owner >= 0; owner--) {
        uint64_t held = 0;
        while (b && held + weights[b - 1] <= most)
            held += weights[--b];
        late[owner] = b;
    }
    return b == 0;
}

/* The least that the largest share can be. Leaves `late` filled in for it. */
static uint64_t least_share(const uint32_t *weights, uint32_t nblocks, int n, uint64_t total, uint32_t *late)
{
    uint64_t even = (total + (uint64_t)n - 1) / (uint64_t)n, heaviest = 0;
    for (uint32_t b = 0; b < nblocks; b++)
        heaviest = weights[b] > heaviest ? weights[b] : heaviest;
    /* An owner who takes no more has an even share at least, so with this much for each nothing is left. */
    uint64_t low = even > heaviest ? even : heaviest, high = even + heaviest;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (deal_from_the_end(weights, nblocks, n, middle, late))
            high = middle;
        else
            low = middle + 1;
    }
    deal_from_the_end(weights, nblocks, n, high, late);
    return high;
}

void cst_layout_deal(const uint32_t *weights, uint32_t nblocks, int n, uint32_t *first)
{
    uint64_t total = 0, before = 0;
    for (uint32_t b = 0; b < nblocks; b++)
        total += weights[b];
    uint64_t most = least_share(weights, nblocks, n, total, first); /* first[j]: where owner j begins at the earliest */
    uint32_t b = 0;
    for (int owner = 0; owner < n; owner++) {
        uint32_t begin = b, must = first[owner + 1];
        uint64_t held = 0;
        /* Up to the block whose middle lies beyond the owners' even shares so far, as long as the others can take the rest. */
        for (; b < nblocks && held + weights[b] <= most; held += weights[b++]) {
            uint64_t middle = 2 * (before + held) + weights[b];
            if (b >= must && middle * (uint64_t)n >= 2 * total * (uint64_t)(owner + 1))
                break;
        }
        before += held;
        first[owner] = begin;
    }
    first[n] = nblocks;
}

/* ---- the choice ---- */

typedef struct {
    const coset_span *spans;
    const cst_cut *given; /* block 0: to be chosen */
    size_t nspans;
    int owners;
    cst_cut *cut;    /* tried now: given ones as they are */
    uint32_t *first; /* room for the owners' shares */
} choice;

/* Cuts what is free alike: whole blocks of `block`, shares that end at multiples of `grain`. */
static void try_cut(const choice *c, uint32_t block, uint32_t grain)
{
    uint64_t before = 0, total = 0;
    for (size_t i = 0; i < c->nspans; i++)
        total += units_of(c->spans[i].count);
    bool shares = grain && total / (uint64_t)c->owners >= grain / CST_UNIT;
    for (size_t i = 0; i < c->nspans; before += units_of(c->spans[i++].count)) {
        c->cut[i] = c->given[i].block ? c->given[i] : (cst_cut){.block = block};
        if (shares && !c->given[i].block)
            c->cut[i] = (cst_cut){block, grain, (uint32_t)c->owners, (uint32_t)before, (uint32_t)total};
    }
}

/* Bytes of both phases in the largest share, as tried now. 0: no memory. */
static uint64_t largest_share(const choice *c)
{
    cst_layout layout;
    if (cst_layout_make(&layout, c->spans, c->cut, c->nspans, NULL) != COSET_OK)
        return 0;
    uint32_t *weights = calloc(layout.nblocks + 1, sizeof *weights);
    uint64_t most = 0;
    if (weights) {
        for (uint32_t b = 0; b < layout.nblocks; b++)
            weights[b] = bytes_of(layout.blocks[b].n);
        cst_layout_deal(weights, layout.nblocks, c->owners, c->first);
        for (int j = 0; j < c->owners; j++) {
            uint64_t sum = 1;
            for (uint32_t b = c->first[j]; b < c->first[j + 1]; b++)
                sum += weights[b];
            most = sum > most ? sum : most;
        }
    }
    cst_layout_free(&layout);
    free(weights);
    return most;
}

/* The largest blocks and the coarsest grain first: others must be worth more blocks. False: no memory. */
static bool choose(const choice *c, uint32_t *best_block, uint32_t *best_grain)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t block = CST_BLOCK; block >= CST_UNIT; block /= 2)
        for (uint32_t grain = block; grain >= CST_UNIT; grain /= 2) {
            try_cut(c, block, grain == block ? 0 : grain);
            uint64_t share = largest_share(c);
            if (share == 0)
                return false;
            if (share >= least - least / 192)
                continue;
            least = share;
            *best_block = block;
            *best_grain = grain == block ? 0 : grain;
        }
    return true;
}

coset_status cst_layout_choose(const coset_span *spans, cst_cut *cut, size_t nspans, int n)
{
    const size_t enough = 32; /* blocks per owner: they cannot be dealt badly */
    size_t coords = 0;
    bool free_ones = false;
    for (size_t i = 0; i < nspans; i++) {
        coords += spans[i].count;
        free_ones |= !cut[i].block;
    }
    if (!free_ones)
        return COSET_OK;
    uint32_t block = CST_BLOCK, grain = 0;
    choice c = {spans, cut, nspans, n, malloc(nspans * sizeof *c.cut), malloc(((size_t)n + 1) * sizeof *c.first)};
    bool good = c.cut && c.first && (coords / CST_BLOCK >= enough * (size_t)n || choose(&c, &block, &grain));
    if (good) {
        try_cut(&c, block, grain);
        memcpy(cut, c.cut, nspans * sizeof *cut);
    }
    free(c.cut);
    free(c.first);
    return good ? COSET_OK : COSET_ERR_MEMORY;
}
