/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pack/pack_scalar.h"

#include <string.h>

#include "kernels/block.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/rows.h"
#include "kernels/scalar.h"

enum { MAX_ROWS = CST_PACKED_MAX / CST_ROW_BYTES };

/* Sixteen bit streams side by side, one row of words after another. */
typedef struct {
    uint32_t row[MAX_ROWS + 1][CST_LANES];
} lane_streams;

static void put_bits(lane_streams *s, uint32_t lane, uint32_t at, uint32_t value, uint32_t bits)
{
    uint64_t shifted = (uint64_t)value << (at % 32);
    s->row[at / 32][lane] |= (uint32_t)shifted;
    if (at % 32 + bits > 32)
        s->row[at / 32 + 1][lane] |= (uint32_t)(shifted >> 32);
}

static uint32_t get_bits(const lane_streams *s, uint32_t lane, uint32_t at, uint32_t bits)
{
    uint64_t value = s->row[at / 32][lane];
    if (at % 32 + bits > 32)
        value |= (uint64_t)s->row[at / 32 + 1][lane] << 32;
    return (uint32_t)(value >> (at % 32) & ((1ull << bits) - 1));
}

static void store_rows(const lane_streams *s, uint32_t lane_bits, uint8_t *out)
{
    for (uint32_t w = 0; w < lane_bits / 32; w++)
        for (uint32_t l = 0; l < CST_LANES; l++)
            cst_store_le32(out + CST_ROW_BYTES * w + 4 * l, s->row[w][l]);
    if (lane_bits % 32)
        cst_store_planes(s->row[lane_bits / 32], lane_bits % 32, out + CST_ROW_BYTES * (size_t)(lane_bits / 32));
}

static void load_rows(lane_streams *s, uint32_t lane_bits, const uint8_t *in)
{
    for (uint32_t w = 0; w < lane_bits / 32; w++)
        for (uint32_t l = 0; l < CST_LANES; l++)
            s->row[w][l] = cst_load_le32(in + CST_ROW_BYTES * w + 4 * l);
    if (lane_bits % 32)
        cst_load_planes(in + CST_ROW_BYTES * (size_t)(lane_bits / 32), lane_bits % 32, s->row[lane_bits / 32]);
}

static void pack_digits(const int32_t *digits, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    lane_streams s;
    memset(&s, 0, sizeof s);
    uint32_t at = 0;
    for (uint32_t u = 0; u < n / CST_UNIT; u++, digits += CST_UNIT) {
        const cst_class_info *c = &cst_classes[classes[u]];
        for (uint32_t t = 0; t < CST_UNIT_VECTORS; t += c->digits, at += c->bits)
            for (uint32_t l = 0; l < CST_LANES; l++) {
                uint32_t v = 0;
                for (uint32_t d = c->digits; d-- > 0;)
                    v = v * (uint32_t)c->q + (uint32_t)digits[CST_LANES * (t + d) + l];
                put_bits(&s, l, at, v, c->bits);
            }
    }
    store_rows(&s, at, out);
}

void cst_unpack_scalar(const uint8_t *in, uint32_t n, const uint8_t *classes, int32_t *digits)
{
    lane_streams s;
    uint32_t lane_bits = cst_lane_bits(classes, n / CST_UNIT), at = 0;
    load_rows(&s, lane_bits, in);
    for (uint32_t u = 0; u < n / CST_UNIT; u++, digits += CST_UNIT) {
        const cst_class_info *c = &cst_classes[classes[u]];
        for (uint32_t t = 0; t < CST_UNIT_VECTORS; t += c->digits, at += c->bits)
            for (uint32_t l = 0; l < CST_LANES; l++) {
                uint32_t v = get_bits(&s, l, at, c->bits), d = 0;
                for (; d + 1 < c->digits; d++, v /= (uint32_t)c->q)
                    digits[CST_LANES * (t + d) + l] = (int32_t)(v % (uint32_t)c->q);
                digits[CST_LANES * (t + d) + l] = (int32_t)v;
            }
    }
}

void cst_e8_to_basis(const int32_t point[8], int32_t coefficient[8])
{
    int32_t sum = 0;
    coefficient[0] = point[0];
    for (int i = 1; i < 7; i++) {
        coefficient[i] = cst_wrap_sub(point[i], point[0]) >> 1;
        sum = cst_wrap_add(sum, coefficient[i]);
    }
    coefficient[7] = cst_wrap_sub(cst_wrap_sub(point[7], point[0]) >> 1, sum) >> 1;
}

void cst_e8_from_basis(const int32_t coefficient[8], int32_t point[8])
{
    uint32_t sum = 2 * (uint32_t)coefficient[7];
    for (int i = 1; i < 7; i++)
        sum += (uint32_t)coefficient[i];
    point[0] = coefficient[0];
    for (int i = 1; i < 7; i++)
        point[i] = cst_wrap_add(coefficient[0], (int32_t)(2 * (uint32_t)coefficient[i]));
    point[7] = cst_wrap_add(coefficient[0], (int32_t)(2 * sum));
}

/* coefficient[i] for all cells of the n coordinates. */
static void basis_of_all(const int32_t *points, uint32_t n, int32_t *coefficients)
{
    for (uint32_t u = 0; u < n; u += CST_UNIT)
        for (uint32_t l = 0; l < CST_LANES; l++) {
            int32_t point[8], coefficient[8];
            for (uint32_t t = 0; t < 8; t++)
                point[t] = points[u + CST_LANES * t + l];
            cst_e8_to_basis(point, coefficient);
            for (uint32_t t = 0; t < 8; t++)
                coefficients[u + CST_LANES * t + l] = coefficient[t];
        }
}

static void colour_by_class(const int32_t *integers, uint32_t n, const uint8_t *classes, int32_t *digits)
{
    for (uint32_t i = 0; i < n; i++)
        digits[i] = cst_colour(integers[i], cst_classes[classes[i / CST_UNIT]].q);
}

static void pack_z_scalar(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    int32_t digits[CST_BLOCK];
    colour_by_class(points, n, classes, digits);
    pack_digits(digits, n, classes, out);
}

static void pack_e8_scalar(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    int32_t digits[CST_BLOCK];
    basis_of_all(points, n, digits);
    colour_by_class(digits, n, classes, digits);
    pack_digits(digits, n, classes, out);
}

const cst_pack_kernels cst_pack_scalar = {.pack_z = pack_z_scalar, .pack_e8 = pack_e8_scalar};

void cst_colour_z(const int32_t *points, uint32_t n, uint32_t q, uint16_t *digits)
{
    for (uint32_t i = 0; i < n; i++)
        digits[i] = (uint16_t)cst_colour(points[i], (int32_t)q);
}

void cst_colour_e8(const int32_t *points, uint32_t n, uint32_t q, uint16_t *digits)
{
    int32_t coefficients[CST_BLOCK];
    basis_of_all(points, n, coefficients);
    cst_colour_z(coefficients, n, q, digits);
}
