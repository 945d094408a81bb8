/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's practical scheme (LQSGD, RLQSGD): a whole vector on a cubic lattice with colours modulo q, for the protocols
 * where some ranks send theirs to one rank (star, tree, robust agreement).
 *
 * All tensors of a call are one vector of d coordinates. From 128 coordinates on it is padded to a power of two and rotated
 * as a whole, so that a bound y on Euclidean distances bounds coordinates by about y sqrt(2 ln(...) / d); a shorter vector
 * stays as it is, and coordinates are bounded by y. Messages are cut in pieces of 4096 coordinates, each with a checksum: a
 * vector that is farther away than promised is noticed.
 *
 * D. Davies, V. Gurunathan, N. Moshrefi, S. Ashkboos, D. Alistarh, "New bounds for distributed mean estimation and variance
 * reduction" (ICLR 2021), sections on the cubic lattice.
 */
#ifndef CST_MEAN_WHOLE_H
#define CST_MEAN_WHOLE_H
#include "mean/internal.h"

typedef struct {
    const coset_round *round;
    size_t d, n;     /* coordinates; padded, a multiple of 128 */
    uint32_t pieces; /* of up to 4096 */
    bool rotated;
    float *own; /* this rank's vector, rotated, n values */
} cst_whole;

/* MEMORY; ARGUMENT for a vector with NaN or Inf, or one that f32 cannot rotate: these protocols have no exact way out. */
coset_status cst_whole_make(cst_whole *w, coset_round *round);
void cst_whole_free(cst_whole *w);
/* Writes a result (n values, overwritten) into the outputs. ARGUMENT, on all ranks alike, if it is not finite. */
coset_status cst_whole_store(const cst_whole *w, float *x);

uint32_t cst_piece_count(const cst_whole *w, uint32_t piece);  /* coordinates that travel */
uint32_t cst_piece_length(const cst_whole *w, uint32_t piece); /* padded for the kernels */

/* Bound on |coordinate of the difference| if the Euclidean distance of any two vectors is at most y, with failure
 * probability 1e-6 over the rotation. */
double cst_whole_infinity(const cst_whole *w, double y);
/* What y is: the user's, or 2 sigma sqrt(alpha n) (Theorem 17, alpha = 10: success with probability 0.9 at least), or 0. */
double cst_known_distance(const coset_mean_options *o, int ranks);

/* Lattice points of x with that step, piece by piece, and their checksums. False: |x| / step is too large for f32. */
bool cst_whole_quantise(const cst_whole *w, const float *x, uint32_t sender, uint32_t phase, float step,
                        int32_t *points, cst_checksum *checks);
/* Values of points. */
void cst_whole_reconstruct(const cst_whole *w, const int32_t *points, uint32_t sender, uint32_t phase, float step,
                           float *x);

/* A message: 16 bytes of checksum per piece, then the colours, ceil(log2 q) bits each (kernels/pack). 2 <= q <= 65536. */
size_t cst_colours_bytes(const cst_whole *w, uint32_t q);
void cst_colours_write(const cst_whole *w, const int32_t *points, const cst_checksum *checks, uint32_t q, uint8_t *out);
/* Decodes against ref into x. Returns how many pieces contradict their checksum. */
uint32_t cst_colours_decode(const cst_whole *w, const uint8_t *in, uint32_t q, uint32_t sender, uint32_t phase,
                            float step, const float *ref, float *x);
/* The same for one piece from its digits: any q. */
bool cst_piece_decode(const cst_whole *w, uint32_t piece, const uint16_t *digits, uint32_t q, cst_checksum check,
                      uint32_t sender, uint32_t phase, float step, const float *ref, float *x);

/* The same from whole integers. */
bool cst_piece_whole(const cst_whole *w, uint32_t piece, const int32_t *points, cst_checksum check, uint32_t sender,
                     uint32_t phase, float step, float *x);

/* Opens a frame of kind COLOURS around a message. */
coset_status cst_colours_open(const coset_round *round, int pass, int sender, int receiver, const uint8_t *frame,
                              size_t bytes, cst_reader *body);

/* Counts the routes of a transfer in the report and hands it out. */
coset_status cst_hand_out_routes(coset_round *round, coset_xfer *xfer, const coset_route *routes, size_t n);

/* Shared choices: `count` different ranks of n, in random order. MEMORY. */
coset_status cst_draw_ranks(const coset_round *round, int n, int count, int *ranks);
#endif
