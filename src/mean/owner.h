/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phase 2, an owner's side: means of its blocks, current statistics, and the codes that every receiver can decode.
 *
 * A group's blocks are decoded together, so that the step follows from the spread measured now: D2 = beta s^2/n less what
 * phase 1 added to the mean. The owner holds every decoded vector, so per unit of 128 coordinates it takes the smallest
 * modulus with which each receiver can decode against its own vector: phase 2 does not fail. Where a sender's step turns
 * out too coarse for the spread measured now, it asks for a refinement instead.
 */
#ifndef CST_MEAN_OWNER_H
#define CST_MEAN_OWNER_H
#include "mean/gather.h"
#include "mean/pool.h"

typedef struct {
    cst_listener listen;
    uint32_t first, end;              /* blocks */
    uint8_t *done;                    /* per block owned: its mean has been sent */
    const uint8_t *current;           /* per block of the call: its tracked statistics are of this call */
    cst_gathered gathered[CST_GROUP]; /* of the group at hand */
    cst_request *asks;                /* [of gathered][sender] */
    cst_pool *pool;
    float *floats; /* of `gathered` */
    double *means; /* per block of a group, where it is computed in f64 */
    uint8_t *kept; /* in place: own elements of the blocks in the packer's stream, which may yet turn out not to fit */
    uint32_t kept_block[CST_STREAM_BLOCKS], nkept;
    /* of the call so far */
    double squared_error; /* predicted, summed over coordinates of blocks that are done, in units of 2^(2 unit) */
    int unit;
    uint64_t coords;
    uint32_t corrected;
} cst_owner;

coset_status cst_owner_init(cst_owner *o, const cst_listener *listen, uint32_t first, uint32_t end,
                            const uint8_t *current, cst_pool *pool);
void cst_owner_free(cst_owner *o);

/* The frame of round `round` for all ranks: means of the blocks that can be made, requests for the others (into the frame and,
 * for this rank's own use, in packer->requests). Results of finished blocks are stored in this rank's output.
 * packer->header gets need_up, need_down, error and corrected. CORRUPT, MEMORY. */
coset_status cst_owner_frame(cst_owner *o, int round, size_t declared, cst_packer *packer,
                             const cst_frame_header *header, uint8_t *frame, size_t capacity, coset_error *why);
#endif
