/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/wide.h"

#include "codec/portable.h"

#include <math.h>

typedef struct {
    double step, inverse;
    float theta[CST_BLOCK];
} lattice;

static void prepare(lattice *l, const cst_tools *tools, const cst_block_id *id, cst_block_desc desc)
{
    l->step = cst_step_value(desc.step, id->exponent);
    l->inverse = 1 / l->step;
    cst_stream stream = cst_stream_of(id->root, CST_USE_DITHER, id->phase, id->sender, id->index);
    tools->random->dither(&stream, id->n, l->theta);
}

static cst_checksum checksum(const cst_tools *tools, const int64_t *k, uint32_t n)
{
    cst_checksum sum = {{0}};
    for (uint32_t i = 0; i < n; i++) {
        sum.sum[0] += (uint64_t)(int64_t)tools->keys[i] * (uint64_t)k[i];
        sum.sum[1] += (uint64_t)(int64_t)tools->keys[i + CST_CHECKSUM_SHIFT] * (uint64_t)k[i];
    }
    return sum;
}

/* Out of range (hostile steps and references): any number will do, the checksum tells. */
static int64_t whole(double y)
{
    return y > -0x1p62 && y < 0x1p62 ? (int64_t)floor(y) : 0;
}

static void reconstruct(const lattice *l, const int64_t *k, uint32_t n, double *value)
{
    for (uint32_t i = 0; i < n; i++)
        value[i] = ((double)k[i] - (double)l->theta[i]) * l->step;
}

cst_checksum cst_wide_quantise(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const double *x,
                               int64_t *k, double *value)
{
    lattice l;
    prepare(&l, tools, id, desc);
    for (uint32_t i = 0; i < id->n; i++)
        k[i] = whole(x[i] * l.inverse + (double)l.theta[i] + 0.5);
    if (value)
        reconstruct(&l, k, id->n, value);
    return checksum(tools, k, id->n);
}

void cst_wide_values(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const int64_t *k,
                     double *value)
{
    lattice l;
    prepare(&l, tools, id, desc);
    reconstruct(&l, k, id->n, value);
}

void cst_wide_pack(const int64_t *k, uint32_t n, unsigned bits, uint8_t *out)
{
    memset(out, 0, ((size_t)n * bits + 7) / 8);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned b = 0; b < bits; b++) {
            size_t at = (size_t)i * bits + b;
            out[at / 8] |= (uint8_t)(((uint64_t)k[i] >> b & 1) << (at % 8));
        }
}

static uint64_t colour_at(const uint8_t *in, uint32_t i, unsigned bits)
{
    uint64_t c = 0;
    for (unsigned b = 0; b < bits; b++) {
        size_t at = (size_t)i * bits + b;
        c |= (uint64_t)(in[at / 8] >> (at % 8) & 1) << b;
    }
    return c;
}

cst_checksum cst_wide_decode(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const uint8_t *in,
                             const double *ref, double *value)
{
    lattice l;
    int64_t k[CST_BLOCK];
    prepare(&l, tools, id, desc);
    uint64_t q = (uint64_t)1 << desc.class, mask = q - 1;
    for (uint32_t i = 0; i < id->n; i++) {
        /* ceil of the lower end of the window of q around r: its lowest integer; then up to the colour. */
        int64_t low = -whole((double)(q / 2) - (ref[i] * l.inverse + (double)l.theta[i]));
        k[i] = (int64_t)((uint64_t)low + ((colour_at(in, i, desc.class) - (uint64_t)low) & mask));
    }
    reconstruct(&l, k, id->n, value);
    return checksum(tools, k, id->n);
}

cst_checksum cst_wide_plain(const cst_tools *tools, const cst_block_id *id, cst_block_desc desc, const uint8_t *in,
                            double *value)
{
    lattice l;
    int64_t k[CST_BLOCK];
    prepare(&l, tools, id, desc);
    cst_reader r = cst_reader_of(in, (size_t)8 * id->n);
    for (uint32_t i = 0; i < id->n; i++)
        k[i] = (int64_t)cst_get64(&r);
    reconstruct(&l, k, id->n, value);
    return checksum(tools, k, id->n);
}

void cst_wide_plain_write(const int64_t *k, uint32_t n, uint8_t *out)
{
    cst_writer w = cst_writer_of(out, (size_t)8 * n);
    for (uint32_t i = 0; i < n; i++)
        cst_put(&w, (uint64_t)k[i], 8);
}
