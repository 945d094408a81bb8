/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optimizer.h"

#include <math.h>

/* The values that language models are commonly trained with. */
static const float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;

void sgd_step(float *weights, float *velocity, const float *gradient, size_t n, float rate, float momentum)
{
    for (size_t i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + gradient[i];
        weights[i] -= rate * velocity[i];
    }
}

void adamw_advance(adamw_powers *p)
{
    p->power1 *= beta1;
    p->power2 *= beta2;
}

void adamw_step(float *weights, float *first, float *second, const float *gradient, size_t n, float rate, float decay,
                const adamw_powers *p)
{
    float unbias1 = 1 / (1 - p->power1), unbias2 = 1 / (1 - p->power2);
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i];
        first[i] = beta1 * first[i] + (1 - beta1) * g;
        second[i] = beta2 * second[i] + (1 - beta2) * g * g;
        float direction = first[i] * unbias1 / (sqrtf(second[i] * unbias2) + epsilon);
        weights[i] -= rate * (direction + decay * weights[i]);
    }
}

float planned_rate(float peak, size_t step, size_t steps, size_t warm_up)
{
    float falling = peak * (1 - (float)step / (float)steps);
    return step < warm_up ? falling * ((float)(step + 1) / (float)warm_up) : falling;
}
