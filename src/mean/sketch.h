/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first call of a tensor: a few rotated coordinates of each block, in f32, to the block's owner, which makes of them a
 * first estimate of spread and mean energy over its blocks of the tensor, and tells it to all, who pool those of a tensor.
 */
#ifndef CST_MEAN_SKETCH_H
#define CST_MEAN_SKETCH_H
#include "codec/wire.h"
#include "mean/shared.h"
#include "mean/vector.h"

/* A run of blocks of one unknown tensor with one owner. */
typedef struct {
    uint32_t first, end;
    int owner;
    uint16_t told[3]; /* energies, as the owner told them */
} cst_sketch_run;

typedef struct {
    const cst_layout *layout;
    cst_tensor *const *tensors;
    const cst_vector *vector;
    int rank, ranks;
    uint32_t *first; /* provisional owners */
    cst_sketch_run *runs;
    uint32_t nruns;
    size_t up_bytes, down_bytes; /* of the frames; 0 if no tensor needs a sketch */
} cst_sketch;

/* Which tensors need one follows from what is tracked. MEMORY. */
coset_status cst_sketch_init(cst_sketch *s, const cst_layout *layout, cst_tensor *const *tensors,
                             const cst_vector *vector, int rank, int ranks);
void cst_sketch_free(cst_sketch *s);

/* The frame for one owner (the own one too), and the frame for all from what came: frames[rank * up_bytes]. `header` says
 * what belongs to the call; kind, sender and receiver are filled in here. CORRUPT, MISMATCH, MEMORY. */
void cst_sketch_write(const cst_sketch *s, int owner, cst_frame_header header, uint8_t *frame);
coset_status cst_sketch_answer(const cst_sketch *s, const uint8_t *frames, cst_frame_header header, uint8_t *frame,
                               coset_error *why);
/* Takes in what `owner` tells; and, when all have told, sets the tensors' statistics, and margins to begin with: none where
 * the bits are given. */
coset_status cst_sketch_take(cst_sketch *s, int owner, const uint8_t *frame, cst_frame_header header, coset_error *why);
void cst_sketch_conclude(cst_sketch *s, bool bits_given);
#endif
