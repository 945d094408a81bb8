/* SPDX-License-Identifier: Apache-2.0 */
/* Colours, digits and the lanes' bit streams (pack.h) in vector registers: one part of the lanes at a time. */
#ifndef CST_KERNELS_PACK_PACK_LANES_H
#define CST_KERNELS_PACK_PACK_LANES_H
#include <string.h>

#include "kernels/lanes/lanes.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/rows.h"

/* --- the streams --- */

typedef struct {
    ivec pending;  /* bits not stored yet */
    uint32_t used; /* how many of them, < 32 */
    uint8_t *row;  /* this part's place in the row that comes next */
} lane_writer;

CST_LANE_INLINE lane_writer writer_start(uint8_t *out, uint32_t part)
{
    return (lane_writer){i_zero(), 0, out + 4 * VEC_LANES * part};
}
CST_LANE_INLINE void writer_put(lane_writer *w, ivec value, uint32_t bits)
{
    w->pending = i_or(w->pending, i_shl_by(value, w->used));
    w->used += bits;
    if (w->used >= 32) {
        i_store(w->row, w->pending);
        w->row += CST_ROW_BYTES;
        w->used -= 32;
        w->pending = i_shr_by(value, bits - w->used);
    }
}
/* The bits that fill no row; all parts are needed to store them (store_last_row). */
CST_LANE_INLINE void writer_end(const lane_writer *w, uint32_t part, uint32_t last[CST_LANES])
{
    i_store(last + VEC_LANES * part, w->pending);
}
/* out: where the first row went; lane_bits: what was put into each lane. */
static inline void store_last_row(const uint32_t last[CST_LANES], uint32_t lane_bits, uint8_t *out)
{
    if (lane_bits % 32)
        cst_store_planes(last, lane_bits % 32, out + CST_ROW_BYTES * (size_t)(lane_bits / 32));
}

typedef struct {
    ivec word;
    uint32_t used;        /* bits of `word` that are gone, 32: all */
    uint32_t rows;        /* whole rows that follow */
    const uint8_t *row;   /* this part's place in the next one */
    const uint32_t *last; /* this part's lanes of the row after them */
} lane_reader;

/* last: room for the last row, which the reader refers to. */
CST_LANE_INLINE lane_reader reader_start(const uint8_t *in, uint32_t part, uint32_t lane_bits, uint32_t last[CST_LANES])
{
    const uint32_t rows = lane_bits / 32;
    cst_load_planes(in + CST_ROW_BYTES * (size_t)rows, lane_bits % 32, last);
    return (lane_reader){i_zero(), 32, rows, in + 4 * VEC_LANES * part, last + VEC_LANES * part};
}
CST_LANE_INLINE void reader_next_row(lane_reader *r)
{
    if (r->rows > 0) {
        r->word = i_load(r->row);
        r->row += CST_ROW_BYTES;
        r->rows--;
    } else {
        r->word = i_load(r->last);
    }
}
/* The next `bits` bits; what is above them is junk unless bits is 32. */
CST_LANE_INLINE ivec reader_get(lane_reader *r, uint32_t bits)
{
    ivec value = i_shr_by(r->word, r->used);
    r->used += bits;
    if (r->used > 32) {
        r->used -= 32;
        reader_next_row(r);
        value = i_or(value, i_shl_by(r->word, bits - r->used));
    }
    return value;
}

/* --- digits: a class with its constants in registers --- */

typedef struct {
    ivec q;
    fvec inverse,
        offset; /* floor((v + 1/2) / q) = rne(v * inverse + offset) while |v| < 2^22: both have a margin of 1/(2q) */
    ivec digit_mask;          /* of a power of two */
    ivec packed_mask;         /* `bits` bits */
    ivec reciprocal, divisor; /* of q^2 or q: what the first division takes */
    uint32_t bits, shift, log2_q;
    bool pairs, power_of_two;
} class_lanes;

CST_LANE_INLINE class_lanes class_prepare(uint8_t k)
{
    const cst_class_info *c = &cst_classes[k];
    class_lanes l = {.q = i_set(c->q), .inverse = f_set(c->inverse), .offset = f_set(0.5f * c->inverse - 0.5f)};
    l.digit_mask = i_set(c->q - 1);
    l.packed_mask = i_set((int32_t)(UINT32_MAX >> (32 - c->bits)));
    l.reciprocal = i_set((int32_t)c->reciprocal);
    l.divisor = i_set(c->digits == 4 ? c->q * c->q : c->q);
    l.bits = c->bits;
    l.shift = c->shift;
    l.pairs = c->digits == 2;
    l.power_of_two = (c->q & (c->q - 1)) == 0;
    l.log2_q = k / 4u;
    return l;
}

/* floor(v / q) for |v| < 2^22, exactly. */
CST_LANE_INLINE ivec divide_floor(ivec v, const class_lanes *c)
{
    return f_round(f_fma(i_to_f(v), c->inverse, c->offset));
}

/* v = d0 + q (d1 + q (...)) of the colours of `count` integers. */
CST_LANE_INLINE ivec join_colours(const ivec *integers, int count, const class_lanes *c)
{
    ivec v = i_zero();
    if (c->power_of_two) {
        CST_UNROLL
        for (int d = count - 1; d >= 0; d--)
            v = i_and_or(integers[d], c->digit_mask, i_shl_by(v, c->log2_q));
        return v;
    }
    CST_UNROLL
    for (int d = count - 1; d >= 0; d--) /* v q + (z - q floor(z / q)) */
        v = i_add(integers[d], i_mul(c->q, i_sub(v, divide_floor(integers[d], c))));
    return v;
}

/* Colours of a unit's eight integers per lane, into the stream. */
CST_LANE_INLINE void put_colours(lane_writer *w, const ivec integers[CST_UNIT_VECTORS], const class_lanes *c)
{
    if (c->pairs) {
        for (int t = 0; t < CST_UNIT_VECTORS; t += 2)
            writer_put(w, join_colours(integers + t, 2, c), c->bits);
    } else {
        writer_put(w, join_colours(integers, 4, c), c->bits);
        writer_put(w, join_colours(integers + 4, 4, c), c->bits);
    }
}

/* Two digits of v < 2^22: d0 + q d1. */
CST_LANE_INLINE void split_small_pair(ivec v, const class_lanes *c, ivec digits[2])
{
    digits[1] = divide_floor(v, c);
    digits[0] = i_sub(v, i_mul(digits[1], c->q));
}

CST_LANE_INLINE void split_four(ivec v, const class_lanes *c, ivec digits[4])
{
    if (c->power_of_two) {
        CST_UNROLL
        for (int d = 0; d < 4; d++) {
            digits[d] = i_and(v, c->digit_mask);
            v = i_shr_by(v, c->log2_q);
        }
        return;
    }
    v = i_and(v, c->packed_mask);
    ivec high = i_shr_by(i_mul_high(v, c->reciprocal), c->shift);
    split_small_pair(i_sub(v, i_mul(high, c->divisor)), c, digits);
    split_small_pair(high, c, digits + 2);
}

CST_LANE_INLINE void split_two(ivec v, const class_lanes *c, ivec digits[2])
{
    v = i_and(v, c->packed_mask);
    digits[1] = i_shr_by(i_mul_high(v, c->reciprocal), c->shift);
    digits[0] = i_sub(v, i_mul(digits[1], c->divisor));
}

CST_LANE_INLINE void get_digits(lane_reader *r, ivec digits[CST_UNIT_VECTORS], const class_lanes *c)
{
    if (c->pairs) {
        for (int t = 0; t < CST_UNIT_VECTORS; t += 2)
            split_two(reader_get(r, c->bits), c, digits + t);
    } else {
        split_four(reader_get(r, c->bits), c, digits);
        split_four(reader_get(r, c->bits), c, digits + 4);
    }
}

/* --- E8: coefficients in the basis (1/2)^8, e_i + e_8, 2 e_8 of points in doubled coordinates --- */

CST_LANE_INLINE void e8_to_basis_lanes(const ivec point[8], ivec coefficient[8])
{
    ivec sum = i_zero();
    coefficient[0] = point[0];
    CST_UNROLL
    for (int i = 1; i < 7; i++) {
        coefficient[i] = i_sar(i_sub(point[i], point[0]), 1);
        sum = i_add(sum, coefficient[i]);
    }
    coefficient[7] = i_sar(i_sub(i_sar(i_sub(point[7], point[0]), 1), sum), 1);
}

CST_LANE_INLINE void e8_from_basis_lanes(const ivec coefficient[8], ivec point[8])
{
    ivec sum = i_add(i_add(i_add(coefficient[1], coefficient[2]), i_add(coefficient[3], coefficient[4])),
                     i_add(coefficient[5], coefficient[6]));
    ivec last = i_add(sum, i_add(coefficient[7], coefficient[7]));
    point[0] = coefficient[0];
    CST_UNROLL
    for (int i = 1; i < 7; i++)
        point[i] = i_add(coefficient[0], i_add(coefficient[i], coefficient[i]));
    point[7] = i_add(coefficient[0], i_add(last, last));
}

/* --- packing points without quantising --- */

CST_LANE_INLINE void pack_points(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out, bool e8)
{
    uint32_t last[CST_LANES];
    for (uint32_t part = 0; part < PARTS; part++) {
        lane_writer w = writer_start(out, part);
        for (uint32_t u = 0; u < n / CST_UNIT; u++) {
            const class_lanes c = class_prepare(classes[u]);
            ivec v[CST_UNIT_VECTORS];
            CST_UNROLL
            for (int t = 0; t < CST_UNIT_VECTORS; t++)
                v[t] = i_load(points + CST_UNIT * u + CST_LANES * t + VEC_LANES * part);
            if (e8)
                e8_to_basis_lanes(v, v);
            put_colours(&w, v, &c);
        }
        writer_end(&w, part, last);
    }
    store_last_row(last, cst_lane_bits(classes, n / CST_UNIT), out);
}
#endif
