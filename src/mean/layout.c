/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/layout.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

static uint32_t next_block(size_t rest, uint32_t block)
{
    return rest >= block ? block : cst_next_block(rest);
}

uint32_t cst_blocks_of(size_t count, uint32_t block)
{
    uint32_t blocks = (uint32_t)(count / block);
    for (size_t rest = count % block; rest; rest -= cst_next_block(rest))
        blocks++;
    return blocks;
}

static void cut_span(cst_layout *layout, uint32_t span, size_t count, uint32_t block)
{
    uint32_t index = 0;
    for (size_t offset = 0; offset < count; index++) {
        uint32_t take = next_block(count - offset, block);
        cst_block *b = &layout->blocks[layout->nblocks++];
        *b = (cst_block){span, index, offset, take, cst_padded_length(take), layout->padded};
        layout->padded += b->n;
        layout->coords += take;
        offset += take;
    }
}

coset_status cst_layout_make(cst_layout *layout, const coset_span *spans, const uint32_t *block, size_t nspans,
                             coset_error *why)
{
    *layout = (cst_layout){0};
    uint64_t blocks = 0;
    for (size_t i = 0; i < nspans; i++) {
        if (spans[i].count / block[i] > UINT32_MAX / 2 || blocks > UINT32_MAX / 2)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "too many coordinates in one call: split it");
        blocks += cst_blocks_of(spans[i].count, block[i]);
    }
    layout->blocks = malloc((blocks ? blocks : 1) * sizeof *layout->blocks);
    if (!layout->blocks)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for the table of %llu blocks",
                        (unsigned long long)blocks);
    for (size_t i = 0; i < nspans; i++)
        cut_span(layout, (uint32_t)i, spans[i].count, block[i]);
    return COSET_OK;
}

void cst_layout_free(cst_layout *layout)
{
    free(layout->blocks);
    *layout = (cst_layout){0};
}

void cst_layout_deal(const uint32_t *weights, uint32_t nblocks, int n, uint32_t *first)
{
    uint64_t total = 0, before = 0;
    for (uint32_t b = 0; b < nblocks; b++)
        total += weights[b];
    int owner = 0;
    for (uint32_t b = 0; b < nblocks; b++) {
        /* The block's middle decides: the owner whose share of 0 .. total holds it. */
        uint64_t middle = 2 * before + weights[b];
        while (owner < n && middle * (uint64_t)n >= 2 * total * (uint64_t)owner)
            first[owner++] = b;
        before += weights[b];
    }
    while (owner <= n)
        first[owner++] = nblocks;
}

/* Bytes of both phases in the largest share, with `size` for those that are free. 0: no memory. */
static uint64_t largest_share(const coset_span *spans, const uint32_t *block, size_t nspans, int n, uint32_t size)
{
    const uint32_t side = 44, bits = 9; /* per block: descriptors, statistics, checks; per coordinate */
    cst_layout layout = {0};
    uint32_t *sizes = malloc((nspans ? nspans : 1) * sizeof *sizes), *weights = NULL, *first = NULL;
    for (size_t i = 0; sizes && i < nspans; i++)
        sizes[i] = block[i] ? block[i] : size;
    if (sizes && cst_layout_make(&layout, spans, sizes, nspans, NULL) == COSET_OK) {
        weights = calloc(layout.nblocks + 1, sizeof *weights);
        first = calloc((size_t)n + 1, sizeof *first);
    }
    uint64_t most = 0;
    if (weights && first) {
        for (uint32_t b = 0; b < layout.nblocks; b++)
            weights[b] = layout.blocks[b].n * bits / 8 + side;
        cst_layout_deal(weights, layout.nblocks, n, first);
        for (int j = 0; j < n; j++) {
            uint64_t sum = 1;
            for (uint32_t b = first[j]; b < first[j + 1]; b++)
                sum += weights[b];
            most = sum > most ? sum : most;
        }
    }
    cst_layout_free(&layout);
    free(sizes);
    free(weights);
    free(first);
    return most;
}

uint32_t cst_layout_choose(const coset_span *spans, const uint32_t *block, size_t nspans, int n)
{
    const size_t enough = 16; /* blocks per owner: they cannot be dealt badly */
    size_t coords = 0;
    bool free_ones = false;
    for (size_t i = 0; i < nspans; i++) {
        coords += spans[i].count;
        free_ones |= !block[i];
    }
    if (!free_ones || coords / CST_BLOCK >= enough * (size_t)n)
        return CST_BLOCK;
    uint32_t best = CST_BLOCK;
    uint64_t least = largest_share(spans, block, nspans, n, best);
    for (uint32_t size = CST_BLOCK / 2; least && size >= CST_UNIT; size /= 2) {
        uint64_t share = largest_share(spans, block, nspans, n, size);
        if (share == 0)
            return 0;
        if (share < least - least / 32) { /* for less it is not worth more blocks */
            least = share;
            best = size;
        }
    }
    return least ? best : 0;
}
