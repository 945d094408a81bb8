/* SPDX-License-Identifier: Apache-2.0 */
/* What sender.c (frames), sender_choice.c (codes and steps) and sender_answers.c share. */
#ifndef CST_MEAN_SENDER_STATE_H
#define CST_MEAN_SENDER_STATE_H
#include "mean/sender.h"

/* The own energy of a group over the tracked one; 0: there is nothing to compare with, or it means nothing any more. */
double cst_sender_gain(const cst_sender *s, const cst_group *g);
/* The code for a block that goes to `owner`, as far as that can be said before the whole frame is known. */
cst_block_desc cst_sender_choose(const cst_sender *s, uint32_t block, int owner);
/* An entropy code with this step, in the vector's units; its model follows from the block's energy. */
cst_block_desc cst_sender_entropy(const cst_sender *s, uint32_t block, double step);

/* The block as `d` says, into part `part`. False if it did not fit. (What an entropy code takes turns out at the end of its
 * stream.) */
bool cst_sender_pack(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d);
/* The integers of a WIDE code, into k[n], and their checksum. */
cst_checksum cst_sender_wide(const cst_sender *s, uint32_t block, cst_block_desc d, int64_t *k);
#endif
