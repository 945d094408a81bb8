/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/block.h"
#include "kernels/pack/pack_scalar.h"
#include "kernels/quantise/nearest_scalar.h"
#include "kernels/quantise/sum.h"

enum { MODULUS = 256 };

/* total[i] = a A[i] + b B[i]: one sender's dither with (1, u), the sum of n ranks' with (n, n (n-1)/2). */
static void combined_dither(const cst_sum_block *block, float a, float b, float *total)
{
    float slope[CST_BLOCK];
    cst_random_scalar.dither(&block->dither, block->n, total);
    cst_random_scalar.dither(&block->slope, block->n, slope);
    for (uint32_t i = 0; i < block->n; i++)
        total[i] = total[i] * a + slope[i] * b;
}

static float pairs(uint32_t ranks)
{
    return (float)(ranks * (ranks - 1) / 2);
}

static cst_checksum mean_of_points(const cst_sum_block *block, const int32_t *points, const float *theta, float unit,
                                   uint32_t ranks, float *mean)
{
    /* points count halves of a step for E8 (unit 2), whole steps for Z */
    float step = block->step / (unit * (float)ranks);
    for (uint32_t i = 0; i < block->n; i++)
        mean[i] = ((float)points[i] - theta[i] * (unit * unit)) * step;
    return cst_checksum_scalar.points(points, block->n, block->keys);
}

static cst_checksum encode_z(const cst_sum_block *block, const float *x, uint32_t sender, uint8_t *codes,
                             int32_t *points)
{
    float theta[CST_BLOCK], per_step = 1.0f / block->step;
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    combined_dither(block, 1.0f, (float)sender, theta);
    for (uint32_t i = 0; i < block->n; i++) {
        z[i] = cst_round_even(x[i] * per_step + theta[i]);
        codes[i] = (uint8_t)z[i];
    }
    return cst_checksum_scalar.points(z, block->n, block->keys);
}

static cst_checksum decode_z(const cst_sum_block *block, const uint8_t *codes, uint32_t ranks, const float *ref,
                             float scale, float *mean, int32_t *points)
{
    float theta[CST_BLOCK], per_step = (float)ranks * scale * (1.0f / block->step);
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    combined_dither(block, (float)ranks, pairs(ranks), theta);
    for (uint32_t i = 0; i < block->n; i++) {
        float target = ref[i] * per_step + theta[i];
        int32_t multiple = cst_round_even((target - (float)codes[i]) * (1.0f / MODULUS));
        z[i] = cst_wrap_add(codes[i], cst_wrap_mul(multiple, MODULUS));
    }
    return mean_of_points(block, z, theta, 1.0f, ranks, mean);
}

static cst_checksum reconstruct_z(const cst_sum_block *block, const int32_t *points, uint32_t ranks, float *mean)
{
    float theta[CST_BLOCK];
    combined_dither(block, (float)ranks, pairs(ranks), theta);
    return mean_of_points(block, points, theta, 1.0f, ranks, mean);
}

static uint32_t cell_start(uint32_t c)
{
    return c / CST_LANES * CST_UNIT + c % CST_LANES;
}

static cst_checksum encode_e8(const cst_sum_block *block, const float *x, uint32_t sender, uint8_t *codes,
                              int32_t *points)
{
    float theta[CST_BLOCK], per_step = 1.0f / block->step;
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    combined_dither(block, 1.0f, (float)sender, theta);
    for (uint32_t c = 0; c < block->n / 8; c++) {
        uint32_t at = cell_start(c);
        float y[8];
        int32_t point[8], coefficient[8];
        for (uint32_t t = 0; t < 8; t++)
            y[t] = x[at + CST_LANES * t] * per_step + 2.0f * theta[at + CST_LANES * t];
        cst_e8_nearest(y, point);
        cst_e8_to_basis(point, coefficient);
        for (uint32_t t = 0; t < 8; t++) {
            z[at + CST_LANES * t] = point[t];
            codes[at + CST_LANES * t] = (uint8_t)coefficient[t];
        }
    }
    return cst_checksum_scalar.points(z, block->n, block->keys);
}

static cst_checksum decode_e8(const cst_sum_block *block, const uint8_t *codes, uint32_t ranks, const float *ref,
                              float scale, float *mean, int32_t *points)
{
    float theta[CST_BLOCK], per_step = (float)ranks * scale * (1.0f / block->step);
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    combined_dither(block, (float)ranks, pairs(ranks), theta);
    for (uint32_t c = 0; c < block->n / 8; c++) {
        uint32_t at = cell_start(c);
        float y[8];
        int32_t digits[8], base[8], multiple[8];
        for (uint32_t t = 0; t < 8; t++)
            digits[t] = codes[at + CST_LANES * t];
        cst_e8_from_basis(digits, base);
        for (uint32_t t = 0; t < 8; t++) {
            float target = ref[at + CST_LANES * t] * per_step + 2.0f * theta[at + CST_LANES * t];
            y[t] = (target - (float)base[t] * 0.5f) * (1.0f / MODULUS);
        }
        cst_e8_nearest(y, multiple);
        for (uint32_t t = 0; t < 8; t++)
            z[at + CST_LANES * t] = cst_wrap_add(base[t], cst_wrap_mul(multiple[t], MODULUS));
    }
    return mean_of_points(block, z, theta, 2.0f, ranks, mean);
}

static cst_checksum reconstruct_e8(const cst_sum_block *block, const int32_t *points, uint32_t ranks, float *mean)
{
    float theta[CST_BLOCK];
    combined_dither(block, (float)ranks, pairs(ranks), theta);
    return mean_of_points(block, points, theta, 2.0f, ranks, mean);
}

const cst_sum_kernels cst_sum_z_scalar = {.encode = encode_z, .decode = decode_z, .reconstruct = reconstruct_z};
const cst_sum_kernels cst_sum_e8_scalar = {.encode = encode_e8, .decode = decode_e8, .reconstruct = reconstruct_e8};
