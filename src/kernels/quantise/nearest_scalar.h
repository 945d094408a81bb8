/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nearest E8 point with one rounding per coordinate, in f32: the reference for the vector code.
 *
 * E8 = D8 together with D8 + (1/2)^8 (D8: integers with even sum). Let f be y rounded and r = y - f. In D8 the best is
 * f, or, when its sum is odd, f with the coordinate of largest |r| rounded the other way: |r|^2 + (1 - 2 max|r|). In
 * D8 + 1/2 the residuals are |r| - 1/2 in size: with S = sum |r| that is |r|^2 - S + 2, plus 2 min|r| when the
 * parity of f plus the number of negative r is odd. So the comparison needs S, the extremes and two parities.
 * Ties of |r| are broken by index, put into the low three bits of |r|'s pattern.
 */
#ifndef CST_KERNELS_QUANTISE_NEAREST_SCALAR_H
#define CST_KERNELS_QUANTISE_NEAREST_SCALAR_H
#include "kernels/scalar.h"

/* What the search needs to know about a cell: rounded coordinates, residuals, and |r| with the index in its low bits. */
typedef struct {
    int32_t rounded[8];
    uint32_t residual[8]; /* patterns of r: bit 31 is the sign */
    uint32_t key[8];
    uint32_t largest, smallest; /* keys */
    float sum;                  /* of |r|, by a fixed tree */
    bool odd0, odd1;            /* the coset's parity is wrong before correction */
} cst_e8_cell;

static inline cst_e8_cell cst_e8_inspect(const float y[8])
{
    cst_e8_cell c = {.largest = 0, .smallest = UINT32_MAX};
    float size[8];
    int32_t parity = 0;
    uint32_t negative = 0;
    for (uint32_t t = 0; t < 8; t++) {
        c.rounded[t] = cst_round_even(y[t]);
        float r = y[t] - (float)c.rounded[t];
        c.residual[t] = cst_float_bits(r);
        size[t] = cst_magnitude(r);
        c.key[t] = (cst_float_bits(size[t]) & ~7u) | t;
        c.largest = c.key[t] > c.largest ? c.key[t] : c.largest;
        c.smallest = c.key[t] < c.smallest ? c.key[t] : c.smallest;
        parity ^= c.rounded[t];
        negative ^= c.residual[t];
    }
    c.sum = ((size[0] + size[1]) + (size[2] + size[3])) + ((size[4] + size[5]) + (size[6] + size[7]));
    c.odd0 = parity & 1;
    c.odd1 = c.odd0 ^ (negative >> 31);
    return c;
}

/* point: doubled coordinates of the nearest point of E8. */
static inline void cst_e8_nearest(const float y[8], int32_t point[8])
{
    cst_e8_cell c = cst_e8_inspect(y);
    float cost1 = c.odd1 ? cst_float_from_bits(c.smallest) * 2.0f : 0.0f;
    float cost0 = c.odd0 ? 1.0f - cst_float_from_bits(c.largest) * 2.0f : 0.0f;
    float difference = ((2.0f - c.sum) + cost1) - cost0;
    bool halves = cst_float_bits(difference) >> 31;
    for (int t = 0; t < 8; t++) {
        int32_t away = halves ? 1 : 0; /* from f, in the direction of r, in half units */
        if (halves && c.odd1 && c.key[t] == c.smallest)
            away = -1;
        if (!halves && c.odd0 && c.key[t] == c.largest)
            away = 2;
        int32_t towards = c.residual[t] >> 31 ? cst_wrap_sub(0, away) : away;
        point[t] = cst_wrap_add(cst_wrap_add(c.rounded[t], c.rounded[t]), towards);
    }
}
#endif
