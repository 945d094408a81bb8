/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/block.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_scalar.h"
#include "kernels/quantise/quantise.h"
#include "kernels/scalar.h"

static cst_checksum quantise_scaled(const cst_lattice_block *b, const float *x, float scale, int32_t *points)
{
    float theta[CST_BLOCK], per_step = scale * (1.0f / b->step);
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t i = 0; i < b->n; i++) {
        float scaled = x[i] * per_step;
        points[i] = cst_round_even(scaled + theta[i]);
    }
    return cst_checksum_scalar.points(points, b->n, b->keys);
}

static cst_checksum reconstruct(const cst_lattice_block *b, const int32_t *points, float *out)
{
    float theta[CST_BLOCK];
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t i = 0; i < b->n; i++)
        out[i] = ((float)points[i] - theta[i] * b->weight) * b->step;
    return cst_checksum_scalar.points(points, b->n, b->keys);
}

/* The integer of colour `digit` modulo q nearest to target, up to rounding errors at the midpoints. */
static int32_t nearest_of_colour(float target, int32_t digit, int32_t q, float inverse)
{
    int32_t multiple = cst_round_even((target - (float)digit) * inverse);
    return cst_wrap_add(digit, cst_wrap_mul(multiple, q));
}

/* points: digits in, points out. */
static void decode_points(const cst_lattice_block *b, const uint8_t *classes, uint32_t q, const float *ref, float scale,
                          int32_t *points)
{
    float theta[CST_BLOCK], per_step = scale * (1.0f / b->step);
    cst_random_scalar.dither(&b->dither, b->n, theta);
    for (uint32_t i = 0; i < b->n; i++) {
        int32_t modulus = classes ? cst_classes[classes[i / CST_UNIT]].q : (int32_t)q;
        float target = ref[i] * per_step + theta[i] * b->weight;
        points[i] = nearest_of_colour(target, points[i], modulus, 1.0f / (float)modulus);
    }
}

static void need(const float *value, const float *x, uint32_t n, float scale, float step, float *modulus)
{
    float per_step = 1.0f / step;
    for (uint32_t i = 0; i < n; i++) {
        float distance = value[i] - x[i] * scale;
        float needed = 2.0f * cst_magnitude(distance) * per_step;
        if (needed > modulus[i / CST_UNIT])
            modulus[i / CST_UNIT] = needed;
    }
}

static void pack_points(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    cst_pack_scalar.pack_z(points, n, classes, out);
}

#include "kernels/quantise/quantise_scalar.h"

const cst_quantise_kernels cst_z_scalar = {.encode = encode,
                                           .decode = decode,
                                           .decode_add = decode_add,
                                           .decode_digits = decode_digits,
                                           .quantise = quantise,
                                           .quantise_both = quantise_both,
                                           .reconstruct = reconstruct,
                                           .reconstruct_add = reconstruct_add,
                                           .need = need};
