/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Energies, dot products, magnitudes and non-finite values of f32 vectors of any length.
 *
 * Sums are in f64 with 16 virtual lanes: lane l adds the exact products of elements l, l + 16, ... in order; then the
 * lanes are summed by halves (0..7 += 8..15, 0..3 += 4..7, 0..1 += 2..3, 0 += 1). So every variant gives the same bits,
 * and the result depends on nothing but the values. Denormal inputs count as zero in the mode of flush.h.
 */
#ifndef CST_KERNELS_NORM_NORM_H
#define CST_KERNELS_NORM_NORM_H
#include <stddef.h>

typedef struct {
    double energy;    /* sum of squares of the finite elements */
    float max;        /* largest magnitude of the finite elements */
    size_t nonfinite; /* how many elements are NaN or Inf */
} cst_norm_stats;

typedef struct {
    cst_norm_stats (*stats)(const float *x, size_t n);
    double (*dot)(const float *x, const float *y, size_t n);
    /* Sum of (scale x - y)^2, product and difference rounded to f32 each. n: multiple of 16. */
    double (*distance2)(const float *x, float scale, const float *y, size_t n);
} cst_norm_kernels;

const cst_norm_kernels *cst_norm_kernels_for(int cpu_level);

extern const cst_norm_kernels cst_norm_scalar, cst_norm_avx2, cst_norm_avx512;
#endif
