/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks in f64, for means that dwarf the spread (beyond 2^13 spreads f32 rotations and integers would cost accuracy):
 * the cubic lattice with 64-bit integers, colours modulo 2^class, class bits each in coordinate order. Rare, so plain C.
 *
 * k = floor(x / step + theta + 1/2); decoded against r: the k of its colour with |k - r/step - theta| smallest.
 */
#ifndef CST_CODEC_WIDE_H
#define CST_CODEC_WIDE_H
#include "codec/block.h"

/* |x| / step is below 2^52. Integers, their checksum, and step (k - theta) into `value` (may be NULL, or x). */
cst_checksum cst_wide_quantise(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const double *x,
                               int64_t *k, double *value);
/* Values of such integers, in units of id->exponent. */
void cst_wide_values(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const int64_t *k,
                     double *value);
void cst_wide_pack(const int64_t *k, uint32_t n, unsigned bits, uint8_t *out);
/* Decodes against ref; the checksum tells whether it went well. value may be ref. */
cst_checksum cst_wide_decode(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const uint8_t *in,
                             const double *ref, double *value);
/* The same from whole integers, 8 bytes each. */
cst_checksum cst_wide_plain(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const uint8_t *in,
                            double *value);
void cst_wide_plain_write(const int64_t *k, uint32_t n, uint8_t *out);
#endif
