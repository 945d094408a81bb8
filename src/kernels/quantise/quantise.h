/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From reals to lattice points and back, for Z and for E8, fused with dither, packing and checksum.
 *
 * With theta the block's dither (random.h), unit = 1 for Z and 2 for E8 (whose dither is uniform on (-1,1)^8, a cell of
 * the sublattice (2Z)^8, so that no sampling of the E8 cell is needed):
 *
 *     encode       z = NEAREST(x / step + unit theta)
 *     decode       z = the point of z's colour nearest to  scale ref / step + unit weight theta
 *     reconstruct  x^ = step (z - unit weight theta)
 *
 * weight 1 is subtractive dither: x^ - x is uniform on the cell, whatever x. weight 0 is rounding without shared
 * randomness: the sender's theta is private and, for E8, first reduced to the Voronoi cell (theta - NEAREST(theta)); the
 * receiver does not subtract it, and x^ = step z is unbiased.
 *
 * Points are int32: the integer for Z; twice the coordinate for E8, whose points have coordinates all integer with even sum
 * or all half-integer with even sum. Colours of E8 are the coefficients in the basis (1/2)^8, e_i + e_8 (i = 2..7), 2 e_8.
 *
 * The decoder finds z when |z - scale ref/step - unit weight theta| lies inside q times the cell: for Z below q/2 in
 * every coordinate, for E8 if its inner product with each of the 240 minimal vectors is below q (need). So
 * (x - scale ref) / step may be anything inside q - 1 times the cell (q - 2 if weight is 0): for Z below (q - 1)/2 per
 * coordinate, for E8 shorter than (q - 1) sqrt(1/2) per cell.
 *
 * Contract of all kernels: n = 128..4096, a multiple of 128. step is a normal float with a normal reciprocal;
 * |x| / step is below CST_Z_LIMIT or CST_E8_LIMIT when encoding (to be decided before). Round to nearest even and the
 * denormal mode must be set (flush.h). Wrong bytes, references and steps are harmless: some point and some values come
 * out, and the checksum tells. Codes lie at any address, vectors at one that suits their elements (64 bytes is faster);
 * buffers do not overlap, but out may be ref.
 */
#ifndef CST_KERNELS_QUANTISE_QUANTISE_H
#define CST_KERNELS_QUANTISE_QUANTISE_H
#include <stddef.h>
#include <stdint.h>

#include "kernels/checksum/checksum.h"
#include "kernels/random/random.h"

/* |x| / step must stay below: so far the colours of all coordinates, basis coefficients included, are exact. */
#define CST_Z_LIMIT  0x1p21f
#define CST_E8_LIMIT 0x1p19f

/* What sender and receiver share about a block. */
typedef struct {
    uint32_t n; /* padded length */
    float step;
    float weight; /* 1: shared dither, subtracted; 0: the sender's private dither */
    cst_stream dither;
    const int32_t *keys; /* checksum keys */
} cst_lattice_block;

/* Decoded values on their way into a sum: sum[i] = ref[i] + x^[i], and squares that say what the values have to do with
 * each other, summed as cst_norm_kernels.dot does. */
typedef struct {
    float *value;     /* x^[n]; NULL: not wanted */
    float *sum;       /* [n]; not ref */
    float share;      /* share * ref is the mean so far */
    double distance2; /* out: sum of (x^ - share ref)^2 */
    double energy;    /* out: sum of sum[i]^2 */
} cst_summed;

typedef struct {
    /* Encode: `out` gets cst_packed_bytes(classes, n/128) bytes; `points` gets all n points unless NULL. */
    cst_checksum (*encode)(const cst_lattice_block *block, const float *x, const uint8_t *classes, uint8_t *out,
                           int32_t *points);
    /* Decode against scale * ref. `points` may be NULL. Reads exactly the packed bytes. */
    cst_checksum (*decode)(const cst_lattice_block *block, const uint8_t *in, const uint8_t *classes, const float *ref,
                           float scale, float *out, int32_t *points);
    /* Decode simple digits (pack.h): colours of all n coordinates modulo any q from 2 to 65536. */
    cst_checksum (*decode_digits)(const cst_lattice_block *block, const uint16_t *digits, uint32_t q, const float *ref,
                                  float scale, float *out, int32_t *points);
    /* As decode, into a sum of which ref is what there is so far. */
    cst_checksum (*decode_add)(const cst_lattice_block *block, const uint8_t *in, const uint8_t *classes,
                               const float *ref, float scale, cst_summed *to, int32_t *points);
    /* Points without a code (entropy coding, repairs), and values from points. */
    cst_checksum (*quantise)(const cst_lattice_block *block, const float *x, int32_t *points);
    cst_checksum (*reconstruct)(const cst_lattice_block *block, const int32_t *points, float *out);
    cst_checksum (*reconstruct_add)(const cst_lattice_block *block, const int32_t *points, const float *ref,
                                    cst_summed *to);
    /* quantise(scale x), and reconstruct at once. value may be x. */
    cst_checksum (*quantise_both)(const cst_lattice_block *block, const float *x, float scale, int32_t *points,
                                  float *value);
    /* What modulus a receiver with vector x needs to decode `value` against scale * x: for each unit,
     * need[u] = max(need[u], N((value - scale x) / step)), N(r) = 2 max |r_i| for Z, the largest inner product with the
     * 240 minimal vectors for E8. It decodes if its q is above that, plus what the caller knows x to be off by. */
    void (*need)(const float *value, const float *x, uint32_t n, float scale, float step, float *need);
} cst_quantise_kernels;

typedef enum { CST_LATTICE_Z = 0, CST_LATTICE_E8 = 1 } cst_lattice_kind;

const cst_quantise_kernels *cst_quantise_kernels_for(cst_lattice_kind lattice, int cpu_level);

extern const cst_quantise_kernels cst_z_scalar, cst_z_avx2, cst_z_avx512;
extern const cst_quantise_kernels cst_e8_scalar, cst_e8_avx2, cst_e8_avx512;
#endif
