/* SPDX-License-Identifier: Apache-2.0 */
/* Phase 2, a receiver's side: the owners' codes against the own vector, into the output. */
#ifndef CST_MEAN_RECEIVER_H
#define CST_MEAN_RECEIVER_H
#include "codec/parts.h"
#include "mean/shared.h"
#include "mean/vector.h"

typedef struct {
    const cst_tools *tools;
    const cst_shared *shared;
    const cst_vector *vector;
    const cst_stream_root *roots; /* per span */
    coset_dtype dtype;
} cst_receiver;

/* Decodes and stores the blocks of `owner`'s frame that are there. CORRUPT if a checksum says that a block came out
 * otherwise than the owner meant it. */
coset_status cst_receive(const cst_receiver *r, int owner, cst_parts *frame, coset_error *why);
#endif
