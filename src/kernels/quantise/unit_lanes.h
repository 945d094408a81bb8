/* SPDX-License-Identifier: Apache-2.0 */
/* What the quantisers do with one part of one unit: `lattice` is a constant wherever these are inlined. */
#ifndef CST_KERNELS_QUANTISE_UNIT_LANES_H
#define CST_KERNELS_QUANTISE_UNIT_LANES_H
#include "kernels/checksum/checksum_lanes.h"
#include "kernels/norm/norm_sum.h"
#include "kernels/pack/pack_lanes.h"
#include "kernels/quantise/e8_lanes.h"
#include "kernels/quantise/quantise.h"
#include "kernels/quantise/z_lanes.h"
#include "kernels/random/philox_lanes.h"

CST_LANE_INLINE void round_unit(cst_lattice_kind lattice, const fvec y[8], ivec point[8])
{
    if (lattice == CST_LATTICE_E8)
        e8_nearest_lanes(y, point);
    else
        z_round(y, point);
}
CST_LANE_INLINE void nearest_of_colour(cst_lattice_kind lattice, const fvec target[8], fvec inverse, ivec q,
                                       ivec point[8])
{
    if (lattice == CST_LATTICE_E8)
        e8_nearest_of_colour(target, inverse, q, point);
    else
        z_nearest_of_colour(target, inverse, q, point);
}
/* The sender's dither: private dither of E8 is reduced to the Voronoi cell. */
CST_LANE_INLINE void sender_dither(cst_lattice_kind lattice, const cst_lattice_block *b, fvec theta[8])
{
    if (lattice != CST_LATTICE_E8 || b->weight != 0.0f)
        return;
    const fvec per_half_step = f_set(0.25f / DITHER_SCALE); /* theta * 2^32 for half a step of 2 theta */
    fvec y[8];
    ivec point[8];
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        y[t] = f_mul(theta[t], f_set(2.0f * DITHER_SCALE));
    e8_nearest_lanes(y, point);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        theta[t] = f_fnma(i_to_f(point[t]), per_half_step, theta[t]);
}
/* The integers whose colours are sent. */
CST_LANE_INLINE void coloured_integers(cst_lattice_kind lattice, const ivec point[8], ivec integers[8])
{
    if (lattice == CST_LATTICE_E8) {
        e8_to_basis_lanes(point, integers);
        return;
    }
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        integers[t] = point[t];
}
CST_LANE_INLINE void load_points(const int32_t *points, ivec point[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        point[t] = i_load(points + CST_LANES * t);
}
CST_LANE_INLINE void store_points(int32_t *points, const ivec point[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        i_store(points + CST_LANES * t, point[t]);
}
CST_LANE_INLINE void checksum_unit(checksum_lanes *sum, const ivec point[8], const int32_t *keys)
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        checksum_add(sum, point[t], keys + CST_LANES * t);
}

/* Factors between vectors, dither and points. A weight is 0 or 1, so that all products with theta are exact. */
typedef struct {
    fvec per_step;     /* of x or ref */
    fvec dither;       /* theta * 2^32 to steps */
    fvec point_dither; /* theta * 2^32 to units of points */
    fvec point_step;   /* points to values */
} block_factors;

CST_LANE_INLINE block_factors factors_of(cst_lattice_kind lattice, const cst_lattice_block *b, float scale,
                                         float weight)
{
    const float unit = lattice == CST_LATTICE_E8 ? 2.0f : 1.0f;
    return (block_factors){f_set(scale * (1.0f / b->step)), f_set(unit * DITHER_SCALE * weight),
                           f_set(unit * unit * DITHER_SCALE * weight), f_set(b->step / unit)};
}
CST_LANE_INLINE void add_dither(const block_factors *f, const float *x, const fvec theta[8], fvec y[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        y[t] = f_fma(theta[t], f->dither, f_mul(f_load(x + CST_LANES * t), f->per_step));
}
CST_LANE_INLINE fvec value_of(const block_factors *f, ivec point, fvec theta)
{
    return f_mul(f_fnma(theta, f->point_dither, i_to_f(point)), f->point_step);
}
CST_LANE_INLINE void store_values(const block_factors *f, const ivec point[8], const fvec theta[8], float *out)
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        f_store(out + CST_LANES * t, value_of(f, point[t], theta[t]));
}

/* One part's lanes of the sums of squares of a cst_summed. */
typedef struct {
    dvec distance2, energy;
} square_lanes;

CST_LANE_INLINE void add_values(const block_factors *f, const ivec point[8], const fvec theta[8], const float *ref,
                                const cst_summed *to, uint32_t at, square_lanes *s)
{
    const fvec share = f_set(to->share);
    CST_UNROLL
    for (int t = 0; t < 8; t++) {
        const fvec value = value_of(f, point[t], theta[t]), before = f_load(ref + at + CST_LANES * t);
        const fvec sum = f_add(before, value);
        const dvec distance = d_widen(f_sub(value, f_mul(before, share))), wide = d_widen(sum);
        s->distance2 = d_add_products(s->distance2, distance, distance);
        s->energy = d_add_products(s->energy, wide, wide);
        if (to->value)
            f_store(to->value + at + CST_LANES * t, value);
        f_store(to->sum + at + CST_LANES * t, sum);
    }
}
CST_LANE_INLINE void squares_store(const square_lanes *s, uint32_t part, double lanes[2][CST_LANES])
{
    d_store(lanes[0] + VEC_LANES * part, s->distance2);
    d_store(lanes[1] + VEC_LANES * part, s->energy);
}
static inline void squares_end(double lanes[2][CST_LANES], cst_summed *to)
{
    to->distance2 = sum_of_lanes(lanes[0]);
    to->energy = sum_of_lanes(lanes[1]);
}
#endif
