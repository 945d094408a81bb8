/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QSGD: D. Alistarh, D. Grubic, J. Li, R. Tomioka, M. Vojnovic, "QSGD: communication-efficient SGD via gradient quantization
 * and encoding" (NIPS 2017), with codes of fixed length: per bucket a norm (f32), per coordinate a sign and one of
 * s + 1 = 2^(bits-1) levels, rounded stochastically. The norm is the Euclidean one (l2) or the largest magnitude (linf).
 * TernGrad: W. Wen et al. (NIPS 2017), is the case s = 1 with the largest magnitude; with clip=c, coordinates are first
 * clipped at c standard deviations, which biases it.
 */
#include "codec/codec.h"

#include <math.h>
#include <stdlib.h>

static bool number(const char *text, double low, double high, double *value)
{
    char *end;
    *value = text ? strtod(text, &end) : 0;
    return text && *text && !*end && *value >= low && *value <= high;
}

static bool qsgd_set(cst_codec *codec, const char *key, const char *value)
{
    double v;
    if (strcmp(key, "linf") == 0 && !value)
        return codec->infinity_norm = true;
    if (strcmp(key, "l2") == 0 && !value)
        return !(codec->infinity_norm = false);
    if (strcmp(key, "bucket") == 0 && number(value, 1, 1 << 24, &v)) {
        codec->bucket = (size_t)v;
        return true;
    }
    return false;
}

static bool terngrad_set(cst_codec *codec, const char *key, const char *value)
{
    if (strcmp(key, "clip") == 0 && number(value, 0.1, 1000, &codec->clip))
        return true;
    return strcmp(key, "bucket") == 0 && qsgd_set(codec, key, value);
}

/* Levels from 0, without the sign; digits are sign + 2 level. */
static uint32_t levels_of(const cst_codec *codec)
{
    return codec->ops == &cst_codec_terngrad ? 2 : codec->bits > 1 ? 1u << (codec->bits - 1) : 2;
}

static uint32_t modulus_of(const cst_codec *codec)
{
    return 2 * levels_of(codec);
}

static size_t bucket_bytes(const cst_codec *codec, size_t count)
{
    return 4 + cst_digits_bytes(count, modulus_of(codec));
}

static size_t qsgd_bytes(const cst_codec *codec, size_t n)
{
    size_t full = n / codec->bucket, rest = n % codec->bucket;
    return full * bucket_bytes(codec, codec->bucket) + (rest ? bucket_bytes(codec, rest) : 0);
}

/* The norm of a bucket; NaN if an element is not finite. */
static float norm_of(const cst_codec *codec, const float *x, size_t n, float *clip)
{
    cst_norm_stats stats = codec->tools->norm->stats(x, n);
    *clip = INFINITY;
    if (stats.nonfinite)
        return NAN;
    if (codec->ops == &cst_codec_qsgd && !codec->infinity_norm)
        return (float)sqrt(stats.energy);
    if (codec->clip > 0)
        *clip = (float)(codec->clip * sqrt(stats.energy / (double)n));
    return fminf(stats.max, *clip);
}

static void encode_bucket(const cst_codec *codec, cst_uniforms *u, const float *x, size_t n, uint16_t *digits,
                          uint8_t *out)
{
    float clip, norm = norm_of(codec, x, n, &clip), top = (float)(levels_of(codec) - 1);
    float unit = norm > 0 ? top / norm : 0;
    for (size_t i = 0; i < n; i++) {
        float a = fminf(fabsf(x[i]), clip) * unit;
        float level = fminf(floorf(a + cst_uniform(u, (uint32_t)i)), top);
        digits[i] = level > 0 ? (uint16_t)(2 * (uint32_t)level + (x[i] < 0)) : 0;
    }
    cst_put_float(out, norm);
    cst_digits_pack(digits, n, modulus_of(codec), out + 4);
}

static void qsgd_encode(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n, uint8_t *out)
{
    uint16_t *digits = malloc(codec->bucket * sizeof *digits);
    uint32_t bucket = 0;
    for (size_t at = 0; at < n; at += codec->bucket, bucket++) {
        size_t take = n - at < codec->bucket ? n - at : codec->bucket;
        cst_uniforms u = cst_uniforms_of(codec, key, false, bucket);
        if (digits)
            encode_bucket(codec, &u, x + at, take, digits, out);
        else
            memset(out, 0xFF, bucket_bytes(codec, take)); /* no memory: a NaN norm, and nothing that could be a code */
        out += bucket_bytes(codec, take);
    }
    free(digits);
}

static bool decode_bucket(const cst_codec *codec, const uint8_t *in, size_t n, uint16_t *digits, float *out)
{
    float norm = cst_get_float(in), step = norm / (float)(levels_of(codec) - 1);
    if (!cst_digits_unpack(in + 4, n, modulus_of(codec), digits))
        return false;
    for (size_t i = 0; i < n; i++) {
        float size = (float)(digits[i] / 2) * step;
        out[i] = digits[i] & 1 ? -size : size;
    }
    return true;
}

static bool qsgd_decode(const cst_codec *codec, const cst_codec_key *key, const uint8_t *in, size_t n, float *out)
{
    (void)key;
    uint16_t *digits = malloc(codec->bucket * sizeof *digits);
    bool good = digits != NULL;
    for (size_t at = 0; good && at < n; at += codec->bucket) {
        size_t take = n - at < codec->bucket ? n - at : codec->bucket;
        good = decode_bucket(codec, in, take, digits, out + at);
        in += bucket_bytes(codec, take);
    }
    free(digits);
    return good;
}

const cst_codec_ops cst_codec_qsgd = {
    .name = "qsgd",
    .about = "qsgd takes l2 or linf and bucket=N; 2 to 8 bits (Alistarh et al. 2017)",
    .unbiased = true,
    .takes_bits = true,
    .set = qsgd_set,
    .bytes = qsgd_bytes,
    .encode = qsgd_encode,
    .decode = qsgd_decode,
};

const cst_codec_ops cst_codec_terngrad = {
    .name = "terngrad",
    .about = "terngrad takes clip=C (standard deviations; biased) and bucket=N; 2 bits (Wen et al. 2017)",
    .unbiased = true,
    .fixed_bits = 2,
    .set = terngrad_set,
    .bytes = qsgd_bytes,
    .encode = qsgd_encode,
    .decode = qsgd_decode,
};
