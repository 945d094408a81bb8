/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest E8 points of VEC_LANES cells at once: nearest_scalar.h says how, and each line here is one of there. */
#ifndef CST_KERNELS_QUANTISE_NEAREST_LANES_H
#define CST_KERNELS_QUANTISE_NEAREST_LANES_H
#include "kernels/lanes/lanes.h"

CST_LANE_INLINE ivec max_of_eight(const ivec k[8])
{
    return i_max(i_max(i_max(k[0], k[1]), i_max(k[2], k[3])), i_max(i_max(k[4], k[5]), i_max(k[6], k[7])));
}
CST_LANE_INLINE ivec min_of_eight(const ivec k[8])
{
    return i_min(i_min(i_min(k[0], k[1]), i_min(k[2], k[3])), i_min(i_min(k[4], k[5]), i_min(k[6], k[7])));
}
CST_LANE_INLINE fvec sum_of_eight(const fvec s[8])
{
    return f_add(f_add(f_add(s[0], s[1]), f_add(s[2], s[3])), f_add(f_add(s[4], s[5]), f_add(s[6], s[7])));
}
/* All ones where the lowest bit is set; where the highest is. */
CST_LANE_INLINE ivec mask_of_odd(ivec a)
{
    return i_sar(i_shl(a, 31), 31);
}
CST_LANE_INLINE ivec mask_of_negative(ivec a)
{
    return i_sar(a, 31);
}

CST_LANE_INLINE void e8_nearest_lanes(const fvec y[8], ivec point[8])
{
    ivec rounded[8], residual[8], key[8], parity = i_zero(), negative = i_zero();
    fvec size[8];
    CST_UNROLL
    for (int t = 0; t < 8; t++) {
        rounded[t] = f_round(y[t]);
        residual[t] = f_bits(f_sub(y[t], i_to_f(rounded[t])));
        ivec magnitude = i_and(residual[t], i_set(0x7fffffff));
        size[t] = f_from_bits(magnitude);
        key[t] = i_and_or(magnitude, i_set(~7), i_set(t));
    }
    CST_UNROLL
    for (int t = 0; t < 8; t += 2) {
        parity = i_xor3(parity, rounded[t], rounded[t + 1]);
        negative = i_xor3(negative, residual[t], residual[t + 1]);
    }
    const ivec largest = max_of_eight(key), smallest = min_of_eight(key);
    const ivec odd0 = mask_of_odd(parity), odd1 = i_xor(odd0, mask_of_negative(negative));
    const fvec two = f_set(2.0f), one = f_set(1.0f);
    fvec cost1 = f_from_bits(i_and(f_bits(f_mul(f_from_bits(smallest), two)), odd1));
    fvec cost0 = f_from_bits(i_and(f_bits(f_sub(one, f_mul(f_from_bits(largest), two))), odd0));
    fvec difference = f_sub(f_add(f_sub(two, sum_of_eight(size)), cost1), cost0);
    const ivec halves = mask_of_negative(f_bits(difference));

    /* The key of the coordinate that goes the other way: none (-1) where the parity is right. */
    const ivec none = i_set(-1);
    ivec moved = i_select(halves, i_or(smallest, i_xor(odd1, none)), i_or(largest, i_xor(odd0, none)));
    ivec away = i_and(halves, i_set(1)), further = i_select(halves, i_set(-2), i_set(2));
    CST_UNROLL
    for (int t = 0; t < 8; t++) {
        ivec steps = i_add_where_equal(away, key[t], moved, further), sign = mask_of_negative(residual[t]);
        point[t] = i_add(i_add(rounded[t], rounded[t]), i_sub(i_xor(steps, sign), sign));
    }
}
#endif
