/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop: gradient of the own part of each batch, mean over the ranks, one step of the optimizer. How the
 * gradients are averaged is a function, so that the loop does not know whether it runs on one rank or many, exactly or
 * compressed.
 */
#ifndef COSET_TOOLS_TRAIN_TRAINER_H
#define COSET_TOOLS_TRAIN_TRAINER_H
#include "train/batches.h"
#include "train/model.h"

#include <stdbool.h>

typedef struct {
    size_t global_batch, steps; /* steps 0: epochs * steps per epoch */
    size_t epochs;
    float rate, momentum;
    uint64_t seed;
} train_plan;

/* One copy of a model in training: flat arrays of `total` elements, and where each parameter begins in them. */
typedef struct {
    model *model;
    size_t total;
    float *weights, *velocity, *grads;
    float **weight, **grad; /* one pointer per parameter */
    bool grads_are_ours;
} learner;

/* `grads` holds model_total(m) floats (memory of coset_alloc, say); NULL: the learner allocates. Initial weights are set.
 * Returns 0, or -1 if memory is short. The model stays the caller's. */
int learner_create(learner *l, model *m, uint64_t seed, float *grads);
void learner_free(learner *l);
/* Elements of all parameters together. */
size_t model_total(const model *m);
/* FNV-1a (64 bits) of the weights' bytes: equal weights, equal hash. */
uint64_t learner_hash(const learner *l);

/* Figures of a run, of this rank. */
typedef struct {
    size_t steps;
    double step_s, sync_s; /* medians over the steps */
    double sync_share;     /* time in sync / time in all steps */
    double last_loss;      /* mean loss of the samples of the last epoch, over the ranks that `sync` averages */
} train_figures;

typedef struct {
    /* grads = mean over the ranks of grads. Returns 0, or an exit status after a line on standard error. */
    int (*sync)(void *ctx, float *grads, size_t count);
    /* *value = mean over the ranks of *value. Returns as sync. */
    int (*mean)(void *ctx, double *value);
    /* After each step; may be NULL. */
    void (*progress)(void *ctx, size_t step, size_t steps, double loss);
    void *ctx;
} train_hooks;

/* Trains on the parts of the ranks first..last of `ranks` (one rank of a job: first == last; one process that replays
 * them all: 0..ranks-1). Returns 0 or what a hook returned; -1 if memory is short; -2 if the batch is too small or too
 * large for the data. */
int train_run(learner *l, const train_plan *plan, int first, int last, int ranks, const train_hooks *hooks,
              train_figures *out);
#endif
