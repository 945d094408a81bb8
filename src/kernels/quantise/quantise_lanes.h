/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of quantise.h on vector lanes, for both lattices. z_scalar.c and e8_scalar.c are the definition. */
#ifndef CST_KERNELS_QUANTISE_QUANTISE_LANES_H
#define CST_KERNELS_QUANTISE_QUANTISE_LANES_H
#include "kernels/quantise/unit_lanes.h"

CST_LANE_INLINE cst_checksum encode_block(cst_lattice_kind lattice, const cst_lattice_block *b, const float *x,
                                          const uint8_t *classes, uint8_t *out, int32_t *points)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, 1.0f, 1.0f);
    checksum_lanes sum = checksum_start();
    uint32_t last[CST_LANES];
    for (uint32_t part = 0; part < PARTS; part++) {
        lane_writer w = writer_start(out, part);
        for (uint32_t u = 0; u < b->n / CST_UNIT; u++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            const class_lanes c = class_prepare(classes[u]);
            fvec theta[8], y[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            sender_dither(lattice, b, theta);
            add_dither(&f, x + at, theta, y);
            round_unit(lattice, y, point);
            checksum_unit(&sum, point, b->keys + at);
            if (points)
                store_points(points + at, point);
            coloured_integers(lattice, point, point);
            put_colours(&w, point, &c);
        }
        writer_end(&w, part, last);
    }
    store_last_row(last, cst_lane_bits(classes, b->n / CST_UNIT), out);
    return checksum_end(&sum);
}

/* value may be NULL. */
CST_LANE_INLINE cst_checksum quantise_block(cst_lattice_kind lattice, const cst_lattice_block *b, const float *x,
                                            float scale, int32_t *points, float *value)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, scale, 1.0f), back = factors_of(lattice, b, 1.0f, b->weight);
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < b->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8], y[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            sender_dither(lattice, b, theta);
            add_dither(&f, x + at, theta, y);
            round_unit(lattice, y, point);
            checksum_unit(&sum, point, b->keys + at);
            store_points(points + at, point);
            if (value)
                store_values(&back, point, theta, value + at);
        }
    return checksum_end(&sum);
}

/* Into `out`, or, if that is NULL, into the sum `to`. */
CST_LANE_INLINE cst_checksum decode_block(cst_lattice_kind lattice, const cst_lattice_block *b, const uint8_t *in,
                                          const uint8_t *classes, const float *ref, float scale, float *out,
                                          cst_summed *to, int32_t *points)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, scale, b->weight);
    const uint32_t lane_bits = cst_lane_bits(classes, b->n / CST_UNIT);
    checksum_lanes sum = checksum_start();
    double lanes[2][CST_LANES];
    for (uint32_t part = 0; part < PARTS; part++) {
        uint32_t last[CST_LANES];
        lane_reader r = reader_start(in, part, lane_bits, last);
        square_lanes squares = {d_zero(), d_zero()};
        for (uint32_t u = 0; u < b->n / CST_UNIT; u++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            const class_lanes c = class_prepare(classes[u]);
            fvec theta[8], target[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            add_dither(&f, ref + at, theta, target);
            get_digits(&r, point, &c);
            nearest_of_colour(lattice, target, c.inverse, c.q, point);
            checksum_unit(&sum, point, b->keys + at);
            if (points)
                store_points(points + at, point);
            if (out)
                store_values(&f, point, theta, out + at);
            else
                add_values(&f, point, theta, ref, to, at, &squares);
        }
        squares_store(&squares, part, lanes);
    }
    if (!out)
        squares_end(lanes, to);
    return checksum_end(&sum);
}

CST_LANE_INLINE cst_checksum decode_digits_block(cst_lattice_kind lattice, const cst_lattice_block *b,
                                                 const uint16_t *digits, uint32_t q, const float *ref, float scale,
                                                 float *out, int32_t *points)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, scale, b->weight);
    const fvec inverse = f_set(1.0f / (float)q);
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < b->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8], target[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            add_dither(&f, ref + at, theta, target);
            CST_UNROLL
            for (int t = 0; t < 8; t++)
                point[t] = i_load_halves(digits + at + CST_LANES * t);
            nearest_of_colour(lattice, target, inverse, i_set((int32_t)q), point);
            checksum_unit(&sum, point, b->keys + at);
            if (points)
                store_points(points + at, point);
            store_values(&f, point, theta, out + at);
        }
    return checksum_end(&sum);
}

CST_LANE_INLINE cst_checksum reconstruct_block(cst_lattice_kind lattice, const cst_lattice_block *b,
                                               const int32_t *points, float *out)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, 1.0f, b->weight);
    checksum_lanes sum = checksum_start();
    for (uint32_t u = 0; u < b->n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            load_points(points + at, point);
            checksum_unit(&sum, point, b->keys + at);
            store_values(&f, point, theta, out + at);
        }
    return checksum_end(&sum);
}

CST_LANE_INLINE cst_checksum reconstruct_add_block(cst_lattice_kind lattice, const cst_lattice_block *b,
                                                   const int32_t *points, const float *ref, cst_summed *to)
{
    const philox_lanes dither = philox_prepare(&b->dither);
    const block_factors f = factors_of(lattice, b, 1.0f, b->weight);
    checksum_lanes sum = checksum_start();
    double lanes[2][CST_LANES];
    for (uint32_t part = 0; part < PARTS; part++) {
        square_lanes squares = {d_zero(), d_zero()};
        for (uint32_t u = 0; u < b->n / CST_UNIT; u++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec theta[8];
            ivec point[8];
            dither_unit(&dither, u, part, theta);
            load_points(points + at, point);
            checksum_unit(&sum, point, b->keys + at);
            add_values(&f, point, theta, ref, to, at, &squares);
        }
        squares_store(&squares, part, lanes);
    }
    squares_end(lanes, to);
    return checksum_end(&sum);
}

CST_LANE_INLINE void need_block(cst_lattice_kind lattice, const float *value, const float *x, uint32_t n, float scale,
                                float step, float *need)
{
    const fvec factor = f_set(scale), per_step = f_set(1.0f / step);
    for (uint32_t u = 0; u < n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = CST_UNIT * u + VEC_LANES * part;
            fvec r[8];
            float lane[VEC_LANES];
            CST_UNROLL
            for (int t = 0; t < 8; t++)
                r[t] = f_sub(f_load(value + at + CST_LANES * t), f_mul(f_load(x + at + CST_LANES * t), factor));
            f_store(lane, f_mul(lattice == CST_LATTICE_E8 ? e8_reach(r) : z_reach(r), per_step));
            for (int l = 0; l < VEC_LANES; l++)
                need[u] = lane[l] > need[u] ? lane[l] : need[u];
        }
}

/* --- the tables' functions --- */

static cst_checksum z_encode(const cst_lattice_block *b, const float *x, const uint8_t *classes, uint8_t *out,
                             int32_t *points)
{
    return encode_block(CST_LATTICE_Z, b, x, classes, out, points);
}
static cst_checksum z_decode(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes, const float *ref,
                             float scale, float *out, int32_t *points)
{
    return decode_block(CST_LATTICE_Z, b, in, classes, ref, scale, out, NULL, points);
}
static cst_checksum z_decode_add(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes,
                                 const float *ref, float scale, cst_summed *to, int32_t *points)
{
    return decode_block(CST_LATTICE_Z, b, in, classes, ref, scale, NULL, to, points);
}
static cst_checksum z_decode_digits(const cst_lattice_block *b, const uint16_t *digits, uint32_t q, const float *ref,
                                    float scale, float *out, int32_t *points)
{
    return decode_digits_block(CST_LATTICE_Z, b, digits, q, ref, scale, out, points);
}
static cst_checksum z_quantise(const cst_lattice_block *b, const float *x, int32_t *points)
{
    return quantise_block(CST_LATTICE_Z, b, x, 1.0f, points, NULL);
}
static cst_checksum z_quantise_both(const cst_lattice_block *b, const float *x, float scale, int32_t *points,
                                    float *value)
{
    return quantise_block(CST_LATTICE_Z, b, x, scale, points, value);
}
static cst_checksum z_reconstruct(const cst_lattice_block *b, const int32_t *points, float *out)
{
    return reconstruct_block(CST_LATTICE_Z, b, points, out);
}
static cst_checksum z_reconstruct_add(const cst_lattice_block *b, const int32_t *points, const float *ref,
                                      cst_summed *to)
{
    return reconstruct_add_block(CST_LATTICE_Z, b, points, ref, to);
}
static void z_need(const float *value, const float *x, uint32_t n, float scale, float step, float *need)
{
    need_block(CST_LATTICE_Z, value, x, n, scale, step, need);
}

static cst_checksum e8_encode(const cst_lattice_block *b, const float *x, const uint8_t *classes, uint8_t *out,
                              int32_t *points)
{
    return encode_block(CST_LATTICE_E8, b, x, classes, out, points);
}
static cst_checksum e8_decode(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes, const float *ref,
                              float scale, float *out, int32_t *points)
{
    return decode_block(CST_LATTICE_E8, b, in, classes, ref, scale, out, NULL, points);
}
static cst_checksum e8_decode_add(const cst_lattice_block *b, const uint8_t *in, const uint8_t *classes,
                                  const float *ref, float scale, cst_summed *to, int32_t *points)
{
    return decode_block(CST_LATTICE_E8, b, in, classes, ref, scale, NULL, to, points);
}
static cst_checksum e8_decode_digits(const cst_lattice_block *b, const uint16_t *digits, uint32_t q, const float *ref,
                                     float scale, float *out, int32_t *points)
{
    return decode_digits_block(CST_LATTICE_E8, b, digits, q, ref, scale, out, points);
}
static cst_checksum e8_quantise(const cst_lattice_block *b, const float *x, int32_t *points)
{
    return quantise_block(CST_LATTICE_E8, b, x, 1.0f, points, NULL);
}
static cst_checksum e8_quantise_both(const cst_lattice_block *b, const float *x, float scale, int32_t *points,
                                     float *value)
{
    return quantise_block(CST_LATTICE_E8, b, x, scale, points, value);
}
static cst_checksum e8_reconstruct(const cst_lattice_block *b, const int32_t *points, float *out)
{
    return reconstruct_block(CST_LATTICE_E8, b, points, out);
}
static cst_checksum e8_reconstruct_add(const cst_lattice_block *b, const int32_t *points, const float *ref,
                                       cst_summed *to)
{
    return reconstruct_add_block(CST_LATTICE_E8, b, points, ref, to);
}
static void e8_need(const float *value, const float *x, uint32_t n, float scale, float step, float *need)
{
    need_block(CST_LATTICE_E8, value, x, n, scale, step, need);
}
#endif
