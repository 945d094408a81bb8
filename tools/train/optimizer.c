/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optimizer.h"

void sgd_step(float *weights, float *velocity, const float *gradient, size_t n, float rate, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + gradient[i];
        weights[i] -= rate * velocity[i];
    }
}

float falling_rate(float peak, size_t step, size_t steps)
{
    return peak * (1 - (float)step / (float)steps);
}
