/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homomorphic codes: one byte per coordinate, whose wrapping sum over the ranks is the colour of the sum of their
 * lattice points modulo 256, so any engine that adds unsigned bytes carries the mean.
 *
 * Rank u's dither is theta_u = A + u B, A and B uniform and independent per coordinate (streams of the block): the theta_u
 * are pairwise independent, and their sum is n A + n (n-1)/2 B without regenerating n streams.
 *
 *     encode   z_u = NEAREST(x / step + unit (A + u B))                      byte i = colour of coordinate i mod 256
 *     decode   z = the point of the sum's colour nearest to  n scale ref / step + unit (n A + n(n-1)/2 B)
 *              mean = step / n (z - unit (n A + n(n-1)/2 B))
 *
 * z is the exact sum of the ranks' points if the sum of x / step is within 127.5 (Z, per coordinate) less n/2 of
 * n scale ref / step. Checksums of the ranks add up (in 64-bit words, carried apart) to that of z.
 * Contract as in quantise.h; ranks up to 4096, |x| / step below 2^19.
 */
#ifndef CST_KERNELS_QUANTISE_SUM_H
#define CST_KERNELS_QUANTISE_SUM_H
#include "kernels/quantise/quantise.h"

typedef struct {
    uint32_t n;
    float step;
    cst_stream dither; /* A: use CST_USE_DITHER, sender CST_EVERY_SENDER */
    cst_stream slope;  /* B: use CST_USE_SLOPE, sender CST_EVERY_SENDER */
    const int32_t *keys;
} cst_sum_block;

typedef struct {
    /* codes: n bytes; points may be NULL. */
    cst_checksum (*encode)(const cst_sum_block *block, const float *x, uint32_t sender, uint8_t *codes,
                           int32_t *points);
    cst_checksum (*decode)(const cst_sum_block *block, const uint8_t *codes, uint32_t ranks, const float *ref,
                           float scale, float *mean, int32_t *points);
    /* The mean from the points' exact sum: repairs. */
    cst_checksum (*reconstruct)(const cst_sum_block *block, const int32_t *points, uint32_t ranks, float *mean);
} cst_sum_kernels;

const cst_sum_kernels *cst_sum_kernels_for(cst_lattice_kind lattice, int cpu_level);

extern const cst_sum_kernels cst_sum_z_scalar, cst_sum_z_avx2, cst_sum_z_avx512;
extern const cst_sum_kernels cst_sum_e8_scalar, cst_sum_e8_avx2, cst_sum_e8_avx512;
#endif
