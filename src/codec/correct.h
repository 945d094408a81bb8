/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correcting a wrong decode by its checksum alone.
 *
 * A residual that overflows is decoded to a neighbour in the coarse lattice: q times one minimal vector away, in one of
 * the cells whose residual lies closest to the border, with an inner product with that vector of nearly q. So the
 * difference of the checksums, sent less computed, is that of a few such corrections. All single ones, pairs and triples
 * among the likely ones are tried. With reach and planner as they are, one block in 20 needs it and one in 10^6 or 10^7
 * cannot be helped; a false match among a few million tries against 128 bits does not happen.
 */
#ifndef CST_CODEC_CORRECT_H
#define CST_CODEC_CORRECT_H
#include "codec/block.h"

/* `points` and `value` are what decoding gave against scale * ref with modulus q; got: its checksum, want: the one sent.
 * True: points are now those of the checksum `want`. False: points are as they were. */
bool cst_correct(const cst_tools *tools, const cst_lattice_block *block, uint8_t code, int32_t q, const float *ref,
                 float scale, const float *value, cst_checksum got, cst_checksum want, int32_t *points);
#endif
