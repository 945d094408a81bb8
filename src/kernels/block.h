/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Geometry of a block, shared by all kernels of the compressed path.
 *
 * A tensor is cut into blocks of 4096 coordinates; the last one is padded with zeros to the next power of two that is
 * at least 128. The kernels see only the padded length n. Inside a block
 *
 *     coordinate 128u + 16t + l   is lane l (0..15) of vector t (0..7) of unit u,
 *
 * and an 8-dimensional lattice cell is made of the eight vectors' values in one lane (coordinates 16 apart), so that
 * vector units work on 16 cells at once without any transposition. A rotated block is exchangeable, so nothing is lost
 * by this choice of neighbours. Sixteen lanes are part of the wire format; a machine with shorter vectors does the same
 * lanes in turn and gets the same bits.
 */
#ifndef CST_KERNELS_BLOCK_H
#define CST_KERNELS_BLOCK_H
#include <stddef.h>
#include <stdint.h>

enum {
    CST_BLOCK = 4096, /* coordinates of a full block */
    CST_UNIT = 128,   /* the natural unit: 16 lanes of 8 vectors; lengths are multiples of it */
    CST_LANES = 16,   /* virtual lanes */
    CST_UNIT_VECTORS = CST_UNIT / CST_LANES,
    CST_BLOCK_UNITS = CST_BLOCK / CST_UNIT
};

/* Length that `count` coordinates (1..CST_BLOCK) take after zero padding: a power of two from 128 to 4096. */
static inline uint32_t cst_padded_length(size_t count)
{
    uint32_t n = CST_UNIT;
    while (n < count)
        n *= 2;
    return n;
}
#endif
