/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/lanes/lanes.h"
#include "kernels/norm/norm_sum.h"

CST_LANE_INLINE fvec load_some(const float *x, size_t m)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << m) - 1), x);
}

static double dot_lanes(const float *x, const float *y, size_t n)
{
    dvec sum = d_zero();
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        sum = d_add_products(sum, d_widen(f_load(x + i)), d_widen(f_load(y + i)));
    if (i < n)
        sum = d_add_products(sum, d_widen(load_some(x + i, n - i)), d_widen(load_some(y + i, n - i)));
    double lane[CST_LANES];
    d_store(lane, sum);
    return sum_of_lanes(lane);
}

static double distance2_lanes(const float *x, float scale, const float *y, size_t n)
{
    const fvec factor = f_set(scale);
    dvec sum = d_zero();
    for (size_t i = 0; i < n; i += CST_LANES) {
        const dvec d = d_widen(f_sub(f_mul(f_load(x + i), factor), f_load(y + i)));
        sum = d_add_products(sum, d, d);
    }
    double lane[CST_LANES];
    d_store(lane, sum);
    return sum_of_lanes(lane);
}

typedef struct {
    dvec sum;
    ivec max;
    size_t nonfinite;
} running_stats;

CST_LANE_INLINE void add_vector(running_stats *s, fvec x)
{
    const ivec magnitude = i_and(f_bits(x), i_set(0x7fffffff));
    const __mmask16 finite = _mm512_cmplt_epi32_mask(magnitude, i_set(FIRST_NONFINITE));
    s->max = _mm512_mask_max_epi32(s->max, finite, s->max, magnitude);
    s->nonfinite += (size_t)(CST_LANES - __builtin_popcount(finite));
    const dvec wide = d_widen(_mm512_maskz_mov_ps(finite, x));
    s->sum = d_add_products(s->sum, wide, wide);
}

static cst_norm_stats stats_lanes(const float *x, size_t n)
{
    running_stats s = {d_zero(), i_zero(), 0};
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        add_vector(&s, f_load(x + i));
    if (i < n)
        add_vector(&s, load_some(x + i, n - i));
    double lane[CST_LANES];
    d_store(lane, s.sum);
    return (cst_norm_stats){sum_of_lanes(lane), cst_float_from_bits((uint32_t)_mm512_reduce_max_epi32(s.max)),
                            s.nonfinite};
}

const cst_norm_kernels cst_norm_avx512 = {.stats = stats_lanes, .dot = dot_lanes, .distance2 = distance2_lanes};
