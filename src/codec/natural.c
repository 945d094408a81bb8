/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Natural compression: S. Horvath, C.-Y. Ho, L. Horvath, A. N. Sahu, M. Canini, P. Richtarik, "Natural compression for
 * distributed deep learning" (2019): each coordinate is rounded stochastically to one of the two powers of two around it.
 * Nine bits per coordinate: sign and exponent of an f32. Variance at most |x|^2 / 8, without any scale.
 * The probability of rounding up is the fraction of the mantissa, so adding a random fraction to the pattern does it.
 * Denormals round to 0 or the smallest normal number; NaN and Inf keep the exponent 255, which decodes to NaN.
 */
#include "codec/codec.h"

#include <math.h>

enum { BITS = 9, FRACTION = 23, SPECIAL = 255 };

static bool natural_set(cst_codec *codec, const char *key, const char *value)
{
    (void)codec;
    (void)key;
    (void)value;
    return false;
}

static size_t natural_bytes(const cst_codec *codec, size_t n)
{
    (void)codec;
    return (n * BITS + 7) / 8;
}

static uint32_t round_to_power(float x, float uniform)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 31, size = bits & 0x7FFFFFFFu;
    if (size >> FRACTION == SPECIAL)
        return sign << 8 | SPECIAL;
    uint32_t up = size + (uint32_t)(uniform * (1u << FRACTION));
    uint32_t exponent = up >> FRACTION;
    return sign << 8 | (exponent < SPECIAL ? exponent : SPECIAL - 1);
}

static void natural_encode(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n, uint8_t *out)
{
    uint32_t pending = 0, used = 0;
    for (size_t at = 0, block = 0; at < n; at += CST_BLOCK, block++) {
        cst_uniforms u = cst_uniforms_of(codec, key, false, (uint32_t)block);
        for (uint32_t i = 0; i < CST_BLOCK && at + i < n; i++) {
            pending |= round_to_power(x[at + i], cst_uniform(&u, i)) << used;
            for (used += BITS; used >= 8; used -= 8, pending >>= 8)
                *out++ = (uint8_t)pending;
        }
    }
    if (used)
        *out = (uint8_t)pending;
}

static bool natural_decode(const cst_codec *codec, const cst_codec_key *key, const uint8_t *in, size_t n, float *out)
{
    (void)codec;
    (void)key;
    uint32_t pending = 0, have = 0;
    for (size_t i = 0; i < n; i++) {
        for (; have < BITS; have += 8)
            pending |= (uint32_t)*in++ << have;
        uint32_t code = pending & ((1u << BITS) - 1), exponent = code & 255;
        pending >>= BITS;
        have -= BITS;
        uint32_t bits = (code >> 8) << 31 | exponent << FRACTION | (exponent == SPECIAL ? 1u << (FRACTION - 1) : 0);
        memcpy(&out[i], &bits, sizeof bits);
    }
    return true;
}

const cst_codec_ops cst_codec_natural = {
    .name = "natural",
    .about = "natural has no parameters; 9 bits (Horvath et al. 2019)",
    .unbiased = true,
    .fixed_bits = BITS,
    .set = natural_set,
    .bytes = natural_bytes,
    .encode = natural_encode,
    .decode = natural_decode,
};
