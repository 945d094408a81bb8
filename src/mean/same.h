/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that all ranks have alike: parameters after a broadcast, replicas that got the same batch, zeros apart.
 *
 * A block whose tracked s^2 is 0 while R^2 is not has been found alike: then senders send a check of their elements instead of
 * a code (CST_CODE_EXACT, class CST_CLASS_SAME), the owner compares, and everybody's result is his own block, exactly. A rank
 * that differs after all is asked for its elements; the spread measured from them is tracked, at least as index 1.
 *
 * How it is found: exact blocks are compared; a sketch tells no spread at all; and where the codes of a call leave the
 * measured spread below the noise, the owner looks whether its own block makes the very points of all senders.
 */
#ifndef CST_MEAN_SAME_H
#define CST_MEAN_SAME_H
#include "codec/parts.h"
#include "mean/vector.h"

/* Of the block's elements as they are in memory, linear as the checksum of points; any dtype. */
cst_checksum cst_same_check(const cst_vector *v, uint32_t block);
/* Would this rank's own block, sent by id's sender, have made that part? id.exponent: any unit. Not for PLAIN. */
bool cst_same_points(const cst_vector *v, uint32_t block, const cst_block_id *id, const cst_part *part);
/* The own block is the result. */
void cst_same_store(const cst_vector *v, uint32_t block);
#endif
