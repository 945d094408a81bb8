/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/block.h"
#include "kernels/random/philox.h"
#include "kernels/random/random.h"

enum { GROUP_CALLS = 8, GROUP_WORDS = 32, GROUP_COORDINATES = 64 };

/* The 32 words of eight consecutive calls, in the stream's layout. */
static void group_words(const cst_stream *s, uint32_t group, uint32_t words[GROUP_WORDS])
{
    for (uint32_t call = 0; call < GROUP_CALLS; call++) {
        uint32_t counter[4] = {GROUP_CALLS * group + call, s->ctr[0], s->ctr[1], s->ctr[2]}, out[4];
        cst_philox(counter, s->key, out);
        for (uint32_t w = 0; w < 4; w++)
            words[CST_LANES * (w >> 1) + 2 * call + (w & 1)] = out[w];
    }
}

static void words_scalar(const cst_stream *s, uint32_t first, uint32_t count, uint32_t *words)
{
    for (uint32_t i = 0; i < count; i += GROUP_WORDS)
        group_words(s, (first + i) / GROUP_WORDS, words + i);
}

static void dither_scalar(const cst_stream *s, uint32_t n, float *theta)
{
    for (uint32_t g = 0; g < n / GROUP_COORDINATES; g++, theta += GROUP_COORDINATES) {
        uint32_t words[GROUP_WORDS];
        group_words(s, g, words);
        for (uint32_t t = 0; t < 4; t++)
            for (uint32_t l = 0; l < CST_LANES; l++) {
                uint32_t half = words[CST_LANES * (t >> 1) + l] >> (16 * (t & 1));
                theta[CST_LANES * t + l] = (float)cst_dither_scaled(half) * 0x1p-32f;
            }
    }
}

const cst_random_kernels cst_random_scalar = {.dither = dither_scalar, .words = words_scalar};
