/* SPDX-License-Identifier: Apache-2.0 */
/* A block being gathered: what gather.c (f32) and gather_wide.c (f64, and the original domain) share. */
#ifndef CST_MEAN_GATHER_STATE_H
#define CST_MEAN_GATHER_STATE_H
#include "mean/gather.h"

typedef struct {
    const cst_listener *l;
    uint32_t block, n, count;
    const cst_block_plan *plan;
    cst_heard *heard; /* [sender] */
    cst_gathered *g;
    cst_request *asks;
    coset_error *why;
    int decoded;      /* senders so far */
    int known;        /* vectors in *ref */
    const float *ref; /* their sum: the own vector, then g->sum */
} cst_gathering;

static inline void cst_gather_ask(cst_gathering *t, int sender, cst_ask what, unsigned arg)
{
    t->asks[sender] = (cst_request){t->block, (uint16_t)sender, (uint8_t)what, (uint8_t)arg};
}

static inline const cst_part *cst_gather_base(const cst_gathering *t, int sender)
{
    return &t->heard[sender].frame->parts[t->heard[sender].part];
}

static inline cst_block_id cst_gather_block(const cst_gathering *t, int sender, uint32_t phase)
{
    const cst_block *b = &t->l->shared->layout->blocks[t->block];
    return (cst_block_id){t->l->roots[b->span], b->index, (uint32_t)sender, phase, b->n, t->g->unit};
}

/* Whose turn it is: -1 nobody's, -2 no more turns. Those come first who have been decoded before. */
int cst_gather_turn(cst_gathering *t, int turn);
/* After its turn: notes when it was decoded, unless there is a question. */
static inline void cst_gather_turn_over(cst_gathering *t, int sender)
{
    t->heard[sender].order = t->asks[sender].ask ? 0 : (uint16_t)++t->decoded;
}
/* What the descriptor says of the sender's step and error. */
void cst_gather_note(cst_gathering *t, int sender, cst_block_desc d);
/* The own vector in the block's unit, n values, into `room`, which is returned. */
const float *cst_gather_own(const cst_gathering *t, float *room);
/* A sender's rotated values, decoded against t->ref, or a question. CORRUPT. */
coset_status cst_gather_decode(cst_gathering *t, int sender, float *out);
/* Adds the sender's refinement to its vector `out` or `wide`, if there is one: after all have been decoded. CORRUPT. */
coset_status cst_gather_refine(cst_gathering *t, int sender, float *out, double *wide);

/* Blocks with f64 codes; and blocks of which some vectors are exact. CORRUPT, MEMORY. */
coset_status cst_gather_wide(cst_gathering *t);
coset_status cst_gather_exact(cst_gathering *t);
#endif
