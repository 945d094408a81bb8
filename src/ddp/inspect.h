/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at gradients of any float type. Fixed lanes: the same bits on every processor, in the mode of cpu/fpmode.h, which
 * callers of all but cst_has_nonfinite set. */
#ifndef CST_DDP_INSPECT_H
#define CST_DDP_INSPECT_H
#include <coset.h>

/* Sum of squares in f64 (norm.h: 16 lanes, fixed tree, blocks in order); *nonfinite counts NaN and Inf. */
double cst_energy(coset_dtype dtype, const void *x, size_t n, size_t *nonfinite);
/* The same of scale * x: for norms whose square is beyond f64. */
double cst_energy_scaled(const double *x, size_t n, double scale);
int cst_has_nonfinite(coset_dtype dtype, const void *x, size_t n);
/* x *= factor, rounded once. */
void cst_scale(coset_dtype dtype, void *x, size_t n, double factor);
#endif
