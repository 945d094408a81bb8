/* SPDX-License-Identifier: Apache-2.0 */
/* What all variants share. */
#ifndef CST_KERNELS_NORM_NORM_SUM_H
#define CST_KERNELS_NORM_NORM_SUM_H
#include "kernels/block.h"
#include "kernels/norm/norm.h"
#include "kernels/scalar.h"

#define FIRST_NONFINITE 0x7f800000 /* magnitudes from here on are Inf and NaN */

/* The tree of norm.h. */
static inline double sum_of_lanes(double lane[CST_LANES])
{
    for (int width = CST_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return lane[0];
}
#endif
