/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduction of vectors: n sources are combined element by element and written to m destinations in one pass, since
 * memory traffic is the cost.
 *
 *     dst[j][i] = (src[0][i] op src[1][i] op ... op src[nsrc-1][i]) / divide        for every j
 *
 * from left to right; docs/kernels.md has the numerical contract. In short:
 *   - f16 and bf16 are combined and divided in f32 and rounded once, to nearest even;
 *   - NaN results are the canonical quiet NaN; MIN and MAX are NaN if any source is; -0 is below +0;
 *   - integer sums and products wrap, integer division truncates towards zero;
 *   - the same bits at every CPU level, whatever the caller's floating-point mode.
 */
#ifndef CST_KERNELS_REDUCE_REDUCE_H
#define CST_KERNELS_REDUCE_REDUCE_H
#include "kernels/simd/pass.h"

#include <coset.h>

/*
 * nsrc and ndst are at least 1. COSET_AVG means COSET_SUM: the caller passes the number of ranks as `divide`, which is
 * 1 for no division (any op may divide). Pointers may have any alignment, unaligned elements included. A destination
 * may be the same as a source or as another destination, and sources may repeat; other overlap is not allowed.
 * flags: CST_REDUCE_NT_FIRST and _REST, 0 for ordinary stores. After non-temporal stores there is one store fence, so
 * a flag posted afterwards is seen after the data.
 * With one source, no division, it is a copy (NaNs canonical).
 */
void cst_reduce(coset_dtype dtype, coset_op op, void *const dst[], int ndst, const void *const src[], int nsrc,
                size_t count, unsigned divide, unsigned flags);

/* The name of the CPU level whose kernels run: "scalar", "avx2", "avx512", "neon". */
const char *cst_reduce_variant(void);
#endif
