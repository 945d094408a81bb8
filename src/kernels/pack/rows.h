/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of 16 32-bit words, little-endian, the last one cut to whole byte planes (pack.h): shared by all variants. */
#ifndef CST_KERNELS_PACK_ROWS_H
#define CST_KERNELS_PACK_ROWS_H
#include <stdint.h>

#include "kernels/block.h"

enum { CST_ROW_BYTES = 4 * CST_LANES };

static inline uint32_t cst_load_le32(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}
static inline void cst_store_le32(uint8_t *out, uint32_t word)
{
    for (int b = 0; b < 4; b++)
        out[b] = (uint8_t)(word >> (8 * b));
}
/* Bits that a block of units takes in each lane. */
static inline uint32_t cst_lane_bits(const uint8_t *classes, uint32_t units)
{
    uint32_t bits = 0;
    for (uint32_t u = 0; u < units; u++)
        bits += 2u * classes[u];
    return bits;
}
/* The low `bits` (1..32) of each word, as byte planes. */
static inline void cst_store_planes(const uint32_t row[CST_LANES], uint32_t bits, uint8_t *out)
{
    for (uint32_t plane = 0; 8 * plane < bits; plane++)
        for (uint32_t l = 0; l < CST_LANES; l++)
            out[CST_LANES * plane + l] = (uint8_t)(row[l] >> (8 * plane));
}
static inline void cst_load_planes(const uint8_t *in, uint32_t bits, uint32_t row[CST_LANES])
{
    for (uint32_t l = 0; l < CST_LANES; l++)
        row[l] = 0;
    for (uint32_t plane = 0; 8 * plane < bits; plane++)
        for (uint32_t l = 0; l < CST_LANES; l++)
            row[l] |= (uint32_t)in[CST_LANES * plane + l] << (8 * plane);
}
#endif
