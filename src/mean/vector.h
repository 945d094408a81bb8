/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's own vector in a call: measured once, scaled and rotated block by block when asked for, and written back.
 *
 * A block whose largest magnitude is far from 1 is scaled by a power of two, so that f32 sums neither overflow (FLT_MAX)
 * nor lose denormals, whatever its neighbours are like; the exponent is this rank's own business. Blocks with NaN or Inf
 * are set apart here, before anything is rounded.
 *
 * Rotated coordinates of a block of n are sqrt(cst_rotation_energy(n)) times orthogonal ones; energies here are those of
 * the original coordinates, per coordinate.
 */
#ifndef CST_MEAN_VECTOR_H
#define CST_MEAN_VECTOR_H
#include "codec/block.h"
#include "codec/portable.h"
#include "mean/layout.h"
#include "mean/pace.h"

typedef enum {
    CST_BLOCK_USUAL = 0,
    CST_BLOCK_ZERO, /* all zero */
    CST_BLOCK_EXACT /* has NaN or Inf */
} cst_block_kind;

typedef struct {
    double energy; /* per coordinate, in units of 2^(2 exponent) */
    int exponent;  /* 0 if it is not usual */
    uint8_t kind;  /* cst_block_kind */
} cst_own_block;

typedef struct {
    const cst_tools *tools;
    cst_pace *pace;
    const cst_layout *layout;
    const coset_span *spans;
    const cst_stream_root *roots; /* per span */
    coset_dtype dtype;
    cst_own_block *own; /* per block */
} cst_vector;

/* Measures all of it. It is not kept rotated: rotating a block again costs less than writing it to memory and reading it
 * back. tools, pace, layout, spans and roots stay the caller's. MEMORY. */
coset_status cst_vector_load(cst_vector *v, const cst_tools *tools, cst_pace *pace, const cst_layout *layout,
                             const coset_span *spans, const cst_stream_root *roots, coset_dtype dtype);
void cst_vector_free(cst_vector *v);
/* A block's n rotated values, in units of 2^exponent (zeros if it is not usual), into `room`, which is returned. */
const float *cst_vector_rotated(const cst_vector *v, uint32_t block, float *room);
/* What brings these values into units of 2^exponent; 0 where they are zeros. */
static inline double cst_vector_scale(const cst_vector *v, uint32_t block, int exponent)
{
    const cst_own_block *own = &v->own[block];
    return own->kind == CST_BLOCK_USUAL ? cst_scale2(1, own->exponent - exponent) : 0;
}

/* Rotation signs of a block. */
void cst_block_signs(const cst_vector *v, uint32_t block, uint32_t signs[CST_SIGN_WORDS]);
/* The block rotated in f64, in units of 2^exponent: exact to f64, from the original elements. */
void cst_vector_wide(const cst_vector *v, uint32_t block, int exponent, double *rotated);
/* Writes the block's result: `rotated` (n values, overwritten) in units of 2^exponent. Finite values stay finite. */
void cst_vector_store(const cst_vector *v, uint32_t block, float *rotated, int exponent);
void cst_vector_store_wide(const cst_vector *v, uint32_t block, double *rotated, int exponent);

/* Elements as they are: bytes of one in phase 1, and in phase 2, where 16-bit floats travel as f32. */
size_t cst_exact_bytes(coset_dtype dtype, bool down);
const uint8_t *cst_vector_elements(const cst_vector *v, uint32_t block);
/* Exact payloads as doubles, from phase 1's elements; and phase 2's payload from doubles and into the output. */
void cst_exact_read(coset_dtype dtype, const uint8_t *in, uint32_t count, double *out);
void cst_exact_write(coset_dtype dtype, const double *x, uint32_t count, uint8_t *out);
void cst_vector_store_exact(const cst_vector *v, uint32_t block, const uint8_t *payload);
#endif
