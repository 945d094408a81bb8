/* SPDX-License-Identifier: Apache-2.0 */
#include "lattice/block64.h"

#include "kernels/block.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/pack_scalar.h"

/* Cells of Z are made of one coordinate, those of E8 of eight, CST_LANES apart (block.h). */
static uint32_t cell_start(const cst_lattice *l, uint32_t cell)
{
    return l->dim == 1 ? cell : cell / CST_LANES * CST_UNIT + cell % CST_LANES;
}

static cst_rounding rounding_of(const cst_lattice_block *block)
{
    return block->weight == 0.0f ? CST_ROUND_PRIVATE : CST_ROUND_SHARED;
}

/* What lies beyond int32 is the caller's error or a hostile header; it must not be undefined. */
static int32_t clamp_point(int64_t p)
{
    return p > INT32_MAX ? INT32_MAX : p < INT32_MIN ? INT32_MIN : (int32_t)p;
}
static double clamp_coordinate(double x)
{
    const double most = 0x1p40;
    return x > most ? most : x > -most ? x : -most; /* NaN too */
}

cst_checksum cst_quantise_f64(cst_lattice_kind kind, const cst_lattice_block *block, const double *x, int32_t *points)
{
    const cst_lattice *l = cst_lattice_of(kind);
    float theta[CST_BLOCK];
    cst_random_scalar.dither(&block->dither, block->n, theta);
    for (uint32_t cell = 0; cell < block->n / (uint32_t)l->dim; cell++) {
        const uint32_t at = cell_start(l, cell);
        double y[CST_LATTICE_MAX_DIM], dither[CST_LATTICE_MAX_DIM];
        int64_t point[CST_LATTICE_MAX_DIM];
        for (int t = 0; t < l->dim; t++) {
            y[t] = clamp_coordinate(x[at + CST_LANES * (uint32_t)t] / (double)block->step);
            dither[t] = (double)theta[at + CST_LANES * (uint32_t)t];
        }
        cst_lattice_round(l, rounding_of(block), y, dither, point);
        for (int t = 0; t < l->dim; t++)
            points[at + CST_LANES * (uint32_t)t] = clamp_point(point[t]);
    }
    return cst_checksum_scalar.points(points, block->n, block->keys);
}

void cst_pack_f64(cst_lattice_kind kind, const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out)
{
    if (kind == CST_LATTICE_E8)
        cst_pack_scalar.pack_e8(points, n, classes, out);
    else
        cst_pack_scalar.pack_z(points, n, classes, out);
}

static double weighted_dither(const cst_lattice *l, const cst_lattice_block *block, float theta)
{
    return rounding_of(block) == CST_ROUND_SHARED ? l->unit * (double)theta : 0;
}

cst_checksum cst_decode_f64(cst_lattice_kind kind, const cst_lattice_block *block, const uint8_t *in,
                            const uint8_t *classes, const double *ref, double scale, double *out, int32_t *points)
{
    const cst_lattice *l = cst_lattice_of(kind);
    float theta[CST_BLOCK];
    int32_t local[CST_BLOCK];
    int32_t *z = points ? points : local;
    cst_random_scalar.dither(&block->dither, block->n, theta);
    cst_unpack_scalar(in, block->n, classes, z);
    for (uint32_t cell = 0; cell < block->n / (uint32_t)l->dim; cell++) {
        const uint32_t at = cell_start(l, cell);
        double target[CST_LATTICE_MAX_DIM];
        uint32_t colour[CST_LATTICE_MAX_DIM];
        int64_t point[CST_LATTICE_MAX_DIM];
        for (int t = 0; t < l->dim; t++) {
            const uint32_t i = at + CST_LANES * (uint32_t)t;
            target[t] = clamp_coordinate(scale * ref[i] / (double)block->step + weighted_dither(l, block, theta[i]));
            colour[t] = (uint32_t)z[i];
        }
        cst_lattice_decode(l, colour, (uint32_t)cst_classes[classes[at / CST_UNIT]].q, target, point);
        for (int t = 0; t < l->dim; t++)
            z[at + CST_LANES * (uint32_t)t] = clamp_point(point[t]);
    }
    return cst_reconstruct_f64(kind, block, z, out);
}

cst_checksum cst_reconstruct_f64(cst_lattice_kind kind, const cst_lattice_block *block, const int32_t *points,
                                 double *out)
{
    const cst_lattice *l = cst_lattice_of(kind);
    float theta[CST_BLOCK];
    cst_random_scalar.dither(&block->dither, block->n, theta);
    for (uint32_t i = 0; i < block->n; i++)
        out[i] = ((double)points[i] / l->unit - weighted_dither(l, block, theta[i])) * (double)block->step;
    return cst_checksum_scalar.points(points, block->n, block->keys);
}
