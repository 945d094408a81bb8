/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantisers of kernels/quantise in f64, plain C, for blocks that f32 cannot resolve: where the mean is more than 2^14
 * spreads, or |x| / step too large for the kernels. Same layout, dither, points, colours and packed bytes, so that only
 * the header of a block tells the receiver to decode it this way. |x| / step below CST_LATTICE64_LIMIT.
 */
#ifndef CST_LATTICE_BLOCK64_H
#define CST_LATTICE_BLOCK64_H
#include "lattice/lattice.h"

#define CST_LATTICE64_LIMIT 0x1p27 /* basis coefficients of E8 then fit an int32 */

/* points: n; the checksum is theirs. block->weight says which rounding (quantise.h). */
cst_checksum cst_quantise_f64(cst_lattice_kind kind, const cst_lattice_block *block, const double *x, int32_t *points);
/* Packed bytes of points (any int32, where the packing kernels want less than 2^22). */
void cst_pack_f64(cst_lattice_kind kind, const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out);
/* points may be NULL; out may be ref. */
cst_checksum cst_decode_f64(cst_lattice_kind kind, const cst_lattice_block *block, const uint8_t *in,
                            const uint8_t *classes, const double *ref, double scale, double *out, int32_t *points);
cst_checksum cst_reconstruct_f64(cst_lattice_kind kind, const cst_lattice_block *block, const int32_t *points,
                                 double *out);
#endif
