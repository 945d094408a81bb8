/* SPDX-License-Identifier: Apache-2.0 */
/* One training step as the reducer sees it: which gradients are ready, which buckets may start. No communication. */
#ifndef CST_DDP_STEP_H
#define CST_DDP_STEP_H
#include "ddp/buckets.h"

typedef struct {
    size_t nparams, nbuckets;
    unsigned char *ready; /* of each parameter */
    size_t *order;        /* parameters in the order in which they became ready */
    size_t nready;
    size_t *missing; /* of each bucket: members not ready */
    size_t complete; /* buckets [0, complete) have all their members: they may start */
} cst_step_state;

coset_status cst_step_init(cst_step_state *s, size_t nparams);
void cst_step_free(cst_step_state *s);
/* Nothing is ready; `b` is the layout of the step. */
void cst_step_begin(cst_step_state *s, const cst_buckets *b);
/* Parameter `param` is ready. 0: it was already. */
int cst_step_ready(cst_step_state *s, const cst_buckets *b, size_t param);
#endif
