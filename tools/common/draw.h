/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of ranks as experiments need them: x_rank = mean * m + e_rank, where m (the same on all ranks) and e_rank have
 * independent coordinates of variance 1 of the same distribution. So the spread between ranks is 1 per coordinate and
 * `mean` is the root mean square of the common mean, in spreads.
 */
#ifndef COSET_TOOLS_DRAW_H
#define COSET_TOOLS_DRAW_H
#include <stddef.h>
#include <stdint.h>

/* Names of distributions, ending with NULL: "gauss"; "t3", Student's t with 3 degrees of freedom, heavy tails; "spike",
 * one coordinate in a hundred holds nine tenths of the energy. */
extern const char *const tool_distributions[];

/* out[0..n); `distribution` is one of the names. The same arguments give the same vector everywhere. */
void tool_draw(float *out, size_t n, const char *distribution, double mean, uint64_t seed, int rank);
#endif
