/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trainer knows of a model: parameters with names and sizes, samples with numbers, a loss and its gradient.
 *
 * Weights and gradients belong to the trainer, one array per parameter, so that gradients may lie in the buckets of a
 * coset_ddp. A model holds data and scratch memory only and is used by one rank. Everything in it is deterministic: the
 * same weights and samples give the same bits.
 */
#ifndef COSET_TOOLS_TRAIN_MODEL_H
#define COSET_TOOLS_TRAIN_MODEL_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char name[32];
    size_t count; /* elements */
    int ndim;     /* 2: a matrix; 1: biases and gains, which are neither compressed nor decayed */
} model_param;

typedef struct {
    double loss;     /* mean over the samples */
    double accuracy; /* fraction of samples (or characters) predicted right */
} model_score;

/* Called when the gradient of parameter `param` is complete: last layer first, so that sending may start. */
typedef void (*model_ready)(void *ctx, int param);

typedef struct model {
    const struct model_ops *ops;
    int params;
    const model_param *param;
    size_t train_samples, test_samples;
    size_t units; /* predictions in a sample: 1 image, or the characters of a window */
} model;

typedef struct model_ops {
    const char *name, *unit; /* "images" */
    /* NULL if memory is short. The same seed gives the same split into training and test samples. */
    model *(*create)(uint64_t seed);
    void (*destroy)(model *m);
    /* First weights, from the seed alone: all ranks start equal. */
    void (*init)(const model *m, uint64_t seed, float *const *weights);
    /* Adds to grads[p] scale * sum over the given training samples of d loss / d weights[p]; *losses = the sum of their
     * losses (of a sample with several units: the mean over them). `ready` may be NULL. Returns 0, or -1 if memory is
     * short. */
    int (*gradient)(model *m, float *const *weights, const size_t *samples, size_t n, float scale, float *const *grads,
                    model_ready ready, void *ctx, double *losses);
    /* On the test samples. Returns as gradient. */
    int (*evaluate)(model *m, float *const *weights, model_score *score);
} model_ops;

extern const model_ops mlp_ops, gpt_tiny_ops, gpt_small_ops, gpt_medium_ops;
#endif
