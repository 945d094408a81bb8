/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16-bit floats (COSET_F16, COSET_BF16) to f32 and back; half.h defines the values, the same bits at every CPU level.
 * Source and destination do not overlap and may have any alignment. Independent of the thread's floating-point mode.
 */
#ifndef CST_KERNELS_CONVERT_CONVERT_H
#define CST_KERNELS_CONVERT_CONVERT_H
#include <coset.h>
#include <stddef.h>

/* dst[i] = src[i], exactly; NaN becomes the canonical one. */
void cst_widen(coset_dtype half, float *dst, const void *src, size_t count);
/* dst[i] = src[i] / divide, divided in f32, then rounded to nearest even. divide 1: no division. */
void cst_narrow(coset_dtype half, void *dst, const float *src, size_t count, unsigned divide);
#endif
