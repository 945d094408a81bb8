/* SPDX-License-Identifier: Apache-2.0 */
/* Points of Z, one part of one unit at a time; z_scalar.c is the definition. */
#ifndef CST_KERNELS_QUANTISE_Z_LANES_H
#define CST_KERNELS_QUANTISE_Z_LANES_H
#include "kernels/lanes/lanes.h"

CST_LANE_INLINE void z_round(const fvec y[8], ivec point[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        point[t] = f_round(y[t]);
}

/* Digits to points: the integer of each colour that is nearest to the target. */
CST_LANE_INLINE void z_nearest_of_colour(const fvec target[8], fvec inverse, ivec q, ivec point[8])
{
    CST_UNROLL
    for (int t = 0; t < 8; t++) {
        ivec multiple = f_round(f_mul(f_sub(target[t], i_to_f(point[t])), inverse));
        point[t] = i_add(point[t], i_mul(multiple, q));
    }
}

/* What modulus decodes these residuals. */
CST_LANE_INLINE fvec z_reach(const fvec r[8])
{
    fvec largest = f_set(0.0f);
    CST_UNROLL
    for (int t = 0; t < 8; t++)
        largest = f_max(largest, f_magnitude(r[t]));
    return f_add(largest, largest);
}
#endif
