/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/pack/pack_lanes.h"

static void pack_z_lanes(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    pack_points(points, n, classes, out, false);
}

static void pack_e8_lanes(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    pack_points(points, n, classes, out, true);
}

const cst_pack_kernels cst_pack_avx512 = {.pack_z = pack_z_lanes, .pack_e8 = pack_e8_lanes};
