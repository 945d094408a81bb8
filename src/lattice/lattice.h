/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lattices: nearest point, coordinates in a basis, colours modulo q, decoding by proximity. In f64 and one cell at a time:
 * the plain definition, for any code that is not hot, and for tests. The f32 kernels that do whole blocks are
 * kernels/quantise.
 *
 * Lengths are in steps: a lattice of step s is s times the one here, and both here have one point per unit of volume.
 * Points are integers, `unit` of them to a step: 1 for Z, 2 for E8, whose points have eight integer coordinates with even
 * sum or eight half-integer ones with even sum (J. Conway, N. Sloane: "Sphere Packings, Lattices and Groups", ch. 4 and
 * 20).
 *
 * V is the Voronoi cell of 0. A vector x is sent as the colour of z = NEAREST(x + theta), modulo q: its coefficients in a
 * basis, each modulo q. Points of one colour differ by q times a lattice point, so whoever has a vector r near x + theta
 * finds z = c + q NEAREST((r - c) / q), c the point with the colour as coefficients. It is z if z - r is inside q V; and
 * as z - (x + theta) is in V, it is enough that x + theta - r is inside (q - 1) V, for instance shorter than (q - 1)
 * packing radii (Lemma 15 of "New Bounds for Distributed Mean Estimation and Variance Reduction", P. Davies et al.
 * 2021, with the constant for this rounding). With private dither theta is in V too and the receiver does not know it:
 * (q - 2) V.
 */
#ifndef CST_LATTICE_LATTICE_H
#define CST_LATTICE_LATTICE_H
#include <stdint.h>

#include "kernels/quantise/quantise.h" /* cst_lattice_kind */

enum { CST_LATTICE_MAX_DIM = 8 };

typedef struct {
    const char *name;       /* "z", "e8" */
    int dim;                /* coordinates of a cell */
    int unit;               /* points count in steps / unit */
    double second_moment;   /* mean square of a coordinate of a point uniform in V */
    double packing_radius;  /* of the ball inside V */
    double covering_radius; /* of the ball around V */
    /* The lattice point nearest to x. Coordinates below 2^52. */
    void (*nearest)(const double *x, int64_t *point);
    /* Coefficients in the basis (Z: 1; E8: (1/2)^8, e_i + e_8 for i = 2..7, 2 e_8) and back. */
    void (*to_basis)(const int64_t *point, int64_t *coefficient);
    void (*from_basis)(const int64_t *coefficient, int64_t *point);
    /* The q above which r is inside q V: Z 2 |r|; E8 the largest inner product with its 240 minimal vectors. */
    double (*reach)(const double *r);
} cst_lattice;

const cst_lattice *cst_lattice_of(cst_lattice_kind kind);

/* colour[i] in [0, q). */
void cst_lattice_colour(const cst_lattice *l, const int64_t *point, uint32_t q, uint32_t *colour);
/* The point of that colour nearest to ref. */
void cst_lattice_decode(const cst_lattice *l, const uint32_t *colour, uint32_t q, const double *ref, int64_t *point);

/*
 * Two roundings, both unbiased. `theta` is uniform on (-1/2, 1/2) per coordinate; scaled by `unit` it is uniform on a
 * cell of a sublattice (Z, or (2 Z)^8 in E8), which is as good as uniform on V.
 *
 *   shared    z = NEAREST(x + unit theta); the receiver knows theta and takes z - unit theta: the error is uniform on V
 *             whatever x is.
 *   private   z = NEAREST(x + tau), tau = unit theta reduced to V; the receiver takes z. |z - x| <= 2 covering radii. For Z
 *             it is stochastic rounding to the two neighbours.
 */
typedef enum { CST_ROUND_SHARED, CST_ROUND_PRIVATE } cst_rounding;

void cst_lattice_round(const cst_lattice *l, cst_rounding rounding, const double *x, const double *theta,
                       int64_t *point);
/* What the receiver makes of the point, in steps; theta is not read if private. */
void cst_lattice_value(const cst_lattice *l, cst_rounding rounding, const int64_t *point, const double *theta,
                       double *value);
#endif
