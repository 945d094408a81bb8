/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/checksum/checksum_lanes.h"

static cst_checksum points_lanes(const int32_t *points, uint32_t n, const int32_t *keys)
{
    checksum_lanes sum = checksum_start();
    for (uint32_t i = 0; i < n; i += VEC_LANES)
        checksum_add(&sum, i_load(points + i), keys + i);
    return checksum_end(&sum);
}

const cst_checksum_kernels cst_checksum_avx512 = {.points = points_lanes};
