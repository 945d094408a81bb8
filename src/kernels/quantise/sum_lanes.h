/* SPDX-License-Identifier: Apache-2.0 */
/* The homomorphic code (sum.h) on vector lanes; sum_scalar.c is the definition. */
#ifndef CST_KERNELS_QUANTISE_SUM_LANES_H
#define CST_KERNELS_QUANTISE_SUM_LANES_H
#include "kernels/quantise/sum.h"
#include "kernels/quantise/unit_lanes.h"

enum { SUM_MODULUS = 256 };

/* theta = a A + b B of the streams A and B. */
typedef struct {
    philox_lanes dither, slope;
    fvec a, b;
} combined_dither;

CST_LANE_INLINE combined_dither combine(const cst_sum_block *block, float a, float b)
{
    return (combined_dither){philox_prepare(&block->dither), philox_prepare(&block->slope), f_set(a), f_set(b)};
}
CST_LANE_INLINE combined_dither combine_all(const cst_sum_block *block, uint32_t ranks)
{
    return combine(block, (float)ranks, (float)(ranks * (ranks - 1) / 2));
}
CST_LANE_INLINE void combined_unit(const combined_dither *d, uint32_t unit, uint32_t part, fvec theta[8])
{
    fvec slope[8];
    const fvec scale = f_set(DITHER_SCALE);
    dither_unit(&d->dither, unit, part, theta);
    dither_unit(&d->slope, unit, part, slope);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        theta[t] = f_add(f_mul(f_mul(theta[t], scale), d->a), f_mul(f_mul(slope[t], scale), d->b));
}

CST_LANE_INLINE float unit_of(cst_lattice_kind lattice)
{
    return lattice == CST_LATTICE_E8 ? 2.0f : 1.0f;
}
CST_LANE_INLINE void add_combined(const float *x, fvec per_step, const fvec theta[8], fvec unit, fvec y[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        y[t] = f_add(f_mul(f_load(x + CST_LANES * t), per_step), f_mul(theta[t], unit));
}
/* (point - unit^2 theta) * point_step */
CST_LANE_INLINE void store_means(const ivec point[8], const fvec theta[8], fvec unit, fvec point_step, float *mean)
{
    const fvec unit_squared = f_mul(unit, unit);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        f_store(mean + CST_LANES * t, f_mul(f_sub(i_to_f(point[t]), f_mul(theta[t], unit_squared)), point_step));
}

CST_LANE_INLINE cst_checksum encode_sum(cst_lattice_kind lattice, const cst_sum_block *block, const float *x,
                                        uint32_t sender, uint8_t *codes, int32_t *points)
{
    const combined_dither dither = combine(block, 1.0f, (float)sender);
    const fvec per_step = f_set(1.0f / block->step), unit = f_set(unit_of(lattice));
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < block->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8], y[8];
            ivec point[8];
            combined_unit(&dither, u, part, theta);
            add_combined(x + at, per_step, theta, unit, y);
            round_unit(lattice, y, point);
            checksum_unit(&sum, point, block->keys + at);
            if (points)
                store_points(points + at, point);
            coloured_integers(lattice, point, point);
            CST_UNROLL
            for (int t = 0; t < 8; t++)
                i_store_bytes(codes + at + CST_LANES * t, point[t]);
        }
    return checksum_end(&sum);
}

CST_LANE_INLINE cst_checksum decode_sum(cst_lattice_kind lattice, const cst_sum_block *block, const uint8_t *codes,
                                        uint32_t ranks, const float *ref, float scale, float *mean, int32_t *points)
{
    const combined_dither dither = combine_all(block, ranks);
    const fvec per_step = f_set((float)ranks * scale * (1.0f / block->step)), unit = f_set(unit_of(lattice));
    const fvec point_step = f_set(block->step / (unit_of(lattice) * (float)ranks));
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < block->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8], target[8];
            ivec point[8];
            combined_unit(&dither, u, part, theta);
            add_combined(ref + at, per_step, theta, unit, target);
            CST_UNROLL
            for (int t = 0; t < 8; t++)
                point[t] = i_load_bytes(codes + at + CST_LANES * t);
            nearest_of_colour(lattice, target, f_set(1.0f / SUM_MODULUS), i_set(SUM_MODULUS), point);
            checksum_unit(&sum, point, block->keys + at);
            if (points)
                store_points(points + at, point);
            store_means(point, theta, unit, point_step, mean + at);
        }
    return checksum_end(&sum);
}

CST_LANE_INLINE cst_checksum reconstruct_sum(cst_lattice_kind lattice, const cst_sum_block *block,
                                             const int32_t *points, uint32_t ranks, float *mean)
{
    const combined_dither dither = combine_all(block, ranks);
    const fvec unit = f_set(unit_of(lattice)), point_step = f_set(block->step / (unit_of(lattice) * (float)ranks));
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < block->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8];
            ivec point[8];
            combined_unit(&dither, u, part, theta);
            load_points(points + at, point);
            checksum_unit(&sum, point, block->keys + at);
            store_means(point, theta, unit, point_step, mean + at);
        }
    return checksum_end(&sum);
}

static cst_checksum z_encode(const cst_sum_block *block, const float *x, uint32_t sender, uint8_t *codes,
                             int32_t *points)
{
    return encode_sum(CST_LATTICE_Z, block, x, sender, codes, points);
}
static cst_checksum z_decode(const cst_sum_block *block, const uint8_t *codes, uint32_t ranks, const float *ref,
                             float scale, float *mean, int32_t *points)
{
    return decode_sum(CST_LATTICE_Z, block, codes, ranks, ref, scale, mean, points);
}
static cst_checksum z_reconstruct(const cst_sum_block *block, const int32_t *points, uint32_t ranks, float *mean)
{
    return reconstruct_sum(CST_LATTICE_Z, block, points, ranks, mean);
}
static cst_checksum e8_encode(const cst_sum_block *block, const float *x, uint32_t sender, uint8_t *codes,
                              int32_t *points)
{
    return encode_sum(CST_LATTICE_E8, block, x, sender, codes, points);
}
static cst_checksum e8_decode(const cst_sum_block *block, const uint8_t *codes, uint32_t ranks, const float *ref,
                              float scale, float *mean, int32_t *points)
{
    return decode_sum(CST_LATTICE_E8, block, codes, ranks, ref, scale, mean, points);
}
static cst_checksum e8_reconstruct(const cst_sum_block *block, const int32_t *points, uint32_t ranks, float *mean)
{
    return reconstruct_sum(CST_LATTICE_E8, block, points, ranks, mean);
}
#endif
