/* SPDX-License-Identifier: Apache-2.0 */
/* Points of E8, one part of one unit (VEC_LANES cells) at a time; e8_scalar.c is the definition. */
#ifndef CST_KERNELS_QUANTISE_E8_LANES_H
#define CST_KERNELS_QUANTISE_E8_LANES_H
#include "kernels/pack/pack_lanes.h"
#include "kernels/quantise/nearest_lanes.h"

/* Digits to points: c + q NEAREST((target - c) / q), c the point whose coefficients the digits are. */
CST_LANE_INLINE void e8_nearest_of_colour(const fvec target[8], fvec inverse, ivec q, ivec point[8])
{
    ivec base[8], multiple[8];
    fvec y[8];
    e8_from_basis_lanes(point, base);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        y[t] = f_mul(f_fnma(i_to_f(base[t]), f_set(0.5f), target[t]), inverse);
    e8_nearest_lanes(y, multiple);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        point[t] = i_add(base[t], i_mul(multiple[t], q));
}

/* What modulus decodes these residuals: the cells' largest inner products with the 240 minimal vectors. */
CST_LANE_INLINE fvec e8_reach(const fvec r[8])
{
    fvec size[8], high[8], low[8], smallest;
    ivec negative = i_zero();
    CST_UNROLL
    for (int t = 0; t < 8; t++) {
        size[t] = high[t] = f_magnitude(r[t]);
        low[t] = f_set(0.0f);
        negative = i_xor(negative, f_bits(r[t]));
    }
    smallest = f_min(f_min(f_min(size[0], size[1]), f_min(size[2], size[3])),
                     f_min(f_min(size[4], size[5]), f_min(size[6], size[7])));
    CST_UNROLL
    for (int width = 4; width > 0; width /= 2) {
        CST_UNROLL
        for (int t = 0; t < width; t++) {
            fvec second = f_min(high[t], high[t + width]);
            low[t] = f_max(second, f_max(low[t], low[t + width]));
            high[t] = f_max(high[t], high[t + width]);
        }
    }
    fvec wrong_parity = f_from_bits(i_and(f_bits(smallest), mask_of_negative(negative)));
    return f_max(f_add(high[0], low[0]), f_sub(f_mul(sum_of_eight(size), f_set(0.5f)), wrong_parity));
}
#endif
