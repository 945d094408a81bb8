/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of a block as a code that every receiver can decode, into the owner's frame; and into its own output. */
#ifndef CST_MEAN_MEAN_CODE_H
#define CST_MEAN_MEAN_CODE_H
#include "mean/measure.h"

typedef struct {
    cst_owner *o;
    cst_packer *packer;
    const cst_block_now *b;
    uint32_t part;
    uint16_t s2, r2; /* as sent */
    double a2;       /* multiple of their own vector that receivers decode against */
    double d2;       /* error per coordinate that the code may add */
    double most;     /* and what it may add at most where the frame has no room for d2 */
} cst_mean_coding;

/* The code for error d2, as cst_plan_down chooses it with what has been measured. */
cst_plan cst_plan_mean(const cst_owner *o, const cst_block_now *b, double d2);
/* Codes the mean (of exact and wide blocks: as cst_measure left it; overwritten). False if there is no room for it. c->d2 may
 * have grown in the attempt. */
bool cst_code_mean(cst_mean_coding *c, double *mean);
/* After the packer's stream has ended: gives blocks that did not fit into the frame their input back, where the result was
 * written over it. They are gathered once more. */
void cst_settle_stream(cst_owner *o, const cst_packer *packer);
#endif
