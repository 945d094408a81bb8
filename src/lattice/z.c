/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "lattice/lattice.h"

static void nearest(const double *x, int64_t *point)
{
    point[0] = (int64_t)floor(x[0] + 0.5);
}

static void same(const int64_t *from, int64_t *to)
{
    to[0] = from[0];
}

static double reach(const double *r)
{
    return 2 * fabs(r[0]);
}

extern const cst_lattice cst_lattice_z;
const cst_lattice cst_lattice_z = {
    .name = "z",
    .dim = 1,
    .unit = 1,
    .second_moment = 1 / 12.0,
    .packing_radius = 0.5,
    .covering_radius = 0.5,
    .nearest = nearest,
    .to_basis = same,
    .from_basis = same,
    .reach = reach,
};
