/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalar kernels that are the same for every lattice. The including file has defined before, for its own:
 * quantise_scaled (points of x * scale), reconstruct, decode_points (digits become points) and pack_points.
 */
#ifndef CST_KERNELS_QUANTISE_QUANTISE_SCALAR_H
#define CST_KERNELS_QUANTISE_QUANTISE_SCALAR_H
#include "kernels/norm/norm.h"
#include "kernels/pack/pack_scalar.h"
#include "kernels/quantise/quantise.h"

static cst_checksum quantise(const cst_lattice_block *b, const float *x, int32_t *points)
{
    return quantise_scaled(b, x, 1.0f, points);
}

static cst_checksum quantise_both(const cst_lattice_block *b, const float *x, float scale, int32_t *points,
                                  float *value)
{
    quantise_scaled(b, x, scale, points);
    return reconstruct(b, points, value);
}

static cst_checksum reconstruct_add(const cst_lattice_block *b, const int32_t *points, const float *ref, cst_summed *to)
{
    float local[CST_BLOCK], *value = to->value ? to->value : local;
    cst_checksum check = reconstruct(b, points, value);
    float distance[CST_BLOCK];
    for (uint32_t i = 0; i < b->n; i++) {
        distance[i] = value[i] - ref[i] * to->share;
        to->sum[i] = ref[i] + value[i];
    }
    to->distance2 = cst_norm_scalar.dot(distance, distance, b->n);
    to->energy = cst_norm_scalar.dot(to->sum, to->sum, b->n);
    return check;
}

static cst_checksum encode(const cst_lattice_block *b, const float *x, const uint8_t *classes, uint8_t *out,
                           int32_t *points)
{
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    cst_checksum sum = quantise(b, x, z);
    pack_points(z, b->n, classes, out);
    return sum;
}

static void decode_packed(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes, const float *ref,
                          float scale, int32_t *z)
{
    cst_unpack_scalar(in, b->n, classes, z);
    decode_points(b, classes, 0, ref, scale, z);
}

static cst_checksum decode(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes, const float *ref,
                           float scale, float *out, int32_t *points)
{
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    decode_packed(b, in, classes, ref, scale, z);
    return reconstruct(b, z, out);
}

static cst_checksum decode_add(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes, const float *ref,
                               float scale, cst_summed *to, int32_t *points)
{
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    decode_packed(b, in, classes, ref, scale, z);
    return reconstruct_add(b, z, ref, to);
}

static cst_checksum decode_digits(const cst_lattice_block *b, const uint16_t *digits, uint32_t q, const float *ref,
                                  float scale, float *out, int32_t *points)
{
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    for (uint32_t i = 0; i < b->n; i++)
        z[i] = digits[i];
    decode_points(b, NULL, q, ref, scale, z);
    return reconstruct(b, z, out);
}
#endif
