/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/layout.h"

#include "base/alloc.h"

/* Rings cost size^2 * cells * 4 KiB on a host: fewer cells when there are many ranks. */
static uint32_t cells_for(int size)
{
    return size <= 16 ? 16 : size <= 64 ? 4 : 2;
}

cst_layout cst_layout_for(int size, uint32_t blocks, size_t block_bytes)
{
    cst_layout l = {.size = size, .cells = cells_for(size), .blocks = blocks, .block_bytes = block_bytes};
    l.ring_bytes = cst_round_up(sizeof(cst_ring) + l.cells * sizeof(cst_cell), CST_LINE);
    l.left = sizeof(cst_post);
    l.slots = l.left + (size_t)size * sizeof(cst_word);
    l.block_flags = l.slots + CST_SLOTS * sizeof(cst_word);
    l.rings = cst_round_up(l.block_flags + blocks * sizeof(cst_word), CST_LINE);
    l.stage = cst_round_up(l.rings + (size_t)size * l.ring_bytes, 4096);
    l.bytes = l.stage + blocks * block_bytes;
    return l;
}
