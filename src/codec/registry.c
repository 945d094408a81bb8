/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs by name, their parameters, and what they share. */
#include "codec/codec.h"

#include "base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const cst_codec_ops *const table[] = {&cst_codec_eden,     &cst_codec_qsgd,    &cst_codec_suresh,
                                             &cst_codec_terngrad, &cst_codec_natural, &cst_codec_correlated};
enum { CODECS = sizeof table / sizeof *table };

static const cst_codec_ops *find(const char *text)
{
    size_t n = strcspn(text, ":");
    for (int i = 0; i < CODECS; i++)
        if (strlen(table[i]->name) == n && memcmp(table[i]->name, text, n) == 0)
            return table[i];
    return NULL;
}

bool cst_codec_known(const char *text)
{
    return find(text) != NULL;
}

static coset_status set_parameters(cst_codec *codec, const char *text, coset_error *why)
{
    char copy[128];
    if (strlen(text) >= sizeof copy)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "codec parameters \"%.40s...\" are too long", text);
    strcpy(copy, text);
    char *rest = copy;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(one, '=');
        if (value)
            *value++ = 0;
        if (!codec->ops->set(codec, one, value))
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "codec %s: \"%s%s%s\" is no parameter of it; %s",
                            codec->ops->name, one, value ? "=" : "", value ? value : "", codec->ops->about);
    }
    return COSET_OK;
}

coset_status cst_codec_parse(cst_codec *codec, const cst_tools *tools, const char *text, double bits, coset_error *why)
{
    const cst_codec_ops *ops = find(text);
    if (!ops)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "codec \"%s\": there are lattice, none, eden, qsgd, suresh, terngrad, natural, correlated",
                        text);
    if (ops->takes_bits && bits != 0 && (bits < 1 || bits >= 9))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "codec %s takes 1 to 8 bits per coordinate, not %g", ops->name,
                        bits);
    *codec = (cst_codec){.ops = ops, .tools = tools, .bits = bits >= 1 ? (unsigned)bits : 4, .bucket = CST_BLOCK};
    const char *parameters = strchr(text, ':');
    return parameters ? set_parameters(codec, parameters + 1, why) : COSET_OK;
}

/* ---- helpers ---- */

cst_uniforms cst_uniforms_of(const cst_codec *codec, const cst_codec_key *key, bool every_sender, uint32_t block)
{
    cst_uniforms u = {.random = codec->tools->random};
    uint32_t sender = every_sender ? CST_EVERY_SENDER : key->sender;
    u.stream = cst_stream_of(key->root, CST_USE_BASELINE, key->phase, sender, key->first + block);
    return u;
}

float cst_uniform(cst_uniforms *u, uint32_t i)
{
    enum { WORDS = sizeof u->words / sizeof *u->words };
    if (i < u->first || i >= u->first + u->filled) {
        u->first = i / WORDS * WORDS;
        u->filled = WORDS;
        u->random->words(&u->stream, u->first, WORDS, u->words);
    }
    return (float)(u->words[i - u->first] >> 8) * 0x1p-24f;
}

static void signs_of(const cst_codec *codec, const cst_codec_key *key, bool shared, uint32_t block, uint32_t n,
                     uint32_t signs[CST_SIGN_WORDS])
{
    uint32_t sender = shared ? CST_EVERY_SENDER : key->sender;
    cst_stream stream = cst_stream_of(key->root, CST_USE_SIGNS, key->phase, sender, key->first + block);
    codec->tools->random->words(&stream, 0, cst_sign_words(n), signs);
}

/* Makes the rotation orthogonal where it is not. */
static void scale(float *x, uint32_t n, float factor)
{
    for (uint32_t i = 0; factor != 1 && i < n; i++)
        x[i] *= factor;
}

uint32_t cst_rotate_block(const cst_codec *codec, const cst_codec_key *key, bool shared, uint32_t block, const float *x,
                          uint32_t count, float *rotated)
{
    uint32_t n = cst_padded_length(count), signs[CST_SIGN_WORDS];
    memset(rotated, 0, n * sizeof *rotated);
    memcpy(rotated, x, count * sizeof *rotated);
    signs_of(codec, key, shared, block, n, signs);
    codec->tools->hadamard->rotate(rotated, rotated, n, signs, NULL);
    scale(rotated, n, sqrtf(1 / cst_rotation_energy(n)));
    return n;
}

void cst_unrotate_block(const cst_codec *codec, const cst_codec_key *key, bool shared, uint32_t block, float *rotated,
                        uint32_t count, float *x)
{
    uint32_t n = cst_padded_length(count), signs[CST_SIGN_WORDS];
    signs_of(codec, key, shared, block, n, signs);
    scale(rotated, n, sqrtf(cst_rotation_energy(n)));
    codec->tools->hadamard->unrotate(rotated, rotated, n, signs, NULL, false);
    memcpy(x, rotated, count * sizeof *x);
}

void cst_put_float(uint8_t *at, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    cst_writer w = cst_writer_of(at, 4);
    cst_put(&w, bits, 4);
}

float cst_get_float(const uint8_t *at)
{
    cst_reader r = cst_reader_of(at, 4);
    uint32_t bits = cst_get32(&r);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
