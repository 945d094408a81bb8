/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CST_KERNELS_RANDOM_RANDOM_LANES_H
#define CST_KERNELS_RANDOM_RANDOM_LANES_H
#include "kernels/random/philox_lanes.h"

static void words_lanes(const cst_stream *s, uint32_t first, uint32_t count, uint32_t *words)
{
    const philox_lanes p = philox_prepare(s);
    for (uint32_t i = 0; i < count; i += 64)
        for (uint32_t part = 0; part < PARTS; part++) {
            ivec w[2 * CHAINS];
            philox_two_groups(&p, (first + i) / 32, part, w);
            for (uint32_t v = 0; v < 2 * CHAINS && i + CST_LANES * v < count; v++)
                i_store(words + i + CST_LANES * v + VEC_LANES * part, w[v]);
        }
}

static void dither_lanes(const cst_stream *s, uint32_t n, float *theta)
{
    const philox_lanes p = philox_prepare(s);
    for (uint32_t u = 0; u < n / CST_UNIT; u++)
        for (uint32_t part = 0; part < PARTS; part++) {
            fvec scaled[CST_UNIT_VECTORS];
            dither_unit(&p, u, part, scaled);
            CST_UNROLL
            for (uint32_t t = 0; t < CST_UNIT_VECTORS; t++)
                f_store(theta + CST_UNIT * u + CST_LANES * t + VEC_LANES * part, f_mul(scaled[t], f_set(DITHER_SCALE)));
        }
}
#endif
