/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CST_KERNELS_NORM_NORM_LANES_H
#define CST_KERNELS_NORM_NORM_LANES_H
#include <string.h>

#include "kernels/lanes/lanes.h"
#include "kernels/norm/norm.h"

#define FIRST_NONFINITE 0x7f800000 /* magnitudes from here on are Inf and NaN */

/* The tree of norm.h. */
static inline double sum_of_lanes(double lane[CST_LANES])
{
    for (int width = CST_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return lane[0];
}
static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#endif
