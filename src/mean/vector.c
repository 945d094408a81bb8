/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/vector.h"

#include "codec/portable.h"
#include "cpu/fpmode.h"
#include "kernels/convert/convert.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Magnitudes from 2^-40 to 2^40 need no scaling: squares and sums of 4096 stay in f32, and what is flushed as a denormal
 * is less than 2^-86 of the largest. */
enum { SAFE_EXPONENT = 40 };

static const uint8_t *elements_of(const coset_span *span, size_t offset, coset_dtype dtype)
{
    return (const uint8_t *)span->send + offset * coset_dtype_size(dtype);
}

const uint8_t *cst_vector_elements(const cst_vector *v, uint32_t block)
{
    const cst_block *b = &v->layout->blocks[block];
    return elements_of(&v->spans[b->span], b->offset, v->dtype);
}

static void to_doubles(coset_dtype dtype, const uint8_t *in, uint32_t count, double *out)
{
    float wide[CST_BLOCK];
    switch (dtype) {
    case COSET_F64: memcpy(out, in, count * sizeof *out); return;
    case COSET_F32: memcpy(wide, in, count * sizeof *wide); break;
    default: cst_widen(dtype, wide, in, count);
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = wide[i];
}

/* x * 2^e, all of them. */
static void scale_doubles(double *x, uint32_t count, int e)
{
    const int exact = 1000; /* so far 2^e is a normal number, and one product is what cst_scale2 gives */
    if (e == 0)
        return;
    const double factor = e >= -exact && e <= exact ? cst_scale2(1, e) : 0;
    for (uint32_t i = 0; i < count; i++)
        x[i] = factor > 0 ? x[i] * factor : cst_scale2(x[i], e);
}

/* Energy, largest magnitude and number of non-finite elements of a block of any dtype. */
static cst_norm_stats block_stats(const cst_vector *v, const uint8_t *in, uint32_t count, double *largest)
{
    float wide[CST_BLOCK];
    if (v->dtype != COSET_F64) {
        const float *x = (const float *)(const void *)in;
        if (v->dtype != COSET_F32) {
            cst_widen(v->dtype, wide, in, count);
            x = wide;
        }
        cst_norm_stats stats = v->tools->norm->stats(x, count);
        *largest = stats.max;
        return stats;
    }
    cst_norm_stats stats = {0};
    double max = 0;
    for (uint32_t i = 0; i < count; i++) {
        double x;
        memcpy(&x, in + 8 * (size_t)i, sizeof x);
        if (!isfinite(x)) {
            stats.nonfinite++;
            continue;
        }
        max = fabs(x) > max ? fabs(x) : max;
        stats.energy += x * x; /* only used when the exponent is 0 */
    }
    *largest = max;
    return stats;
}

/* The block as floats in units of 2^exponent, padded with zeros. */
static void load_floats(const cst_vector *v, const uint8_t *in, const cst_block *b, int exponent, float *x)
{
    if (v->dtype == COSET_F32 && exponent == 0) {
        memcpy(x, in, b->count * sizeof *x);
    } else if (v->dtype != COSET_F64 && exponent == 0) {
        cst_widen(v->dtype, x, in, b->count);
    } else {
        double wide[CST_BLOCK];
        to_doubles(v->dtype, in, b->count, wide);
        scale_doubles(wide, b->count, -exponent);
        for (uint32_t i = 0; i < b->count; i++)
            x[i] = (float)wide[i];
    }
    memset(x + b->count, 0, (b->n - b->count) * sizeof *x);
}

void cst_block_signs(const cst_vector *v, uint32_t block, uint32_t signs[CST_SIGN_WORDS])
{
    const cst_block *b = &v->layout->blocks[block];
    cst_stream stream = cst_stream_of(v->roots[b->span], CST_USE_SIGNS, 0, CST_EVERY_SENDER, b->index);
    v->tools->random->words(&stream, 0, cst_sign_words(b->n), signs);
}

/* Rotates `block`, given as floats in units of 2^exponent, into `to`; the elements of the next one are fetched meanwhile. */
static void rotate_block(const cst_vector *v, uint32_t block, const float *from, float *to)
{
    const bool more = v->dtype == COSET_F32 && block + 1 < v->layout->nblocks;
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(v, block, signs);
    v->tools->hadamard->rotate(from, to, v->layout->blocks[block].n, signs,
                               more ? (const float *)(const void *)cst_vector_elements(v, block + 1) : NULL);
}

static bool is_plain(const cst_vector *v, uint32_t block, int exponent)
{
    const cst_block *b = &v->layout->blocks[block];
    return v->dtype == COSET_F32 && exponent == 0 && b->count == b->n;
}

static void rotate_into(const cst_vector *v, uint32_t block, int exponent, float *to)
{
    const cst_block *b = &v->layout->blocks[block];
    const uint8_t *in = cst_vector_elements(v, block);
    if (is_plain(v, block, exponent)) {
        rotate_block(v, block, (const float *)(const void *)in, to);
        return;
    }
    load_floats(v, in, b, exponent, to);
    rotate_block(v, block, to, to);
}

/* Energies between these say by themselves that all elements are finite (NaN and Inf make a sum of squares so) and that
 * the largest of up to 4096 is of a magnitude that needs no scaling. */
static const double safe_energy_low = 0x1p-60, safe_energy_high = 0x1p79;

/* The usual block: one pass. False, and nothing is decided, if it is another. */
static bool measure_plain(cst_vector *v, uint32_t block)
{
    const cst_block *b = &v->layout->blocks[block];
    const uint8_t *in = cst_vector_elements(v, block);
    const float *x = (const float *)(const void *)in;
    float room[CST_BLOCK];
    if (v->dtype != COSET_F32) {
        load_floats(v, in, b, 0, room);
        x = room;
    }
    double energy = v->tools->norm->dot(x, x, b->count);
    v->own[block] = (cst_own_block){energy / b->count, 0, CST_BLOCK_USUAL};
    return energy >= safe_energy_low && energy <= safe_energy_high;
}

/* Any block: what it is, and its scale. */
static void measure_block(cst_vector *v, uint32_t block)
{
    const cst_block *b = &v->layout->blocks[block];
    const uint8_t *in = cst_vector_elements(v, block);
    double largest;
    cst_norm_stats stats = block_stats(v, in, b->count, &largest);
    cst_own_block *own = &v->own[block];
    *own = (cst_own_block){.kind = stats.nonfinite ? CST_BLOCK_EXACT : largest == 0 ? CST_BLOCK_ZERO : CST_BLOCK_USUAL};
    if (own->kind != CST_BLOCK_USUAL)
        return;
    int e = cst_exponent(largest);
    if (e < -SAFE_EXPONENT || e > SAFE_EXPONENT) {
        float scaled[CST_BLOCK];
        own->exponent = e;
        load_floats(v, in, b, e, scaled);
        stats = v->tools->norm->stats(scaled, b->count);
    }
    own->energy = stats.energy / b->count;
}

coset_status cst_vector_load(cst_vector *v, const cst_tools *tools, cst_pace *pace, const cst_layout *layout,
                             const coset_span *spans, const cst_stream_root *roots, coset_dtype dtype)
{
    *v = (cst_vector){.tools = tools, .pace = pace, .layout = layout, .spans = spans, .roots = roots, .dtype = dtype};
    v->own = calloc(layout->nblocks ? layout->nblocks : 1, sizeof *v->own);
    if (!v->own)
        return COSET_ERR_MEMORY;
    cst_fpmode mode = cst_fpmode_enter(); /* denormals count: a block may consist of them */
    for (uint32_t b = 0; b < layout->nblocks; b++) {
        cst_pace_block(v->pace);
        if (!measure_plain(v, b))
            measure_block(v, b);
    }
    cst_fpmode_leave(mode);
    return COSET_OK;
}

const float *cst_vector_rotated(const cst_vector *v, uint32_t block, float *room)
{
    const cst_block *b = &v->layout->blocks[block];
    cst_pace_block(v->pace);
    if (v->own[block].kind != CST_BLOCK_USUAL) {
        memset(room, 0, b->n * sizeof *room);
        return room;
    }
    cst_fpmode mode = cst_fpmode_enter();
    rotate_into(v, block, v->own[block].exponent, room);
    cst_fpmode_leave(mode);
    return room;
}

void cst_vector_free(cst_vector *v)
{
    free(v->own);
    *v = (cst_vector){0};
}

void cst_vector_wide(const cst_vector *v, uint32_t block, int exponent, double *rotated)
{
    const cst_block *b = &v->layout->blocks[block];
    memset(rotated, 0, b->n * sizeof *rotated);
    if (v->own[block].kind != CST_BLOCK_USUAL)
        return;
    cst_fpmode mode = cst_fpmode_enter();
    to_doubles(v->dtype, cst_vector_elements(v, block), b->count, rotated);
    scale_doubles(rotated, b->count, -exponent);
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(v, block, signs);
    cst_rotate_f64(rotated, b->n, signs);
    cst_fpmode_leave(mode);
}

static double largest_of(coset_dtype dtype)
{
    return dtype == COSET_F64 ? DBL_MAX : dtype == COSET_F32 ? FLT_MAX : dtype == COSET_F16 ? 65504 : 0x1.fep127;
}

/* The estimate of a mean near the largest number may lie beyond it: the largest number is then the nearest that there is. */
static void store_doubles(const cst_vector *v, uint32_t block, double *x, int exponent)
{
    const cst_block *b = &v->layout->blocks[block];
    uint8_t *out = (uint8_t *)v->spans[b->span].recv + b->offset * coset_dtype_size(v->dtype);
    const double limit = largest_of(v->dtype);
    scale_doubles(x, b->count, exponent);
    for (uint32_t i = 0; i < b->count; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
    if (v->dtype == COSET_F64) {
        memcpy(out, x, b->count * sizeof *x);
        return;
    }
    float narrow[CST_BLOCK];
    for (uint32_t i = 0; i < b->count; i++)
        narrow[i] = (float)x[i];
    if (v->dtype == COSET_F32)
        memcpy(out, narrow, b->count * sizeof *narrow);
    else
        cst_narrow(v->dtype, out, narrow, b->count, 1);
}

/* The same of floats in units of 1, where no f32 can be too large: the usual case. */
static void store_floats(const cst_vector *v, uint32_t block, float *x)
{
    const cst_block *b = &v->layout->blocks[block];
    uint8_t *out = (uint8_t *)v->spans[b->span].recv + b->offset * coset_dtype_size(v->dtype);
    const float limit = (float)fmin(largest_of(v->dtype), FLT_MAX);
    if (v->dtype == COSET_F32) {
        memcpy(out, x, b->count * sizeof *x);
    } else if (v->dtype == COSET_F64) {
        double wide[CST_BLOCK];
        for (uint32_t i = 0; i < b->count; i++)
            wide[i] = x[i];
        memcpy(out, wide, b->count * sizeof *wide);
    } else {
        bool all_fit = sqrt(v->tools->norm->dot(x, x, b->count)) < limit; /* none is larger than the norm */
        for (uint32_t i = 0; !all_fit && i < b->count; i++)
            x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
        cst_narrow(v->dtype, out, x, b->count, 1);
    }
}

void cst_vector_store_wide(const cst_vector *v, uint32_t block, double *rotated, int exponent)
{
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(v, block, signs);
    cst_fpmode mode = cst_fpmode_enter();
    cst_unrotate_f64(rotated, v->layout->blocks[block].n, signs);
    store_doubles(v, block, rotated, exponent);
    cst_fpmode_leave(mode);
}

void cst_vector_store(const cst_vector *v, uint32_t block, float *rotated, int exponent)
{
    cst_pace_block(v->pace);
    const cst_block *b = &v->layout->blocks[block];
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(v, block, signs);
    uint8_t *out = (uint8_t *)v->spans[b->span].recv + b->offset * coset_dtype_size(v->dtype);
    cst_fpmode mode = cst_fpmode_enter();
    if (v->dtype == COSET_F32 && exponent == 0 && b->count == b->n) {
        v->tools->hadamard->unrotate(rotated, (float *)(void *)out, b->n, signs, NULL, true);
    } else {
        v->tools->hadamard->unrotate(rotated, rotated, b->n, signs, NULL, false);
        if (exponent == 0) {
            store_floats(v, block, rotated);
        } else {
            double wide[CST_BLOCK];
            for (uint32_t i = 0; i < b->count; i++)
                wide[i] = rotated[i];
            store_doubles(v, block, wide, exponent);
        }
    }
    cst_fpmode_leave(mode);
}

size_t cst_exact_bytes(coset_dtype dtype, bool down)
{
    return down && coset_dtype_size(dtype) < 4 ? 4 : coset_dtype_size(dtype);
}

void cst_exact_read(coset_dtype dtype, const uint8_t *in, uint32_t count, double *out)
{
    to_doubles(dtype, in, count, out);
}

void cst_exact_write(coset_dtype dtype, const double *x, uint32_t count, uint8_t *out)
{
    const double limit = largest_of(dtype);
    for (uint32_t i = 0; i < count; i++) {
        if (dtype == COSET_F64) {
            double y = isnan(x[i]) ? (double)NAN : x[i];
            memcpy(out + 8 * (size_t)i, &y, sizeof y);
        } else {
            /* A mean of finite numbers is finite: neither rounding nor a coded vector's error must make it infinite. */
            double y = isinf(x[i]) ? x[i] : x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
            float narrow = isnan(x[i]) ? NAN : (float)y;
            memcpy(out + 4 * (size_t)i, &narrow, sizeof narrow);
        }
    }
}

void cst_vector_store_exact(const cst_vector *v, uint32_t block, const uint8_t *payload)
{
    const cst_block *b = &v->layout->blocks[block];
    uint8_t *out = (uint8_t *)v->spans[b->span].recv + b->offset * coset_dtype_size(v->dtype);
    if (v->dtype == COSET_F32 || v->dtype == COSET_F64) {
        memcpy(out, payload, b->count * coset_dtype_size(v->dtype));
        return;
    }
    float wide[CST_BLOCK];
    memcpy(wide, payload, b->count * sizeof *wide);
    cst_narrow(v->dtype, out, wide, b->count, 1);
}
