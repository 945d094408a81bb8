/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tensors of a call are cut into blocks, and the blocks dealt to owners. Pure arithmetic.
 *
 * A tensor is cut into blocks of 4096 coordinates. What remains is padded to a power of two, or cut further where that
 * takes fewer bytes (2100 = 2048 + 52). Blocks never straddle tensors; they are
 * numbered through the call, span after span. Owner j has the blocks first[j] .. first[j + 1] - 1.
 *
 * All frames of a transfer are as large as the largest, so a few large blocks would be dealt badly. Where a call has few,
 * its tensors are cut in two wherever an even share of the call ends, and each part as if it were a tensor; or all whole
 * blocks are smaller; or both. A tensor stays cut as its first call has cut it.
 */
#ifndef CST_MEAN_LAYOUT_H
#define CST_MEAN_LAYOUT_H
#include "codec/block.h"

#include <coset_mean.h>

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t span;  /* of the call */
    uint32_t index; /* in the tensor */
    size_t offset;  /* first coordinate in the span */
    uint32_t count; /* coordinates, 1 .. 4096 */
    uint32_t n;     /* padded length */
    size_t at;      /* where its n coordinates lie in a buffer that holds all blocks padded */
} cst_block;

typedef struct {
    cst_block *blocks;
    uint32_t nblocks;
    size_t coords, padded; /* of all blocks */
} cst_layout;

/* How a tensor is cut. */
typedef struct {
    uint32_t block;  /* coordinates of a whole block, a power of two, 128 to 4096; 0: not cut yet */
    uint32_t grain;  /* shares end at multiples of it, a power of two from 128 on; 0: they cut nothing */
    uint32_t shares; /* if grain: of the call that cut it; `total` holds at least one grain for each */
    uint32_t before; /* if grain: units of 128 coordinates (begun ones, of each tensor) that came before the tensor */
    uint32_t total;  /* ... and of the whole call */
} cst_cut;

/* Does it mean anything, for a tensor of `count` coordinates? */
bool cst_cut_valid(const cst_cut *cut, size_t count);
/* How many blocks `count` coordinates make. */
uint32_t cst_blocks_of(size_t count, const cst_cut *cut);

/* cut[i]: of span i. MEMORY, or ARGUMENT when there are more than 2^32 - 1 blocks. */
coset_status cst_layout_make(cst_layout *layout, const coset_span *spans, const cst_cut *cut, size_t nspans,
                             coset_error *why);
/* Fills in cut[i] where its `block` is 0, so that the largest share of n owners takes the fewest bytes, what each block
 * costs beside its codes counted. MEMORY. */
coset_status cst_layout_choose(const coset_span *spans, cst_cut *cut, size_t nspans, int n);
void cst_layout_free(cst_layout *layout);

/* Deals `nblocks` blocks of the given weights (all positive) to n owners, in order, so that the largest sum is as small as it
 * can be, and the others as even as that allows. first: n + 1 entries. */
void cst_layout_deal(const uint32_t *weights, uint32_t nblocks, int n, uint32_t *first);
#endif
