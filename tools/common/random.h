/* SPDX-License-Identifier: Apache-2.0 */
/* Small deterministic random numbers for weights, shuffles and drawn vectors: splitmix64 (Steele, Lea and Flood 2014). */
#ifndef COSET_TOOLS_RANDOM_H
#define COSET_TOOLS_RANDOM_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} tool_random;

static inline uint64_t random_next(tool_random *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A stream of its own for each (seed, stream). */
static inline tool_random random_stream(uint64_t seed, uint64_t stream)
{
    tool_random r = {seed};
    uint64_t mixed = random_next(&r);
    r.state = mixed ^ stream * 0xd1342543de82ef95u;
    random_next(&r);
    return r;
}

/* Uniform in (0, 1]. */
static inline double random_uniform(tool_random *r)
{
    return (double)((random_next(r) >> 11) + 1) * 0x1p-53;
}

/* Standard normal. Box and Muller 1958; one of the two values, so that every number takes the same share of the stream. */
static inline double random_gauss(tool_random *r)
{
    double u = random_uniform(r), v = random_uniform(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Uniform in [-1, 1), with 24 bits. */
static inline float random_signed(tool_random *r)
{
    return (float)((double)(int64_t)(random_next(r) >> 40) / 8388608.0 - 1.0);
}

/* Fisher-Yates; the modulo's bias is below 2^-40 for any list that fits in memory here. */
static inline void random_shuffle(tool_random *r, size_t *list, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = random_next(r) % i, t = list[i - 1];
        list[i - 1] = list[j];
        list[j] = t;
    }
}
#endif
