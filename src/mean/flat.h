/* SPDX-License-Identifier: Apache-2.0 */
/* All tensors of a call as one vector of f32, one after another: for protocols that know no blocks. */
#ifndef CST_MEAN_FLAT_H
#define CST_MEAN_FLAT_H
#include "mean/internal.h"

/* The inputs, rounded to f32; free() it. NULL: no memory. */
float *cst_flat_read(const coset_round *round);
/* Results into the outputs. */
void cst_flat_write(const coset_round *round, const float *x);
#endif
