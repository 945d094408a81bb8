/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic gradient descent with momentum: velocity = momentum * velocity + gradient; weight -= rate * velocity.
 * Plain multiplications and additions in a fixed order: equal gradients keep equal weights on every rank. */
#ifndef COSET_TOOLS_TRAIN_OPTIMIZER_H
#define COSET_TOOLS_TRAIN_OPTIMIZER_H
#include <stddef.h>

void sgd_step(float *weights, float *velocity, const float *gradient, size_t n, float rate, float momentum);
/* The rate at `step` of `steps`: falls in a straight line from `peak` to 0. Only operations that IEEE 754 rounds exactly,
 * so that ranks with different processors take the same step. */
float falling_rate(float peak, size_t step, size_t steps);
#endif
