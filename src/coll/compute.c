/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/compute.h"

#include "kernels/convert/convert.h"
#include "kernels/reduce/reduce.h"
#include <string.h>

enum {
    BLOCK = 1024, /* elements per pass of a mixed sum: two buffers of 4 KiB, well within L1 */
    HALF = 2      /* bytes of a 16-bit float */
};

void cst_copy(coset_dtype dtype, cst_operand to, cst_operand from, size_t count)
{
    if (to.data == from.data)
        return;
    if (to.wide && !from.wide)
        cst_widen(dtype, to.data, from.data, count);
    else if (from.wide && !to.wide)
        cst_narrow(dtype, to.data, from.data, count, 1);
    else
        memcpy(to.data, from.data, count * (to.wide ? sizeof(float) : coset_dtype_size(dtype)));
}

/* Elements [at, at + count) of an operand as f32: in place if it is wide, else in `room`. */
static const float *widened(coset_dtype dtype, cst_operand from, size_t at, size_t count, float *room)
{
    if (from.wide)
        return (const float *)from.data + at;
    cst_widen(dtype, room, (const char *)from.data + at * HALF, count);
    return room;
}

static void combine_block(coset_dtype dtype, coset_op op, cst_operand to, const cst_operand *from, int sources,
                          size_t at, size_t count, unsigned divide)
{
    float sum[BLOCK], room[BLOCK];
    const void *src[2] = {widened(dtype, from[0], at, count, sum), NULL};
    for (int i = 1; i < sources; i++) {
        bool last = to.wide && i == sources - 1;
        void *dst[1] = {last ? (float *)to.data + at : sum};
        src[1] = widened(dtype, from[i], at, count, room);
        cst_reduce(COSET_F32, op, dst, 1, src, 2, count, last ? divide : 1, 0);
        src[0] = sum;
    }
    if (!to.wide)
        cst_narrow(dtype, (char *)to.data + at * HALF, src[0], count, divide);
}

static bool all_alike(cst_operand to, const cst_operand *from, int sources)
{
    for (int i = 0; i < sources; i++)
        if (from[i].wide != to.wide)
            return false;
    return true;
}

void cst_combine(coset_dtype dtype, coset_op op, cst_operand to, const cst_operand *from, int sources, size_t count,
                 unsigned divide, const void **room)
{
    if (!all_alike(to, from, sources)) {
        for (size_t at = 0; at < count; at += BLOCK)
            combine_block(dtype, op, to, from, sources, at, count - at < BLOCK ? count - at : BLOCK, divide);
        return;
    }
    for (int i = 0; i < sources; i++)
        room[i] = from[i].data;
    cst_reduce(to.wide ? COSET_F32 : dtype, op, &to.data, 1, room, sources, count, divide, 0);
}
