/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entropy code of dithered integers: 32-way interleaved range ANS (J. Duda 2013; F. Giesen, "Interleaved entropy
 * coders" 2014) with static tables for a Gaussian of known scale.
 *
 * A block is coded with a model: one of 17 tables, for sigma/step = 0.25 * 2^(table/4), 0.25 .. 4; above that the low
 * `shift` bits of the integers go raw and table 16 - 3 .. 16 codes k >> shift. A table has 2 K + 1 symbols for -K..K and
 * one escape, frequencies in 1024ths (10 bits: 0.004 bit per coordinate above the entropy; 8 bits would lose 0.02 to
 * 0.03). A table whose scale is off by 9 % costs up to 0.02 bit. Anything else is coded too, by escapes, at 32 bits and more.
 *
 * A stream is coded from its last block to its first and decoded from first to last. The 32 final states cost 128 bytes
 * per stream, so a stream should span at least 16 full blocks (0.012 bit per coordinate).
 *
 *     128 bytes   states of ways 0..31, u32 little-endian, each in [2^15, 2^31)
 *     per block   shift > 0: the low bits: each of 16 lanes a bit stream, `shift` bits per vector, in rows of 16 u32
 *                 then for every 32 coordinates: one u16 for each way (in order) whose state fell below 2^15,
 *                 then one u32 (two u16, low first) for each escape, in order: the integer >> shift
 *
 * Coordinate i uses way i & 31. State 2^15 is where the encoder starts and the decoder must end.
 */
#ifndef CST_KERNELS_ENTROPY_ENTROPY_H
#define CST_KERNELS_ENTROPY_ENTROPY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CST_ENTROPY_TABLES = 17,
    CST_ENTROPY_SYMBOLS = 32,
    CST_ENTROPY_BITS = 10, /* frequencies sum to 2^this */
    CST_ENTROPY_WAYS = 32,
    CST_ENTROPY_STATES_BYTES = 4 * CST_ENTROPY_WAYS,
    CST_ENTROPY_SHIFT_MAX = 20
};
#define CST_ENTROPY_LOW 0x8000u /* states live in [2^15, 2^31) */

typedef struct {
    uint8_t table; /* < CST_ENTROPY_TABLES */
    uint8_t shift; /* <= CST_ENTROPY_SHIFT_MAX */
} cst_entropy_model;

static inline bool cst_entropy_model_valid(cst_entropy_model m)
{
    return m.table < CST_ENTROPY_TABLES && m.shift <= CST_ENTROPY_SHIFT_MAX;
}
/* The model for a given sigma/step (any number; what is too small or large gets the nearest). */
cst_entropy_model cst_entropy_model_for(float ratio);

/* Bytes that encoding a block can take at most (32 of them slack below what is written). */
static inline size_t cst_entropy_block_bound(uint32_t n, cst_entropy_model m)
{
    return (size_t)n * 6 + (size_t)n / 8 * m.shift + 64 + 32;
}

/* Writes downwards from the end of a buffer. */
typedef struct {
    _Alignas(64) uint32_t state[CST_ENTROPY_WAYS];
    uint8_t *low;  /* start of the buffer */
    uint8_t *next; /* what was written starts here */
} cst_entropy_encoder;

typedef struct {
    _Alignas(64) uint32_t state[CST_ENTROPY_WAYS];
    const uint8_t *next, *end;
} cst_entropy_decoder;

void cst_entropy_encoder_init(cst_entropy_encoder *e, uint8_t *buffer, size_t capacity);
/* Writes the states; returns where the stream starts (it ends at the buffer's end), or NULL if they do not fit. */
uint8_t *cst_entropy_encoder_finish(cst_entropy_encoder *e);
/* False if the bytes cannot be a stream. The bytes are untrusted, here and below. */
bool cst_entropy_decoder_init(cst_entropy_decoder *d, const uint8_t *bytes, size_t length);
/* True if the stream ends here as an encoder would have begun it: any damage found late. */
bool cst_entropy_decoder_finish(const cst_entropy_decoder *d);

typedef struct {
    /* n: multiple of 128 up to 4096. False, and nothing changed, if the buffer has less than the block's bound left. */
    bool (*encode)(cst_entropy_encoder *e, cst_entropy_model model, const int32_t *points, uint32_t n);
    /* False if the stream is too short; points are then undefined and the decoder must not be used further. */
    bool (*decode)(cst_entropy_decoder *d, cst_entropy_model model, int32_t *points, uint32_t n);
} cst_entropy_kernels;

const cst_entropy_kernels *cst_entropy_kernels_for(int cpu_level);

extern const cst_entropy_kernels cst_entropy_scalar, cst_entropy_avx2, cst_entropy_avx512;
#endif
