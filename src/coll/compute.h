/* SPDX-License-Identifier: Apache-2.0 */
/* COPY and REDUCE on memory: kernels, with conversion where some operands are f32 partial sums of a 16-bit vector. */
#ifndef CST_COLL_COMPUTE_H
#define CST_COLL_COMPUTE_H
#include <coset.h>
#include <stdbool.h>

typedef struct {
    void *data;
    bool wide; /* f32 in place of the 16-bit dtype */
} cst_operand;

/* to = from; overlapping only if to.data == from.data (then nothing moves). */
void cst_copy(coset_dtype dtype, cst_operand to, cst_operand from, size_t count);
/* to = from[0] op from[1] op ... in that order; then divided by `divide`, 1 for no division; 16-bit sums in f32, rounded
 * once if `to` is not wide. `to` may be one of the operands, of the same width. At least 2 sources. AVG is SUM here. `room` is
 * for as many pointers as there are sources. */
void cst_combine(coset_dtype dtype, coset_op op, cst_operand to, const cst_operand *from, int sources, size_t count,
                 unsigned divide, const void **room);
#endif
