/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/layout.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

uint32_t cst_blocks_of(size_t count)
{
    uint32_t blocks = (uint32_t)(count / CST_BLOCK);
    for (size_t rest = count % CST_BLOCK; rest; rest -= cst_next_block(rest))
        blocks++;
    return blocks;
}

static void cut_span(cst_layout *layout, uint32_t span, size_t count)
{
    uint32_t index = 0;
    for (size_t offset = 0; offset < count; index++) {
        uint32_t take = cst_next_block(count - offset);
        cst_block *b = &layout->blocks[layout->nblocks++];
        *b = (cst_block){span, index, offset, take, cst_padded_length(take), layout->padded};
        layout->padded += b->n;
        layout->coords += take;
        offset += take;
    }
}

coset_status cst_layout_make(cst_layout *layout, const coset_span *spans, size_t nspans, coset_error *why)
{
    *layout = (cst_layout){0};
    uint64_t blocks = 0;
    for (size_t i = 0; i < nspans; i++) {
        if (spans[i].count / CST_BLOCK > UINT32_MAX / 2 || blocks > UINT32_MAX / 2)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "too many coordinates in one call: split it");
        blocks += cst_blocks_of(spans[i].count);
    }
    layout->blocks = malloc((blocks ? blocks : 1) * sizeof *layout->blocks);
    if (!layout->blocks)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for the table of %llu blocks",
                        (unsigned long long)blocks);
    for (size_t i = 0; i < nspans; i++)
        cut_span(layout, (uint32_t)i, spans[i].count);
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
