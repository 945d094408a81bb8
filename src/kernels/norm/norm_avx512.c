/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/norm/norm_lanes.h"

/* The 16 lanes in two registers of doubles. */
typedef struct {
    __m512d low, high;
} lanes_f64;

CST_LANE_INLINE lanes_f64 widen(fvec x)
{
    return (lanes_f64){_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
}
/* Products of floats are exact in f64, so a fused addition rounds as a separate one does. */
CST_LANE_INLINE lanes_f64 add_products(lanes_f64 sum, lanes_f64 x, lanes_f64 y)
{
    return (lanes_f64){_mm512_fmadd_pd(x.low, y.low, sum.low), _mm512_fmadd_pd(x.high, y.high, sum.high)};
}
CST_LANE_INLINE void store_lanes(double lane[CST_LANES], lanes_f64 sum)
{
    _mm512_storeu_pd(lane, sum.low);
    _mm512_storeu_pd(lane + 8, sum.high);
}
CST_LANE_INLINE fvec load_some(const float *x, size_t m)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << m) - 1), x);
}

static double dot_lanes(const float *x, const float *y, size_t n)
{
    lanes_f64 sum = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        sum = add_products(sum, widen(f_load(x + i)), widen(f_load(y + i)));
    if (i < n)
        sum = add_products(sum, widen(load_some(x + i, n - i)), widen(load_some(y + i, n - i)));
    double lane[CST_LANES];
    store_lanes(lane, sum);
    return sum_of_lanes(lane);
}

typedef struct {
    lanes_f64 sum;
    ivec max;
    size_t nonfinite;
} running_stats;

CST_LANE_INLINE void add_vector(running_stats *s, fvec x)
{
    const ivec magnitude = i_and(f_bits(x), i_set(0x7fffffff));
    const __mmask16 finite = _mm512_cmplt_epi32_mask(magnitude, i_set(FIRST_NONFINITE));
    s->max = _mm512_mask_max_epi32(s->max, finite, s->max, magnitude);
    s->nonfinite += (size_t)(CST_LANES - __builtin_popcount(finite));
    const lanes_f64 wide = widen(_mm512_maskz_mov_ps(finite, x));
    s->sum = add_products(s->sum, wide, wide);
}

static cst_norm_stats stats_lanes(const float *x, size_t n)
{
    running_stats s = {{_mm512_setzero_pd(), _mm512_setzero_pd()}, i_zero(), 0};
    size_t i = 0;
    for (; i + CST_LANES <= n; i += CST_LANES)
        add_vector(&s, f_load(x + i));
    if (i < n)
        add_vector(&s, load_some(x + i, n - i));
    double lane[CST_LANES];
    store_lanes(lane, s.sum);
    return (cst_norm_stats){sum_of_lanes(lane), float_of((uint32_t)_mm512_reduce_max_epi32(s.max)), s.nonfinite};
}

const cst_norm_kernels cst_norm_avx512 = {.stats = stats_lanes, .dot = dot_lanes};
