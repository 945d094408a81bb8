/* SPDX-License-Identifier: Apache-2.0 */
/* Random vectors for the tests of lattices; splitmix64, the same on every machine. */
#ifndef CST_TESTS_LATTICE_SAMPLES_H
#define CST_TESTS_LATTICE_SAMPLES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lattice/lattice.h"

static uint64_t sample_state = 1;

static inline uint64_t random_bits(void)
{
    uint64_t z = (sample_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
/* In (0, 1). */
static inline double uniform_open(void)
{
    return ((double)(random_bits() >> 11) + 0.5) * 0x1p-53;
}
static inline double gaussian(void)
{
    return sqrt(-2 * log(uniform_open())) * cos(6.283185307179586 * uniform_open());
}
/* On (-1/2, 1/2). */
static inline void random_theta(double theta[8])
{
    for (int i = 0; i < 8; i++)
        theta[i] = uniform_open() - 0.5;
}
static inline double dot8(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The minimal vectors of E8, by definition: length sqrt(2), 240 of them. */
static inline int minimal_vectors(double v[240][8])
{
    int n = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < i; j++)
            for (int s = 0; s < 4; s++, n++) {
                memset(v[n], 0, sizeof v[n]);
                v[n][i] = s & 1 ? -1 : 1;
                v[n][j] = s & 2 ? -1 : 1;
            }
    for (int s = 0; s < 256; s++) {
        if (__builtin_parity((unsigned)s))
            continue;
        for (int i = 0; i < 8; i++)
            v[n][i] = s >> i & 1 ? -0.5 : 0.5;
        n++;
    }
    return n;
}
#endif
