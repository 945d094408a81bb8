/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop: gradient of the own part of each batch, mean over the ranks, one step of the optimizer. How means are
 * formed is left to hooks, so that the loop does not know whether it runs on one rank or many, exactly or compressed.
 */
#ifndef COSET_TOOLS_TRAIN_TRAINER_H
#define COSET_TOOLS_TRAIN_TRAINER_H
#include "train/batches.h"
#include "train/model.h"
#include "train/optimizer.h"

#include <stdbool.h>

typedef struct {
    size_t global_batch, steps; /* steps 0: epochs * steps per epoch */
    size_t epochs;
    size_t accumulate;  /* batches per step; 0 or 1: one */
    size_t local_steps; /* > 1: local SGD, models are averaged every so many steps and gradients never */
    optimizer_kind optimizer;
    float rate, momentum, decay; /* decay: AdamW's, of matrices */
    size_t warm_up;              /* steps */
    uint64_t seed;
} train_plan;

/* One copy of a model in training: flat arrays of `total` elements, and where each parameter begins in them. */
typedef struct {
    model *model;
    size_t total;
    float *weights, *first, *second; /* second: AdamW only, else NULL */
    float **weight, **grad;          /* one pointer per parameter */
    float *grads;                    /* memory of its own for gradients; NULL: grad points into buckets */
    adamw_powers powers;
} learner;

/* With initial weights. own_grads: gradients in memory of its own; else the caller sets grad[]. Returns 0, or -1 if memory
 * is short. The model stays the caller's. */
int learner_create(learner *l, model *m, const train_plan *plan, bool own_grads);
void learner_free(learner *l);
/* Elements of all parameters together. */
size_t model_total(const model *m);
/* FNV-1a (64 bits) of the weights' bytes: equal weights, equal hash. */
uint64_t learner_hash(const learner *l);

/* The largest difference between the weights of two copies: infinite where one has a number and the other has none.
 * *largest: of a's weights. */
double learner_difference(const learner *a, const learner *b, double *largest);

/* One step of this rank. Times are tool_now(). */
typedef struct {
    size_t step, steps, samples; /* samples: of this rank */
    double loss;                 /* mean over this rank's samples */
    double start, computed, averaged, end;
    double exposed; /* seconds of waiting for means */
    bool skipped;   /* the optimizer took no step */
} train_step;

/* All may be NULL; those that return int return 0, or an exit status after a line on standard error. */
typedef struct {
    /* Before a backward pass; `last` of those whose gradients add up in this step. */
    int (*backward)(void *ctx, bool last);
    model_ready ready; /* during that last one */
    /* After it: l->grad become means over the ranks, and may point elsewhere. *skip: leave the optimizer's step out. */
    int (*gradients)(void *ctx, learner *l, bool *skip);
    /* Local SGD: weights become means over the ranks. */
    int (*models)(void *ctx, learner *l);
    int (*stepped)(void *ctx, const learner *l, const train_step *step);
    void *ctx;
} train_hooks;

/* How many steps the plan takes on `ranks` ranks: 0 if the batch is too small or too large for the data. */
size_t train_steps(const model *m, const train_plan *plan, int ranks, size_t *per_epoch);
/* Trains on the parts of the ranks first..last of `ranks` (one rank of a job: first == last; one process that replays
 * them all: 0..ranks-1). Returns 0 or what a hook returned; -1 if memory is short; -2 if the batch is too small or too
 * large for the data. */
int train_run(learner *l, const train_plan *plan, int first, int last, int ranks, const train_hooks *hooks);
#endif
