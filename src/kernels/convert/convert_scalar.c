/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of the conversions: half.h, element by element. */
#include "kernels/convert/half.h"
#include "kernels/convert/table.h"

static uint16_t get16(const void *src, size_t i)
{
    uint16_t h;
    memcpy(&h, (const char *)src + i * sizeof h, sizeof h);
    return h;
}

static void put32(void *dst, size_t i, float x)
{
    memcpy((char *)dst + i * sizeof x, &x, sizeof x);
}

/* src[i] / n. A NaN that was moved through a register is still a NaN: the rounding below makes it canonical. */
static float get_divided(const cst_pass *pass, size_t i)
{
    float x;
    memcpy(&x, (const char *)pass->src[0] + i * sizeof x, sizeof x);
    return pass->by ? x / pass->by->f32 : x;
}

static void put16(void *dst, size_t i, uint16_t h)
{
    memcpy((char *)dst + i * sizeof h, &h, sizeof h);
}

static void widen_f16(const cst_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        put32(pass->dst[0], i, cst_f16_to_f32(get16(pass->src[0], i)));
}

static void widen_bf16(const cst_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        put32(pass->dst[0], i, cst_bf16_to_f32(get16(pass->src[0], i)));
}

static void narrow_f16(const cst_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        put16(pass->dst[0], i, cst_f32_to_f16(get_divided(pass, i)));
}

static void narrow_bf16(const cst_pass *pass)
{
    for (size_t i = 0; i < pass->count; i++)
        put16(pass->dst[0], i, cst_f32_to_bf16(get_divided(pass, i)));
}

const cst_convert_table cst_convert_scalar = {widen_f16, widen_bf16, narrow_f16, narrow_bf16};
