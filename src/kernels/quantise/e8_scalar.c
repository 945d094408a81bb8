/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/block.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_scalar.h"
#include "kernels/quantise/nearest_scalar.h"
#include "kernels/quantise/quantise.h"

/* Offset of cell c's first coordinate; the others are CST_LANES apart. */
static uint32_t cell_start(uint32_t c)
{
    return c / CST_LANES * CST_UNIT + c % CST_LANES;
}

/* theta of a cell, scaled to (-1, 1); private dither is reduced to the Voronoi cell. */
static void cell_dither(const cst_lattice_block *b, const float *theta, float dither[8])
{
    int32_t point[8];
    for (int t = 0; t < 8; t++)
        dither[t] = 2.0f * theta[CST_LANES * t];
    if (b->weight != 0.0f)
        return;
    cst_e8_nearest(dither, point);
    for (int t = 0; t < 8; t++)
        dither[t] -= (float)point[t] * 0.5f;
}

static cst_checksum quantise_scaled(const cst_lattice_block *b, const float *x, float scale, int32_t *points)
{
    float theta[CST_BLOCK], per_step = scale * (1.0f / b->step);
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t c = 0; c < b->n / 8; c++) {
        uint32_t at = cell_start(c);
        float y[8], dither[8];
        int32_t point[8];
        cell_dither(b, theta + at, dither);
        for (uint32_t t = 0; t < 8; t++) {
            float scaled = x[at + CST_LANES * t] * per_step;
            y[t] = scaled + dither[t];
        }
        cst_e8_nearest(y, point);
        for (uint32_t t = 0; t < 8; t++)
            points[at + CST_LANES * t] = point[t];
    }
    return cst_checksum_scalar.points(points, b->n, b->keys);
}

static cst_checksum reconstruct(const cst_lattice_block *b, const int32_t *points, float *out)
{
    float theta[CST_BLOCK], half_step = 0.5f * b->step;
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t i = 0; i < b->n; i++)
        out[i] = ((float)points[i] - 4.0f * theta[i] * b->weight) * half_step;
    return cst_checksum_scalar.points(points, b->n, b->keys);
}

/* One cell: digits in, point out: c + q NEAREST((target - c) / q), c the point with the digits as coefficients. */
static void nearest_of_colour(const float target[8], int32_t q, float inverse, int32_t digits[8])
{
    int32_t c[8], multiple[8];
    float y[8];
    cst_e8_from_basis(digits, c);
    for (int t = 0; t < 8; t++)
        y[t] = (target[t] - (float)c[t] * 0.5f) * inverse;
    cst_e8_nearest(y, multiple);
    for (int t = 0; t < 8; t++)
        digits[t] = cst_wrap_add(c[t], cst_wrap_mul(multiple[t], q));
}

/* points: digits in, points out. */
static void decode_points(const cst_lattice_block *b, const uint8_t *classes, uint32_t q, const float *ref, float scale,
                          int32_t *points)
{
    float theta[CST_BLOCK], per_step = scale * (1.0f / b->step);
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t c = 0; c < b->n / 8; c++) {
        uint32_t at = cell_start(c);
        int32_t modulus = classes ? cst_classes[classes[at / CST_UNIT]].q : (int32_t)q;
        float target[8];
        int32_t cell[8];
        for (uint32_t t = 0; t < 8; t++) {
            uint32_t i = at + CST_LANES * t;
            target[t] = ref[i] * per_step + 2.0f * theta[i] * b->weight;
            cell[t] = points[i];
        }
        nearest_of_colour(target, modulus, 1.0f / (float)modulus, cell);
        for (uint32_t t = 0; t < 8; t++)
            points[at + CST_LANES * t] = cell[t];
    }
}

/* Largest inner product of a cell with the minimal vectors: +-e_i +-e_j (the two largest magnitudes), and (+-1/2)^8 with
 * an even number of minus signs (half the sum of magnitudes, less the smallest if the signs of the cell are odd). */
static float largest_inner_product(const float r[8])
{
    float size[8], high[8], low[8], smallest;
    uint32_t negative = 0;
    for (int t = 0; t < 8; t++) {
        size[t] = high[t] = cst_magnitude(r[t]);
        low[t] = 0.0f;
        negative ^= cst_float_bits(r[t]);
    }
    smallest = size[0];
    for (int t = 1; t < 8; t++)
        smallest = size[t] < smallest ? size[t] : smallest;
    for (int width = 4; width > 0; width /= 2)
        for (int t = 0; t < width; t++) {
            float a = high[t], b = high[t + width];
            float second = a < b ? a : b, other = low[t] > low[t + width] ? low[t] : low[t + width];
            high[t] = a > b ? a : b;
            low[t] = second > other ? second : other;
        }
    float sum = ((size[0] + size[1]) + (size[2] + size[3])) + ((size[4] + size[5]) + (size[6] + size[7]));
    float integers = high[0] + low[0];
    float halves = sum * 0.5f - (negative >> 31 ? smallest : 0.0f);
    return integers > halves ? integers : halves;
}

static void need(const float *value, const float *x, uint32_t n, float scale, float step, float *modulus)
{
    float per_step = 1.0f / step;
    for (uint32_t c = 0; c < n / 8; c++) {
        uint32_t at = cell_start(c);
        float r[8];
        for (uint32_t t = 0; t < 8; t++)
            r[t] = value[at + CST_LANES * t] - x[at + CST_LANES * t] * scale;
        float needed = largest_inner_product(r) * per_step;
        if (needed > modulus[at / CST_UNIT])
            modulus[at / CST_UNIT] = needed;
    }
}

static void pack_points(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    cst_pack_scalar.pack_e8(points, n, classes, out);
}

#include "kernels/quantise/quantise_scalar.h"

const cst_quantise_kernels cst_e8_scalar = {.encode = encode,
                                            .decode = decode,
                                            .decode_add = decode_add,
                                            .decode_digits = decode_digits,
                                            .quantise = quantise,
                                            .quantise_both = quantise_both,
                                            .reconstruct = reconstruct,
                                            .reconstruct_add = reconstruct_add,
                                            .need = need};
