/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lattice codes in two dimensions, the square lattice: what the library does in 4096 dimensions, small enough to draw.
 * After Davies, Gurunathan, Moshrefi, Ashkboos and Alistarh, "New Bounds For Distributed Mean Estimation and Variance
 * Reduction" (2021).
 *
 * The lattice points are step * (k1, k2) with whole k. The colour of a point is (k1 mod q, k2 mod q). Lengths are in
 * the units of the vectors; "reach" is the largest distance per coordinate at which decoding is certain.
 */
#ifndef COSET_LEARN_PLANE_H
#define COSET_LEARN_PLANE_H
#include <stdio.h>

typedef struct {
    double x, y;
} learn_vector;
typedef struct {
    int k1, k2;
} learn_point;

/* The nearest whole number; halves go up. */
int learn_round(double value);
learn_point learn_nearest(learn_vector v, double step);
/* k mod q in 0..q-1. */
int learn_colour(int k, int q);
/* The k with that colour whose step * k is nearest to `own`. */
int learn_decode1(int colour, double own, double step, int q);
learn_point learn_decode(learn_point colour, learn_vector own, double step, int q);
/* How far the receiver's number may be from the sender's: (q - 1)/2 * step. */
double learn_reach(double step, int q);
/* The step with that reach: 2 * distance / (q - 1). */
double learn_step(double distance, int q);
/* Mean squared error of rounding with dither, per coordinate: step^2 / 12. */
double learn_error(double step);
/* x rounded under dither `theta`, as the receiver reconstructs it. */
double learn_dithered(double x, double theta, double step);
/* Bits per coordinate: log2 q. */
double learn_bits(int q);
/* A linear checksum of the full k (not of the colour), modulo a small prime for the lessons; the library's is modulo
 * 2^61 - 1. */
enum { LEARN_PRIME = 97, LEARN_KEY1 = 23, LEARN_KEY2 = 58 };
int learn_checksum(learn_point k);

/* The lessons' example: step 1. */
enum { LEARN_Q = 4, LEARN_PLANE_WIDTH = 13, LEARN_PLANE_HEIGHT = 7 };
extern const learn_vector learn_sender, learn_near, learn_far;

/* What a drawing of the plane shows; points 0..WIDTH-1 by 0..HEIGHT-1, k2 upwards. */
typedef struct {
    int letters;                           /* 1: every point as the letter of its colour; 0: as a dot */
    const learn_point *class;              /* points of this colour as their letter; NULL for none */
    const learn_point *sent;               /* in [ ] */
    const learn_point *found;              /* in < >, if it is not the one sent */
    const learn_vector *sender, *receiver; /* 'x' and 'v' */
} learn_view;
void learn_plane_draw(FILE *out, const learn_view *view);
/* 'A' for colour (0, 0), ... */
char learn_letter(learn_point k, int q);
#endif
