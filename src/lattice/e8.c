/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "lattice/lattice.h"

/*
 * Nearest point of D8 (integers with even sum) + shift: round all; if the sum is odd, round the coordinate with the
 * largest error the other way. Returns the squared distance; point in doubled coordinates.
 */
static double nearest_of_coset(const double *x, double shift, int64_t *point)
{
    double error[8], distance = 0;
    int64_t sum = 0;
    int worst = 0;
    for (int i = 0; i < 8; i++) {
        double whole = floor(x[i] - shift + 0.5);
        error[i] = x[i] - shift - whole;
        distance += error[i] * error[i];
        sum += (int64_t)whole;
        point[i] = 2 * (int64_t)whole + (int64_t)(2 * shift);
        if (fabs(error[i]) > fabs(error[worst]))
            worst = i;
    }
    if (sum & 1) {
        point[worst] += error[worst] < 0 ? -2 : 2;
        distance += 1 - 2 * fabs(error[worst]);
    }
    return distance;
}

static void nearest(const double *x, int64_t *point)
{
    int64_t halves[8];
    double integer_distance = nearest_of_coset(x, 0, point);
    if (nearest_of_coset(x, 0.5, halves) < integer_distance)
        for (int i = 0; i < 8; i++)
            point[i] = halves[i];
}

static void to_basis(const int64_t *point, int64_t *coefficient)
{
    int64_t sum = 0;
    coefficient[0] = point[0];
    for (int i = 1; i < 7; i++) {
        coefficient[i] = (point[i] - point[0]) / 2;
        sum += coefficient[i];
    }
    coefficient[7] = ((point[7] - point[0]) / 2 - sum) / 2;
}

static void from_basis(const int64_t *coefficient, int64_t *point)
{
    int64_t sum = 0;
    point[0] = coefficient[0];
    for (int i = 1; i < 7; i++) {
        point[i] = coefficient[0] + 2 * coefficient[i];
        sum += coefficient[i];
    }
    point[7] = coefficient[0] + 2 * (sum + 2 * coefficient[7]);
}

/* Minimal vectors: +-e_i +-e_j, met best by the two largest magnitudes; and (+-1/2)^8 with an even number of minus signs,
 * met by all magnitudes with the signs of r, the smallest one turned if they are odd. */
static double reach(const double *r)
{
    double first = 0, second = 0, smallest = INFINITY, sum = 0;
    int negative = 0;
    for (int i = 0; i < 8; i++) {
        double size = fabs(r[i]);
        negative ^= r[i] < 0;
        sum += size;
        smallest = fmin(smallest, size);
        if (size > first) {
            second = first;
            first = size;
        } else if (size > second) {
            second = size;
        }
    }
    return fmax(first + second, sum / 2 - (negative ? smallest : 0));
}

extern const cst_lattice cst_lattice_e8;
const cst_lattice cst_lattice_e8 = {
    .name = "e8",
    .dim = 8,
    .unit = 2,
    .second_moment = 929 / 12960.0,
    .packing_radius = 0.70710678118654752440, /* sqrt(1/2): minimal vectors have length sqrt(2) */
    .covering_radius = 1,
    .nearest = nearest,
    .to_basis = to_basis,
    .from_basis = from_basis,
    .reach = reach,
};
