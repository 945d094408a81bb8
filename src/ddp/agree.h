/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other at the end of a step, in one small all-reduce. */
#ifndef CST_DDP_AGREE_H
#define CST_DDP_AGREE_H
#include "ddp/reducer.h"

#include <stdbool.h>

typedef struct {
    int active;       /* some rank has not joined */
    int misused_rank; /* the first rank that called ready wrongly; -1 */
    bool same_layout; /* all ranks have the same buckets, and know alike whether their order is final */
    size_t unused;    /* the first parameter ready on no rank; CST_NO_PARAM */
    size_t unused_count;
} cst_agreement;

/* Collective. Fills d->culprit, too. */
coset_status cst_ddp_agree(coset_ddp *d, int joined, cst_agreement *out);
/* Collective: rank 0's order of readiness, on every rank. */
coset_status cst_ddp_agree_order(coset_ddp *d, size_t *order);
#endif
