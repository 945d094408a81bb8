/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SGD with momentum and AdamW. Only operations that IEEE 754 rounds exactly, in a fixed order: equal gradients keep equal
 * weights on every rank, whatever its processor.
 */
#ifndef COSET_TOOLS_TRAIN_OPTIMIZER_H
#define COSET_TOOLS_TRAIN_OPTIMIZER_H
#include <stddef.h>

typedef enum { OPTIMIZER_SGD, OPTIMIZER_ADAMW } optimizer_kind;

/* velocity = momentum * velocity + gradient; weight -= rate * velocity. */
void sgd_step(float *weights, float *velocity, const float *gradient, size_t n, float rate, float momentum);

/* Of AdamW (Loshchilov and Hutter, 2019): beta1^t and beta2^t of the step t that is being taken. */
typedef struct {
    float power1, power2;
} adamw_powers;
#define ADAMW_POWERS_INIT                                                                                              \
    {                                                                                                                  \
        1, 1                                                                                                           \
    }
/* Before each step, the first one included. */
void adamw_advance(adamw_powers *p);
/* One step; `decay` pulls every weight towards zero by rate * decay. */
void adamw_step(float *weights, float *first, float *second, const float *gradient, size_t n, float rate, float decay,
                const adamw_powers *p);

/* The rate at `step` of `steps`: rises in a straight line over the first `warm_up` steps, then falls in one from `peak`
 * to 0. */
float planned_rate(float peak, size_t step, size_t steps, size_t warm_up);
#endif
