/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One vector -> bytes -> vector: the baselines of the literature behind one interface, for honest comparison.
 *
 * A codec is a name and its parameters, "eden", "qsgd:linf,bucket=512", and a number of bits per coordinate where it takes
 * one. Encoding writes exactly cst_codec_bytes(n) bytes for n coordinates, scales and ranges included: the length is known
 * without talking. Randomness is shared and counter-based (kernels/random), keyed by who encodes and for what.
 * A NaN or Inf in the input makes NaN of everything that shares a scale with it: it is never turned into a number.
 *
 * Where a common range is needed (correlated quantisation), `measure` tells a vector's own numbers, the exchange takes the
 * maximum over the ranks, and encoder and decoder get it in the key.
 */
#ifndef CST_CODEC_CODEC_H
#define CST_CODEC_CODEC_H
#include "codec/block.h"

enum { CST_CODEC_MEASURES = 2 };

/* With whose randomness. */
typedef struct {
    cst_stream_root root;
    uint32_t sender, senders; /* index among those whose codes will be averaged; senders: how many there are */
    uint32_t phase;
    uint32_t first;                   /* number of the first block of 4096 coordinates of this vector in the whole */
    float common[CST_CODEC_MEASURES]; /* maxima over all ranks; if the codec measures */
} cst_codec_key;

typedef struct cst_codec cst_codec;

typedef struct {
    const char *name, *about; /* one line: paper, error, bits */
    bool unbiased;
    bool takes_bits;   /* 1 .. 8 per coordinate */
    double fixed_bits; /* else: what it takes, without side information */
    bool measures;
    /* One "key=value" or "flag" of the parameters; false: not one of this codec's. */
    bool (*set)(cst_codec *codec, const char *key, const char *value);
    size_t (*bytes)(const cst_codec *codec, size_t n);
    void (*measure)(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n,
                    float out[CST_CODEC_MEASURES]);
    void (*encode)(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n, uint8_t *out);
    /* False if the bytes cannot be a code. */
    bool (*decode)(const cst_codec *codec, const cst_codec_key *key, const uint8_t *in, size_t n, float *out);
} cst_codec_ops;

struct cst_codec {
    const cst_codec_ops *ops;
    const cst_tools *tools; /* the caller's */
    unsigned bits;          /* 1 .. 8 */
    size_t bucket;          /* coordinates that share a scale */
    bool infinity_norm, rotated;
    double clip; /* TernGrad: in standard deviations; 0: none */
};

/* "name" or "name:parameters", parameters separated by commas. bits: per coordinate, 0 for the codec's default; rounded
 * down to what the codec has. ARGUMENT with the names or keys that there are. */
coset_status cst_codec_parse(cst_codec *codec, const cst_tools *tools, const char *text, double bits, coset_error *why);
/* Is the part of `text` before a colon the name of a codec of this table? */
bool cst_codec_known(const char *text);

extern const cst_codec_ops cst_codec_eden, cst_codec_qsgd, cst_codec_suresh, cst_codec_terngrad, cst_codec_natural,
    cst_codec_correlated;

/* ---- helpers of the codecs ---- */

/* Uniform in [0, 1): number i of the key's stream; the buffer is refilled as i advances. */
typedef struct {
    cst_stream stream;
    const cst_random_kernels *random;
    uint32_t words[512], first, filled;
} cst_uniforms;
cst_uniforms cst_uniforms_of(const cst_codec *codec, const cst_codec_key *key, bool every_sender, uint32_t block);
float cst_uniform(cst_uniforms *u, uint32_t i);

/* Pads a block of `count` coordinates to n, rotates it with the key's signs (shared by all senders, or the sender's own). */
uint32_t cst_rotate_block(const cst_codec *codec, const cst_codec_key *key, bool shared, uint32_t block, const float *x,
                          uint32_t count, float *rotated);
void cst_unrotate_block(const cst_codec *codec, const cst_codec_key *key, bool shared, uint32_t block, float *rotated,
                        uint32_t count, float *x);
void cst_put_float(uint8_t *at, float x);
float cst_get_float(const uint8_t *at);
#endif
