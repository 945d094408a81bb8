/* SPDX-License-Identifier: Apache-2.0 */
#include "common/draw.h"

#include "common/random.h"

#include <math.h>
#include <string.h>

const char *const tool_distributions[] = {"gauss", "t3", "spike", NULL};

static double t3(tool_random *r)
{
    double z = random_gauss(r), a = random_gauss(r), b = random_gauss(r), c = random_gauss(r);
    /* z / sqrt(chi^2_3 / 3) has variance 3 */
    return z / sqrt(a * a + b * b + c * c);
}

static double spike(tool_random *r)
{
    const double share = 0.01, energy = 0.9;
    double z = random_gauss(r);
    return random_uniform(r) <= share ? z * sqrt(energy / share) : z * sqrt((1 - energy) / (1 - share));
}

void tool_draw(float *out, size_t n, const char *distribution, double mean, uint64_t seed, int rank)
{
    double (*draw)(tool_random *) = !strcmp(distribution, "t3")      ? t3
                                    : !strcmp(distribution, "spike") ? spike
                                                                     : random_gauss;
    tool_random common = random_stream(seed, 0), own = random_stream(seed, (uint64_t)rank + 1);
    for (size_t i = 0; i < n; i++) {
        double m = mean != 0 ? mean * draw(&common) : 0;
        out[i] = (float)(m + draw(&own));
    }
}
