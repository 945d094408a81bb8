/* SPDX-License-Identifier: Apache-2.0 */
/* Division of 64-bit lanes by a number that is no power of two: no instruction set has it, so lane by lane. Included by
 * the shims, after `vec`, load and store. */
#ifndef CST_KERNELS_SIMD_DIVIDE64_H
#define CST_KERNELS_SIMD_DIVIDE64_H

static inline vec divide_i64(vec v, const cst_divisor *by)
{
    int64_t lane[VEC_BYTES / 8];
    store(lane, v);
    for (int i = 0; i < VEC_BYTES / 8; i++)
        lane[i] /= (int64_t)by->n;
    return load(lane);
}

static inline vec divide_u64(vec v, const cst_divisor *by)
{
    uint64_t lane[VEC_BYTES / 8];
    store(lane, v);
    for (int i = 0; i < VEC_BYTES / 8; i++)
        lane[i] /= by->n;
    return load(lane);
}
#endif
