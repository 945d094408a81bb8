/* SPDX-License-Identifier: Apache-2.0 */
/* One row of 32 coordinates, checked at every word: the reference, and what the vector code does near the ends. */
#ifndef CST_KERNELS_ENTROPY_ENTROPY_SCALAR_H
#define CST_KERNELS_ENTROPY_ENTROPY_SCALAR_H
#include "kernels/entropy/tables.h"

/* The row's values are what has symbols (shifted already). The caller has made sure of the room. */
void cst_entropy_encode_row(cst_entropy_encoder *e, const cst_entropy_encode_table *table, const int32_t *values);
bool cst_entropy_decode_row(cst_entropy_decoder *d, const cst_entropy_decode_table *slots,
                            const cst_entropy_encode_table *table, int32_t *values);
/* Splits points: low bits are written downwards, values = (points + half) >> shift. */
void cst_entropy_split(const int32_t *points, uint32_t n, uint32_t shift, int32_t *values);
void cst_entropy_write_low_bits(cst_entropy_encoder *e, const int32_t *points, uint32_t n, uint32_t shift);
/* Where the n low parts start, the decoder moved past them; NULL if the stream is too short. */
const uint8_t *cst_entropy_take_low_bits(cst_entropy_decoder *d, uint32_t n, uint32_t shift);
/* values in, points out. */
void cst_entropy_join(const uint8_t *low_bits, uint32_t n, uint32_t shift, int32_t *values);
#endif
