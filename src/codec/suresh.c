/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A. T. Suresh, F. X. Yu, S. Kumar, H. B. McMahan, "Distributed mean estimation with limited communication" (ICML 2017):
 * stochastic rounding to k = 2^bits levels between a block's smallest and largest coordinate, with `rotated` after a random
 * rotation that all senders share. Per block of 4096: smallest and step (f32 each), then `bits` per coordinate.
 *
 * Correlated quantisation, A. T. Suresh, Z. Sun, J. H. Ro, F. Yu (ICML 2022): the same levels in a range common to all
 * senders, and rounding offsets that are stratified over them: sender u of n rounds coordinate i with (pi_i(u) + gamma) / n,
 * pi_i a shared random permutation, so that rounding errors of similar vectors cancel.
 */
#include "codec/codec.h"

#include <math.h>

static bool suresh_set(cst_codec *codec, const char *key, const char *value)
{
    if (strcmp(key, "rotated") == 0 && !value)
        return codec->rotated = true;
    return false;
}

static bool is_correlated(const cst_codec *codec)
{
    return codec->ops == &cst_codec_correlated;
}

static size_t block_bytes(const cst_codec *codec, uint32_t count)
{
    uint32_t n = codec->rotated ? cst_padded_length(count) : count;
    return (is_correlated(codec) ? 0 : 8) + cst_digits_bytes(n, 1u << codec->bits);
}

static size_t suresh_bytes(const cst_codec *codec, size_t n)
{
    size_t bytes = is_correlated(codec) ? 8 : 0; /* the range, once */
    for (uint32_t take; n; n -= take) {
        take = cst_next_block(n);
        bytes += block_bytes(codec, take);
    }
    return bytes;
}

static uint32_t prepare(const cst_codec *codec, const cst_codec_key *key, uint32_t block, const float *x,
                        uint32_t count, float *y)
{
    if (codec->rotated)
        return cst_rotate_block(codec, key, true, block, x, count, y);
    memcpy(y, x, count * sizeof *y);
    return count;
}

static void range_of(const float *y, uint32_t n, float *low, float *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(y[i])) {
            *low = *high = NAN;
            return;
        }
        *low = fminf(*low, y[i]);
        *high = fmaxf(*high, y[i]);
    }
}

static void correlated_measure(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n,
                               float out[CST_CODEC_MEASURES])
{
    out[0] = out[1] = -INFINITY;
    uint32_t take, block = 0;
    for (size_t at = 0; at < n; at += take, block++) {
        take = cst_next_block(n - at);
        float y[CST_BLOCK], low, high;
        range_of(y, prepare(codec, key, block, x + at, take, y), &low, &high);
        out[0] = -low > out[0] || low != low ? -low : out[0];
        out[1] = high > out[1] || high != high ? high : out[1];
    }
}

/* Rank of the sender in a shared random order of the senders, for coordinate i: how many have a smaller number. The numbers
 * are cheap hashes of one shared word: the order matters only in being uniform and the same for all. */
static uint32_t hash(uint32_t x)
{
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

static uint32_t order_of(uint32_t word, uint32_t sender, uint32_t senders)
{
    uint32_t own = hash(word + sender * 0x9E3779B9u), before = 0;
    for (uint32_t u = 0; u < senders; u++) {
        uint32_t other = hash(word + u * 0x9E3779B9u);
        before += other < own || (other == own && u < sender);
    }
    return before;
}

typedef struct {
    float low, step, inverse;
} grid;

static grid grid_of(const cst_codec *codec, float low, float high)
{
    float top = (float)((1u << codec->bits) - 1), step = (high - low) / top;
    return (grid){low, step, step > 0 ? 1 / step : 0};
}

static void encode_block(const cst_codec *codec, const cst_codec_key *key, uint32_t block, const float *x,
                         uint32_t count, const grid *common, uint8_t *out)
{
    float y[CST_BLOCK], top = (float)((1u << codec->bits) - 1);
    uint16_t digits[CST_BLOCK];
    uint32_t n = prepare(codec, key, block, x, count, y);
    grid g;
    if (common) {
        g = *common;
    } else {
        float low, high;
        range_of(y, n, &low, &high);
        g = grid_of(codec, low, high);
        cst_put_float(out, g.low);
        cst_put_float(out + 4, g.step);
        out += 8;
    }
    cst_uniforms own = cst_uniforms_of(codec, key, false, block), shared = cst_uniforms_of(codec, key, true, block);
    for (uint32_t i = 0; i < n; i++) {
        float offset = cst_uniform(&own, i);
        if (common) {
            uint32_t word = (uint32_t)(cst_uniform(&shared, i) * 0x1p24f);
            offset = ((float)order_of(word, key->sender, key->senders) + offset) / (float)key->senders;
        }
        float level = floorf((y[i] - g.low) * g.inverse + offset);
        digits[i] = (uint16_t)(level > 0 ? fminf(level, top) : 0);
    }
    cst_digits_pack(digits, n, 1u << codec->bits, out);
}

static void suresh_encode(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n, uint8_t *out)
{
    grid common = grid_of(codec, -key->common[0], key->common[1]);
    bool shared = is_correlated(codec);
    if (shared) {
        cst_put_float(out, common.low);
        cst_put_float(out + 4, common.step);
        out += 8;
    }
    uint32_t take, block = 0;
    for (size_t at = 0; at < n; at += take, block++) {
        take = cst_next_block(n - at);
        encode_block(codec, key, block, x + at, take, shared ? &common : NULL, out);
        out += block_bytes(codec, take);
    }
}

static bool suresh_decode(const cst_codec *codec, const cst_codec_key *key, const uint8_t *in, size_t n, float *out)
{
    grid common = {0};
    bool shared = is_correlated(codec);
    if (shared) {
        common = (grid){cst_get_float(in), cst_get_float(in + 4), 0};
        in += 8;
    }
    uint32_t take, block = 0;
    for (size_t at = 0; at < n; at += take, block++) {
        take = cst_next_block(n - at);
        uint32_t padded = codec->rotated ? cst_padded_length(take) : take;
        uint16_t digits[CST_BLOCK];
        float y[CST_BLOCK];
        grid g = shared ? common : (grid){cst_get_float(in), cst_get_float(in + 4), 0};
        if (!cst_digits_unpack(in + (shared ? 0 : 8), padded, 1u << codec->bits, digits))
            return false;
        for (uint32_t i = 0; i < padded; i++)
            y[i] = g.low + (float)digits[i] * g.step;
        if (codec->rotated)
            cst_unrotate_block(codec, key, true, block, y, take, out + at);
        else
            memcpy(out + at, y, take * sizeof *out);
        in += block_bytes(codec, take);
    }
    return true;
}

const cst_codec_ops cst_codec_suresh = {
    .name = "suresh",
    .about = "suresh takes rotated; 1 to 8 bits (Suresh et al. 2017)",
    .unbiased = true,
    .takes_bits = true,
    .set = suresh_set,
    .bytes = suresh_bytes,
    .encode = suresh_encode,
    .decode = suresh_decode,
};

const cst_codec_ops cst_codec_correlated = {
    .name = "correlated",
    .about = "correlated takes rotated; 1 to 8 bits (Suresh et al. 2022)",
    .unbiased = true,
    .takes_bits = true,
    .measures = true,
    .set = suresh_set,
    .bytes = suresh_bytes,
    .measure = correlated_measure,
    .encode = suresh_encode,
    .decode = suresh_decode,
};
