/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx2.h"
#include "kernels/lanes/lanes.h"
#include "kernels/norm/norm_sum.h"

CST_LANE_INLINE void store_lanes(double lane[CST_LANES], const dvec sum[PARTS])
{
    for (int part = 0; part < PARTS; part++)
        d_store(lane + 8 * part, sum[part]);
}

/* The last m < 16 elements, with zeros after them. */
CST_LANE_INLINE void copy_tail(float tail[CST_LANES], const float *x, size_t m)
{
    memset(tail, 0, CST_LANES * sizeof *tail);
    memcpy(tail, x, m * sizeof *tail);
}

CST_LANE_INLINE void dot_step(dvec sum[PARTS], const float *x, const float *y)
{
    CST_UNROLL
    for (int part = 0; part < PARTS; part++)
        sum[part] = d_add_products(sum[part], d_widen(f_load(x + 8 * part)), d_widen(f_load(y + 8 * part)));
}

static double dot_lanes(const float *x, const float *y, size_t n)
{
    dvec sum[PARTS] = {d_zero(), d_zero()};
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        dot_step(sum, x + i, y + i);
    if (i < n) {
        float tail[2][CST_LANES];
        copy_tail(tail[0], x + i, n - i);
        copy_tail(tail[1], y + i, n - i);
        dot_step(sum, tail[0], tail[1]);
    }
    double lane[CST_LANES];
    store_lanes(lane, sum);
    return sum_of_lanes(lane);
}

static double distance2_lanes(const float *x, float scale, const float *y, size_t n)
{
    const fvec factor = f_set(scale);
    dvec sum[PARTS] = {d_zero(), d_zero()};
    for (size_t i = 0; i < n; i += CST_LANES) {
        CST_UNROLL
        for (int part = 0; part < PARTS; part++) {
            const dvec d = d_widen(f_sub(f_mul(f_load(x + i + 8 * part), factor), f_load(y + i + 8 * part)));
            sum[part] = d_add_products(sum[part], d, d);
        }
    }
    double lane[CST_LANES];
    store_lanes(lane, sum);
    return sum_of_lanes(lane);
}

typedef struct {
    dvec sum[PARTS];
    ivec max;
    size_t nonfinite;
} running_stats;

CST_LANE_INLINE void add_vectors(running_stats *s, const float *x)
{
    CST_UNROLL
    for (int part = 0; part < PARTS; part++) {
        const fvec v = f_load(x + 8 * part);
        const ivec magnitude = i_and(f_bits(v), i_set(0x7fffffff));
        const ivec finite = _mm256_cmpgt_epi32(i_set(FIRST_NONFINITE), magnitude);
        s->max = i_max(s->max, i_and(magnitude, finite));
        s->nonfinite += (size_t)(VEC_LANES - __builtin_popcount((unsigned)_mm256_movemask_ps(f_from_bits(finite))));
        const dvec wide = d_widen(f_from_bits(i_and(f_bits(v), finite)));
        s->sum[part] = d_add_products(s->sum[part], wide, wide);
    }
}

static cst_norm_stats stats_lanes(const float *x, size_t n)
{
    running_stats s = {{d_zero(), d_zero()}, i_zero(), 0};
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        add_vectors(&s, x + i);
    if (i < n) {
        float tail[CST_LANES];
        copy_tail(tail, x + i, n - i);
        add_vectors(&s, tail);
    }
    double lane[CST_LANES];
    uint32_t max[VEC_LANES], largest = 0;
    store_lanes(lane, s.sum);
    i_store(max, s.max);
    for (int l = 0; l < VEC_LANES; l++)
        largest = max[l] > largest ? max[l] : largest;
    return (cst_norm_stats){sum_of_lanes(lane), cst_float_from_bits(largest), s.nonfinite};
}

const cst_norm_kernels cst_norm_avx2 = {.stats = stats_lanes, .dot = dot_lanes, .distance2 = distance2_lanes};
