/* SPDX-License-Identifier: Apache-2.0 */
#include "lattice/lattice.h"

extern const cst_lattice cst_lattice_z, cst_lattice_e8;

const cst_lattice *cst_lattice_of(cst_lattice_kind kind)
{
    return kind == CST_LATTICE_E8 ? &cst_lattice_e8 : &cst_lattice_z;
}

void cst_lattice_colour(const cst_lattice *l, const int64_t *point, uint32_t q, uint32_t *colour)
{
    int64_t coefficient[CST_LATTICE_MAX_DIM];
    l->to_basis(point, coefficient);
    for (int i = 0; i < l->dim; i++) {
        int64_t rest = coefficient[i] % (int64_t)q;
        colour[i] = (uint32_t)(rest < 0 ? rest + (int64_t)q : rest);
    }
}

void cst_lattice_decode(const cst_lattice *l, const uint32_t *colour, uint32_t q, const double *ref, int64_t *point)
{
    int64_t coefficient[CST_LATTICE_MAX_DIM], base[CST_LATTICE_MAX_DIM], multiple[CST_LATTICE_MAX_DIM];
    double scaled[CST_LATTICE_MAX_DIM];
    for (int i = 0; i < l->dim; i++)
        coefficient[i] = colour[i];
    l->from_basis(coefficient, base);
    for (int i = 0; i < l->dim; i++)
        scaled[i] = (ref[i] - (double)base[i] / l->unit) / q;
    l->nearest(scaled, multiple);
    for (int i = 0; i < l->dim; i++)
        point[i] = base[i] + (int64_t)q * multiple[i];
}

void cst_lattice_round(const cst_lattice *l, cst_rounding rounding, const double *x, const double *theta,
                       int64_t *point)
{
    double dither[CST_LATTICE_MAX_DIM], y[CST_LATTICE_MAX_DIM];
    for (int i = 0; i < l->dim; i++)
        dither[i] = l->unit * theta[i];
    if (rounding == CST_ROUND_PRIVATE) {
        l->nearest(dither, point);
        for (int i = 0; i < l->dim; i++)
            dither[i] -= (double)point[i] / l->unit;
    }
    for (int i = 0; i < l->dim; i++)
        y[i] = x[i] + dither[i];
    l->nearest(y, point);
}

void cst_lattice_value(const cst_lattice *l, cst_rounding rounding, const int64_t *point, const double *theta,
                       double *value)
{
    for (int i = 0; i < l->dim; i++) {
        value[i] = (double)point[i] / l->unit;
        if (rounding == CST_ROUND_SHARED)
            value[i] -= l->unit * theta[i];
    }
}
