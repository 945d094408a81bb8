/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small character-level transformer (decoder only, normalisation before each layer, as in GPT-2) on the text of
 * corpus.h: predicts each next character of a window. Forward and backward are written out by hand; layers.h has the
 * parts. This header is the inside of gpt*.c.
 *
 *     stream = characters[token] + positions[t]
 *     for each block:  stream += mix(attention(qkv(norm1(stream))));  stream += down(gelu(up(norm2(stream))))
 *     logits = head(norm(stream))
 */
#ifndef COSET_TOOLS_TRAIN_GPT_H
#define COSET_TOOLS_TRAIN_GPT_H
#include "train/corpus.h"
#include "train/layers.h"
#include "train/model.h"

/* Parameters, in this order: the first two, PER_BLOCK for each block, the last three. */
enum { CHARACTERS, POSITIONS, BEFORE_BLOCKS };
enum {
    NORM1_GAIN,
    NORM1_BIAS,
    QKV,
    QKV_BIAS,
    MIX,
    MIX_BIAS,
    NORM2_GAIN,
    NORM2_BIAS,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS,
    PER_BLOCK
};
enum { FINAL_GAIN, FINAL_BIAS, HEAD, AFTER_BLOCKS };
enum { EXPANSION = 4 }; /* the middle of a block's perceptron is this many times wider */

typedef struct {
    const model_ops *ops;
    size_t blocks, width, heads, length; /* length: characters in a window */
} gpt_size;

/* What forward keeps of a block for backward; matrices of one row per character. */
typedef struct {
    float *in, *norm1, *centre1, *inverse1, *qkv, *attention, *mixed; /* widths 1, 1, -, -, 3, -, 1 times `width` */
    float *middle, *norm2, *centre2, *inverse2, *up, *active;         /* 1, 1, -, -, 4, 4 */
} gpt_block;

typedef struct {
    model base;
    gpt_size size;
    corpus text;
    size_t columns; /* of the head: the vocabulary, rounded up to whole tiles; the rest stays zero */
    model_param *params;
    size_t *order;  /* shuffled windows: those of the test first */
    size_t windows; /* that there is memory for */
    float *memory;
    gpt_block *block;
    unsigned char *input, *label;                  /* tokens of each row */
    float *out, *norm, *centre, *inverse, *logits; /* after the last block */
    float *d, *dwide, *dnorm, *scratch;            /* of backward: d stream, d of wide and of narrow layers */
} gpt;

/* Makes room for `windows` windows. Returns 0, or -1 if memory is short. */
int gpt_reserve(gpt *g, size_t windows);
/* Fills input and label from the given windows and leaves the logits of all rows. */
void gpt_forward(gpt *g, float *const *weights, const size_t *window, size_t n);
/* From d logits, in g->logits, to the gradients of all weights. */
void gpt_backward(gpt *g, float *const *weights, float *const *grads, size_t n, model_ready ready, void *ctx);

static inline size_t gpt_after(const gpt *g)
{
    return BEFORE_BLOCKS + g->size.blocks * PER_BLOCK;
}
#endif
