/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phase 1, a sender's side: its blocks as codes for their owners, and what owners ask for afterwards.
 *
 * The plan holds for a sender of average energy; a sender scales the step by its own energy now (a group's D1 with the
 * group's energy, a block's expected residual with the block's), so that a common rise or fall of all vectors changes
 * neither bits nor relative error; where the mean drowns the spread, by what its distance from the last mean says
 * (mean/past.h). Its integers are never stored: asked for digits, it computes them again.
 */
#ifndef CST_MEAN_SENDER_H
#define CST_MEAN_SENDER_H
#include "codec/parts.h"
#include "mean/repair.h"
#include "mean/shared.h"
#include "mean/vector.h"

typedef struct {
    const cst_tools *tools;
    const cst_shared *shared;
    const cst_vector *vector;
    const cst_stream_root *roots; /* per span */
    int rank;
    double *gain;         /* per group: own energy over the tracked one; 0: nothing tracked to compare with */
    cst_block_desc *desc; /* per block: as sent */
} cst_sender;

coset_status cst_sender_init(cst_sender *sender, const cst_tools *tools, const cst_shared *shared,
                             const cst_vector *vector, const cst_stream_root *roots, int rank);
void cst_sender_free(cst_sender *sender);

/* Who is asked for what block, with whose randomness, in the vector's units. */
cst_block_id cst_sender_block(const cst_sender *sender, uint32_t block, uint32_t phase);

/* The frame of blocks shared->first[owner] .. for that owner, into frame[capacity]. MEMORY. */
coset_status cst_sender_frame(const cst_sender *sender, int owner, cst_packer *packer, const cst_frame_header *header,
                              uint8_t *frame, size_t capacity);
/* What `requests` (of one owner, in order) ask this rank for. */
coset_status cst_sender_answers(const cst_sender *sender, const cst_request *requests, uint32_t nrequests,
                                cst_packer *packer, const cst_frame_header *header, uint8_t *frame, size_t capacity);
#endif
