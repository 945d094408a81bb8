/* SPDX-License-Identifier: Apache-2.0 */
/* How a training run uses coset_ddp: gradients in buckets that move while backward runs, or (local SGD) whole models. */
#ifndef COSET_TOOLS_TRAIN_AVERAGE_H
#define COSET_TOOLS_TRAIN_AVERAGE_H
#include "train/settings.h"

#include <coset_ddp.h>

typedef struct {
    const train_settings *settings;
    tool_rank *rank;
    learner *learner;
    coset_ddp *ddp;
    bool half;           /* gradients travel as bf16; backward writes f32 into memory of the learner */
    coset_status failed; /* the first failure of coset_ddp_ready in this step */
    double first_ready;  /* tool_now() */
    int told;            /* gradients that were ready in this step */
    bool warned;         /* of a gradient that was not finite */
    /* of the last averaging */
    coset_ddp_report report;
    double norm; /* NaN: not clipped */
    /* since the beginning */
    double sent_bytes, repaired;
    size_t averagings;
} averager;

/* True if the learner must have memory of its own for gradients. */
bool averager_needs_own_gradients(const train_settings *s);
/* Collective. Points l->grad into the buckets, unless the learner has memory of its own. The functions that return int
 * return 0, or TOOL_FAILED after a line on standard error. */
int averager_create(averager *a, const train_settings *s, tool_rank *rank, learner *l);
void averager_destroy(averager *a);
/* Before a backward pass: only the last one of a step communicates. */
int averager_backward(averager *a, bool last);
/* The gradient of this parameter is complete. */
void averager_ready(averager *a, int param);
/* Gradients become means, clipped if that was asked for; *skip = they are not finite. */
int averager_gradients(averager *a, bool *skip);
/* Weights become means. */
int averager_models(averager *a);
#endif
