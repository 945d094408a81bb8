/* SPDX-License-Identifier: Apache-2.0 */
#include "common/draw.h"

#include <math.h>
#include <string.h>

const char *const tool_distributions[] = {"gauss", "t3", "spike", NULL};

typedef struct {
    uint64_t state;
} generator;

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next(generator *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static generator stream(uint64_t seed, uint64_t number)
{
    generator g = {seed};
    g.state = next(&g) ^ number * 0xd1342543de82ef95u;
    next(&g);
    return g;
}

/* In (0, 1]. */
static double uniform(generator *g)
{
    return (double)((next(g) >> 11) + 1) * 0x1p-53;
}

/* Box and Muller 1958; one of the two values, so that every coordinate takes the same share of the stream. */
static double gauss(generator *g)
{
    double u = uniform(g), v = uniform(g);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double t3(generator *g)
{
    double z = gauss(g), a = gauss(g), b = gauss(g), c = gauss(g);
    /* z / sqrt(chi^2_3 / 3) has variance 3 */
    return z / sqrt(a * a + b * b + c * c);
}

static double spike(generator *g)
{
    const double share = 0.01, energy = 0.9;
    double z = gauss(g);
    return uniform(g) <= share ? z * sqrt(energy / share) : z * sqrt((1 - energy) / (1 - share));
}

void tool_draw(float *out, size_t n, const char *distribution, double mean, uint64_t seed, int rank)
{
    double (*draw)(generator *) = !strcmp(distribution, "t3") ? t3 : !strcmp(distribution, "spike") ? spike : gauss;
    generator common = stream(seed, 0), own = stream(seed, (uint64_t)rank + 1);
    for (size_t i = 0; i < n; i++) {
        double m = mean != 0 ? mean * draw(&common) : 0;
        out[i] = (float)(m + draw(&own));
    }
}
