/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward through the transformer. */
#include "train/gpt.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

typedef struct {
    float *base; /* NULL: only count */
    size_t used;
} arena;

static float *take(arena *a, size_t count)
{
    float *p = a->base ? a->base + a->used : NULL;
    a->used += (count + 15) / 16 * 16; /* whole cache lines */
    return p;
}

static void place(gpt *g, arena *a, size_t windows)
{
    size_t rows = windows * g->size.length, width = g->size.width, wide = EXPANSION * width;
    for (size_t i = 0; i < g->size.blocks; i++)
        g->block[i] = (gpt_block){
            .in = take(a, rows * width),
            .norm1 = take(a, rows * width),
            .centre1 = take(a, rows),
            .inverse1 = take(a, rows),
            .qkv = take(a, rows * 3 * width),
            .attention = take(a, windows * g->size.heads * g->size.length * g->size.length),
            .mixed = take(a, rows * width),
            .middle = take(a, rows * width),
            .norm2 = take(a, rows * width),
            .centre2 = take(a, rows),
            .inverse2 = take(a, rows),
            .up = take(a, rows * wide),
            .active = take(a, rows * wide),
        };
    g->out = take(a, rows * width);
    g->norm = take(a, rows * width);
    g->centre = take(a, rows);
    g->inverse = take(a, rows);
    g->logits = take(a, rows * g->columns);
    g->d = take(a, rows * width);
    g->dwide = take(a, rows * wide);
    g->dnorm = take(a, rows * width);
    g->scratch = take(a, width * (wide > g->columns ? wide : g->columns) + g->size.length);
    g->input = (unsigned char *)take(a, rows);
    g->label = (unsigned char *)take(a, rows);
}

int gpt_reserve(gpt *g, size_t windows)
{
    if (windows <= g->windows)
        return 0;
    arena count = {NULL, 0};
    place(g, &count, windows);
    free(g->memory);
    g->windows = 0;
    g->memory = calloc(count.used, sizeof *g->memory);
    if (!g->memory)
        return -1;
    arena whole = {g->memory, 0};
    place(g, &whole, windows);
    g->windows = windows;
    return 0;
}

/* ---- forward ---- */

static void embed(gpt *g, float *const *w, const size_t *window, size_t n, float *out)
{
    size_t length = g->size.length, width = g->size.width;
    for (size_t b = 0; b < n; b++) {
        const unsigned char *text = g->text.token + window[b] * length;
        memcpy(g->input + b * length, text, length);
        memcpy(g->label + b * length, text + 1, length);
        for (size_t t = 0; t < length; t++, out += width)
            for (size_t i = 0; i < width; i++)
                out[i] = w[CHARACTERS][text[t] * width + i] + w[POSITIONS][t * width + i];
    }
}

static void add(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

/* out: the stream after the block. */
static void block_forward(const gpt *g, float *const *w, const gpt_block *v, const attention_shape *s, float *out)
{
    size_t rows = s->windows * s->length, width = s->width, wide = EXPANSION * width;
    norm_forward(v->norm1, v->centre1, v->inverse1, v->in, w[NORM1_GAIN], w[NORM1_BIAS], rows, width);
    linear_forward(v->qkv, v->norm1, w[QKV], w[QKV_BIAS], rows, width, 3 * width);
    attention_forward(v->mixed, v->attention, v->qkv, s);
    linear_forward(g->dnorm, v->mixed, w[MIX], w[MIX_BIAS], rows, width, width);
    add(v->middle, v->in, g->dnorm, rows * width);
    norm_forward(v->norm2, v->centre2, v->inverse2, v->middle, w[NORM2_GAIN], w[NORM2_BIAS], rows, width);
    linear_forward(v->up, v->norm2, w[UP], w[UP_BIAS], rows, width, wide);
    gelu_forward(v->active, v->up, rows * wide);
    linear_forward(g->dnorm, v->active, w[DOWN], w[DOWN_BIAS], rows, wide, width);
    add(out, v->middle, g->dnorm, rows * width);
}

static attention_shape shape_of(const gpt *g, size_t windows)
{
    return (attention_shape){windows, g->size.length, g->size.width, g->size.heads};
}

void gpt_forward(gpt *g, float *const *weights, const size_t *window, size_t n)
{
    const attention_shape s = shape_of(g, n);
    size_t rows = n * g->size.length;
    embed(g, weights, window, n, g->block[0].in);
    for (size_t i = 0; i < g->size.blocks; i++)
        block_forward(g, weights + BEFORE_BLOCKS + i * PER_BLOCK, &g->block[i], &s,
                      i + 1 < g->size.blocks ? g->block[i + 1].in : g->out);
    float *const *after = weights + gpt_after(g);
    norm_forward(g->norm, g->centre, g->inverse, g->out, after[FINAL_GAIN], after[FINAL_BIAS], rows, g->size.width);
    linear_forward(g->logits, g->norm, after[HEAD], NULL, rows, g->size.width, g->columns);
}

/* ---- backward ---- */

/* Tells of finished gradients, from parameter `last` down to `first`. */
typedef struct {
    model_ready ready;
    void *ctx;
    size_t base;
} announcer;

static void announce(const announcer *a, size_t last, size_t first)
{
    for (size_t p = last + 1; a->ready && p-- > first;)
        a->ready(a->ctx, (int)(a->base + p));
}

/* g->d: d of the stream after the block, then of the stream before it. */
static void block_backward(const gpt *g, float *const *w, float *const *dw, const gpt_block *v,
                           const attention_shape *s, const announcer *a)
{
    size_t rows = s->windows * s->length, width = s->width, wide = EXPANSION * width;
    linear_backward(g->dwide, dw[DOWN], dw[DOWN_BIAS], g->d, v->active, w[DOWN], rows, wide, width, g->scratch);
    announce(a, DOWN_BIAS, DOWN);
    gelu_backward(g->dwide, v->up, rows * wide);
    linear_backward(g->dnorm, dw[UP], dw[UP_BIAS], g->dwide, v->norm2, w[UP], rows, width, wide, g->scratch);
    announce(a, UP_BIAS, UP);
    norm_backward(g->d, dw[NORM2_GAIN], dw[NORM2_BIAS], g->dnorm, v->middle, v->centre2, v->inverse2, w[NORM2_GAIN],
                  rows, width);
    announce(a, NORM2_BIAS, NORM2_GAIN);
    linear_backward(g->dnorm, dw[MIX], dw[MIX_BIAS], g->d, v->mixed, w[MIX], rows, width, width, g->scratch);
    announce(a, MIX_BIAS, MIX);
    attention_backward(g->dwide, g->dnorm, v->attention, v->qkv, s, g->scratch);
    linear_backward(g->dnorm, dw[QKV], dw[QKV_BIAS], g->dwide, v->norm1, w[QKV], rows, width, 3 * width, g->scratch);
    announce(a, QKV_BIAS, QKV);
    norm_backward(g->d, dw[NORM1_GAIN], dw[NORM1_BIAS], g->dnorm, v->in, v->centre1, v->inverse1, w[NORM1_GAIN], rows,
                  width);
    announce(a, NORM1_BIAS, NORM1_GAIN);
}

static void embed_backward(const gpt *g, float *const *dw, size_t rows)
{
    size_t length = g->size.length, width = g->size.width;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < width; i++) {
            dw[CHARACTERS][g->input[r] * width + i] += g->d[r * width + i];
            dw[POSITIONS][r % length * width + i] += g->d[r * width + i];
        }
}

void gpt_backward(gpt *g, float *const *weights, float *const *grads, size_t n, model_ready ready, void *ctx)
{
    const attention_shape s = shape_of(g, n);
    size_t rows = n * g->size.length, after = gpt_after(g);
    float *const *w = weights + after, *const *dw = grads + after;
    announcer a = {ready, ctx, after};
    linear_backward(g->dnorm, dw[HEAD], NULL, g->logits, g->norm, w[HEAD], rows, g->size.width, g->columns, g->scratch);
    announce(&a, HEAD, HEAD);
    memset(g->d, 0, rows * g->size.width * sizeof *g->d);
    norm_backward(g->d, dw[FINAL_GAIN], dw[FINAL_BIAS], g->dnorm, g->out, g->centre, g->inverse, w[FINAL_GAIN], rows,
                  g->size.width);
    announce(&a, FINAL_BIAS, FINAL_GAIN);
    for (size_t i = g->size.blocks; i-- > 0;) {
        a.base = BEFORE_BLOCKS + i * PER_BLOCK;
        block_backward(g, weights + a.base, grads + a.base, &g->block[i], &s, &a);
    }
    embed_backward(g, grads, rows);
    a.base = 0;
    announce(&a, POSITIONS, CHARACTERS);
}
