/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "kernels/block.h"
#include "kernels/hadamard/hadamard.h"

/* Order of the stages by index bit: the one in which 16-lane vector code finds its operands (hadamard.h). */
static const uint8_t stage_bits[12] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};

static bool is_negative(const uint32_t *signs, uint32_t i)
{
    uint32_t vector = i / CST_LANES, lane = i % CST_LANES;
    return signs[CST_LANES * (vector >> 5) + lane] << (vector & 31) >> 31;
}

static uint32_t log2_of(uint32_t n)
{
    uint32_t m = 0;
    while (n >> (m + 1))
        m++;
    return m;
}

static void butterflies(float *x, uint32_t n, uint32_t half)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(i & half)) {
            float a = x[i], b = x[i + half];
            x[i] = a + b;
            x[i + half] = a - b;
        }
}

static void walsh_hadamard(float *x, uint32_t n)
{
    for (uint32_t s = 0; s < 12; s++)
        if (1u << stage_bits[s] < n)
            butterflies(x, n, 1u << stage_bits[s]);
}

static void rotate_scalar(const float *x, float *y, uint32_t n, const uint32_t *signs, const float *next)
{
    (void)next;
    float scale = ldexpf(1.0f, -(int)(log2_of(n) / 2));
    for (uint32_t i = 0; i < n; i++)
        y[i] = is_negative(signs, i) ? -x[i] : x[i];
    walsh_hadamard(y, n);
    for (uint32_t i = 0; i < n; i++)
        y[i] *= scale;
}

static void unrotate_scalar(const float *y, float *x, uint32_t n, const uint32_t *signs, const float *next, bool stream)
{
    (void)next;
    (void)stream;
    float scale = ldexpf(1.0f, -(int)((log2_of(n) + 1) / 2));
    memmove(x, y, n * sizeof *x);
    walsh_hadamard(x, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = is_negative(signs, i) ? -(x[i] * scale) : x[i] * scale;
}

const cst_hadamard_kernels cst_hadamard_scalar = {.rotate = rotate_scalar, .unrotate = unrotate_scalar};

static void walsh_hadamard_f64(double *x, uint32_t n)
{
    for (uint32_t half = 1; half < n; half *= 2)
        for (uint32_t i = 0; i < n; i++)
            if (!(i & half)) {
                double a = x[i], b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
}

void cst_rotate_f64(double *x, uint32_t n, const uint32_t *signs)
{
    double scale = ldexp(1.0, -(int)(log2_of(n) / 2));
    for (uint32_t i = 0; i < n; i++)
        x[i] = is_negative(signs, i) ? -x[i] : x[i];
    walsh_hadamard_f64(x, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] *= scale;
}

void cst_unrotate_f64(double *x, uint32_t n, const uint32_t *signs)
{
    double scale = ldexp(1.0, -(int)((log2_of(n) + 1) / 2));
    walsh_hadamard_f64(x, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = is_negative(signs, i) ? -(x[i] * scale) : x[i] * scale;
}
