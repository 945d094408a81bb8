/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/norm/norm_sum.h"

static double dot_scalar(const float *x, const float *y, size_t n)
{
    double lane[CST_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % CST_LANES] += (double)x[i] * (double)y[i];
    return sum_of_lanes(lane);
}

static double distance2_scalar(const float *x, float scale, const float *y, size_t n)
{
    double lane[CST_LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        float scaled = x[i] * scale, d = scaled - y[i];
        lane[i % CST_LANES] += (double)d * (double)d;
    }
    return sum_of_lanes(lane);
}

static cst_norm_stats stats_scalar(const float *x, size_t n)
{
    double lane[CST_LANES] = {0};
    cst_norm_stats s = {0};
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = cst_float_bits(x[i]) & 0x7fffffffu;
        if (magnitude >= FIRST_NONFINITE) {
            s.nonfinite++;
            continue;
        }
        lane[i % CST_LANES] += (double)x[i] * (double)x[i];
        if (magnitude > max)
            max = magnitude;
    }
    s.energy = sum_of_lanes(lane);
    s.max = cst_float_from_bits(max);
    return s;
}

const cst_norm_kernels cst_norm_scalar = {.stats = stats_scalar, .dot = dot_scalar, .distance2 = distance2_scalar};
