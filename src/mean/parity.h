/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Below one bit per coordinate: parities instead of colours (mean/whole.h; the paper's section on sublinear communication).
 *
 * The step is larger than twice the distance, so most of a vector's lattice coordinates are those of the receiver's own; only
 * where the receiver's value lies within the distance y' of a cell's border are there two candidates. Per 512 coordinates
 * the sender gives `rows` parities: random linear forms over GF(2), shared, of the coordinates' lowest bits. The receiver
 * solves for the ambiguous ones by elimination; more rows than unknowns make the solution unique but for 2^-(difference),
 * and the piece's checksum tells whether it is right.
 */
#ifndef CST_MEAN_PARITY_H
#define CST_MEAN_PARITY_H
#include "mean/whole.h"

enum { CST_PARITY_BLOCK = 512 };

/* Rows per 512 coordinates for so many bits per coordinate, checksums counted; 0: too few bits. */
uint32_t cst_parity_rows(const cst_whole *w, double bits);
/* The largest share of ambiguous coordinates, 2 y' / s, with which `rows` suffice but once in 10^9 blocks. */
double cst_parity_share(uint32_t rows);

size_t cst_parity_bytes(const cst_whole *w, uint32_t rows);
void cst_parity_write(const cst_whole *w, const int32_t *points, const cst_checksum *checks, uint32_t rows,
                      uint32_t phase, uint8_t *out);
/* Decodes against ref, no coordinate of which is farther than `distance` from what was sent. How many pieces failed. */
uint32_t cst_parity_decode(const cst_whole *w, const uint8_t *in, uint32_t rows, double distance, uint32_t sender,
                           uint32_t phase, float step, const float *ref, float *x);
#endif
