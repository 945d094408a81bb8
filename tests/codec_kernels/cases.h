/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of block kernels share: levels against the scalar tables, inputs, classes, a block's description. */
#ifndef CST_TESTS_CODEC_CASES_H
#define CST_TESTS_CODEC_CASES_H
#include <math.h>

#include "kernels/block.h"
#include "kernels/checkasm.h"
#include "kernels/flush.h"
#include "kernels/pack/pack.h"
#include "kernels/quantise/quantise.h"

static inline double uniform_open(void)
{
    return (double)((ca_random() >> 11) + 1) * 0x1p-53;
}
static inline double gaussian(void)
{
    return sqrt(-2 * log(uniform_open())) * cos(6.283185307179586 * uniform_open());
}

/* One of 128, 256, ... 4096. */
static inline uint32_t random_length(void)
{
    return (uint32_t)CST_UNIT << ca_below(6);
}

/* Gaussians of this spread, in one of several manners: plain, with a mean, with outliers, with zeros and denormals,
 * sitting on ties. |x| stays below 2^18 spreads. */
static inline void fill_vector(float *x, uint32_t n, double spread)
{
    size_t manner = ca_below(5);
    for (uint32_t i = 0; i < n; i++) {
        double v = gaussian();
        if (manner == 1)
            v += 100;
        if (manner == 2 && ca_below(50) == 0)
            v *= 1000;
        if (manner == 3)
            v = ca_below(2) ? 0.0 : 1e-41 / spread;
        if (manner == 4)
            v = 0.25 * round(4 * v);
        x[i] = (float)(v * spread);
    }
}

static inline uint8_t random_class(void)
{
    uint8_t k;
    do
        k = (uint8_t)(CST_CLASS_MIN + ca_below(CST_CLASS_MAX - CST_CLASS_MIN + 1));
    while (!cst_class_valid(k));
    return k;
}
/* One class for the block, or one per unit. */
static inline void random_classes(uint8_t *classes, uint32_t n)
{
    bool mixed = ca_below(2);
    for (uint32_t u = 0; u < n / CST_UNIT; u++)
        classes[u] = mixed || u == 0 ? random_class() : classes[0];
}

static inline cst_lattice_block random_block(uint32_t n, float step, const int32_t *keys)
{
    cst_stream_root root = cst_stream_root_of(ca_random(), ca_random(), 7);
    return (cst_lattice_block){
        n, step, 1.0f, cst_stream_of(root, CST_USE_DITHER, 1, (uint32_t)ca_below(64), (uint32_t)ca_below(1000)), keys};
}

/* ref = x + what the lattice tolerates at each unit's modulus, times `part`; below 1 every coordinate must decode. */
static inline void fill_reference(cst_lattice_kind lattice, const float *x, const uint8_t *classes, uint32_t n,
                                  float step, double part, float *ref)
{
    for (uint32_t cell = 0; cell < n / 8; cell++) {
        uint32_t at = cell / CST_LANES * CST_UNIT + cell % CST_LANES;
        double q = cst_classes[classes[at / CST_UNIT]].q, v[8], norm = 0;
        for (int t = 0; t < 8; t++) {
            v[t] = gaussian();
            norm += v[t] * v[t];
        }
        for (int t = 0; t < 8; t++) {
            double off =
                lattice == CST_LATTICE_E8 ? v[t] / sqrt(norm) * (q - 1) * sqrt(0.5) : (uniform_open() - 0.5) * (q - 1);
            ref[at + CST_LANES * t] = (float)(x[at + CST_LANES * t] + part * off * step);
        }
    }
}
#endif
