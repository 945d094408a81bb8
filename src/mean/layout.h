/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tensors of a call are cut into blocks, and the blocks dealt to owners. Pure arithmetic.
 *
 * A tensor is cut into blocks of 4096 coordinates, or smaller ones where a call has so few that they could not be dealt
 * evenly: all frames of a transfer are as large as the largest. What remains is cut further where padding it to a power of two would
 * waste more than an eighth (2100 = 2048 + 52), so that padding costs little. Blocks never straddle tensors; they are
 * numbered through the call, span after span. Owner j has the blocks first[j] .. first[j + 1] - 1.
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

/* How many blocks `count` coordinates make, in whole ones of `block` (a power of two, 128 to 4096). */
uint32_t cst_blocks_of(size_t count, uint32_t block);

/* block[i]: of span i. MEMORY, or ARGUMENT when there are more than 2^32 - 1 blocks. */
coset_status cst_layout_make(cst_layout *layout, const coset_span *spans, const uint32_t *block, size_t nspans,
                             coset_error *why);
/* The size of blocks, for all spans whose block[i] is 0, with which the largest share of n owners takes the fewest bytes, what
 * each block costs beside its codes counted. 0: no memory. */
uint32_t cst_layout_choose(const coset_span *spans, const uint32_t *block, size_t nspans, int n);
void cst_layout_free(cst_layout *layout);

/* Deals `nblocks` blocks of the given weights (all positive) to n owners, in order, so that the largest sum is small:
 * owner j begins with the block that holds the j-th n-th of the total. first: n + 1 entries. */
void cst_layout_deal(const uint32_t *weights, uint32_t nblocks, int n, uint32_t *first);
#endif
