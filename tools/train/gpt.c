/* SPDX-License-Identifier: Apache-2.0 */
#include "train/gpt.h"

#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_WINDOWS = 128, EVALUATED_TOGETHER = 16, TILE = 16, INIT_STREAM = 1, SPLIT_STREAM = 2 };

static int gpt_gradient(model *base, float *const *weights, const size_t *samples, size_t n, float scale,
                        float *const *grads, model_ready ready, void *ctx, double *losses)
{
    gpt *g = (gpt *)base;
    size_t *window = malloc(n * sizeof *window), right = 0, rows = n * g->size.length;
    if (!window || gpt_reserve(g, n)) {
        free(window);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        window[i] = g->order[TEST_WINDOWS + samples[i]];
    gpt_forward(g, weights, window, n);
    free(window);
    float each = scale / (float)g->size.length;
    *losses = softmax_loss_rows(g->logits, g->label, rows, g->columns, g->text.vocabulary, each, &right) /
              (double)g->size.length;
    gpt_backward(g, weights, grads, n, ready, ctx);
    return 0;
}

static int gpt_evaluate(model *base, float *const *weights, model_score *score)
{
    gpt *g = (gpt *)base;
    size_t right = 0;
    double loss = 0;
    if (gpt_reserve(g, EVALUATED_TOGETHER))
        return -1;
    for (size_t at = 0; at < TEST_WINDOWS; at += EVALUATED_TOGETHER) {
        gpt_forward(g, weights, g->order + at, EVALUATED_TOGETHER);
        loss += softmax_loss_rows(g->logits, g->label, EVALUATED_TOGETHER * g->size.length, g->columns,
                                  g->text.vocabulary, 1, &right);
    }
    double characters = TEST_WINDOWS * (double)g->size.length;
    *score = (model_score){loss / characters, (double)right / characters};
    return 0;
}

static size_t inputs_of(const gpt *g, int p)
{
    size_t block = (size_t)p - BEFORE_BLOCKS;
    int in_block = (size_t)p >= BEFORE_BLOCKS && (size_t)p < gpt_after(g);
    return in_block && block % PER_BLOCK == DOWN ? EXPANSION * g->size.width : g->size.width;
}

/*
 * Matrices: uniform with standard deviation 1 / (2 sqrt(inputs)), close to GPT-2's 0.02 at its width; those that write
 * into the stream are divided by sqrt(2 blocks), since as many of them add up. Gains 1, biases 0.
 */
static void gpt_init(const model *base, uint64_t seed, float *const *weights)
{
    const gpt *g = (const gpt *)base;
    tool_random r = random_stream(seed, INIT_STREAM);
    for (int p = 0; p < base->params; p++) {
        const model_param *param = &base->param[p];
        size_t kind = ((size_t)p - BEFORE_BLOCKS) % PER_BLOCK;
        int writes = (size_t)p >= BEFORE_BLOCKS && (size_t)p < gpt_after(g) && (kind == MIX || kind == DOWN);
        float range = sqrtf(3.0f / (4 * (float)inputs_of(g, p))) / (writes ? sqrtf(2 * (float)g->size.blocks) : 1);
        int gain = strstr(param->name, "gain") != NULL;
        for (size_t i = 0; i < param->count; i++)
            weights[p][i] = param->ndim == 2 ? range * random_signed(&r) : gain ? 1 : 0;
    }
    float *head = weights[gpt_after(g) + HEAD];
    for (size_t i = 0; i < g->size.width * g->columns; i++)
        if (i % g->columns >= g->text.vocabulary)
            head[i] = 0;
}

static void gpt_destroy(model *base)
{
    gpt *g = (gpt *)base;
    if (!g)
        return;
    corpus_free(&g->text);
    free(g->params);
    free(g->order);
    free(g->block);
    free(g->memory);
    free(g);
}

static void name_block(model_param *p, size_t number, size_t width)
{
    static const char *const names[PER_BLOCK] = {"norm1.gain", "norm1.bias", "qkv.weight",  "qkv.bias",
                                                 "mix.weight", "mix.bias",   "norm2.gain",  "norm2.bias",
                                                 "up.weight",  "up.bias",    "down.weight", "down.bias"};
    static const size_t inputs[PER_BLOCK] = {0, 0, 1, 0, 1, 0, 0, 0, 1, 0, EXPANSION, 0},
                        outputs[PER_BLOCK] = {1, 1, 3, 3, 1, 1, 1, 1, EXPANSION, EXPANSION, 1, 1};
    for (int k = 0; k < PER_BLOCK; k++) {
        p[k].ndim = inputs[k] ? 2 : 1;
        p[k].count = outputs[k] * width * (inputs[k] ? inputs[k] * width : 1);
        snprintf(p[k].name, sizeof p[k].name, "block%zu.%s", number, names[k]);
    }
}

static void name_params(gpt *g)
{
    size_t width = g->size.width, after = gpt_after(g);
    g->params[CHARACTERS] = (model_param){"characters", g->text.vocabulary * width, 2};
    g->params[POSITIONS] = (model_param){"positions", g->size.length * width, 2};
    for (size_t i = 0; i < g->size.blocks; i++)
        name_block(g->params + BEFORE_BLOCKS + i * PER_BLOCK, i, width);
    g->params[after + FINAL_GAIN] = (model_param){"norm.gain", width, 1};
    g->params[after + FINAL_BIAS] = (model_param){"norm.bias", width, 1};
    g->params[after + HEAD] = (model_param){"head.weight", width * g->columns, 2};
}

static model *gpt_create(uint64_t seed, const gpt_size *size)
{
    gpt *g = calloc(1, sizeof *g);
    if (!g || corpus_create(&g->text, tool_corpus_text)) {
        free(g);
        return NULL;
    }
    g->size = *size;
    g->columns = (g->text.vocabulary + TILE - 1) / TILE * TILE;
    size_t params = gpt_after(g) + AFTER_BLOCKS, windows = (g->text.length - 1) / size->length;
    g->params = calloc(params, sizeof *g->params);
    g->order = calloc(windows, sizeof *g->order);
    g->block = calloc(size->blocks, sizeof *g->block);
    if (!g->params || !g->order || !g->block) {
        gpt_destroy(&g->base);
        return NULL;
    }
    for (size_t i = 0; i < windows; i++)
        g->order[i] = i;
    tool_random r = random_stream(seed, SPLIT_STREAM);
    random_shuffle(&r, g->order, windows);
    name_params(g);
    g->base = (model){size->ops, (int)params, g->params, windows - TEST_WINDOWS, TEST_WINDOWS, size->length};
    return &g->base;
}

/* 110 thousand, 1.2 million and 9.9 million parameters. */
static const gpt_size tiny = {&gpt_tiny_ops, 2, 64, 2, 32}, small = {&gpt_small_ops, 6, 128, 4, 64},
                      medium = {&gpt_medium_ops, 8, 320, 8, 64};

static model *create_tiny(uint64_t seed)
{
    return gpt_create(seed, &tiny);
}

static model *create_small(uint64_t seed)
{
    return gpt_create(seed, &small);
}

static model *create_medium(uint64_t seed)
{
    return gpt_create(seed, &medium);
}

const model_ops gpt_tiny_ops = {"gpt", "characters", create_tiny, gpt_destroy, gpt_init, gpt_gradient, gpt_evaluate};
const model_ops gpt_small_ops = {"gpt", "characters", create_small, gpt_destroy, gpt_init, gpt_gradient, gpt_evaluate};
const model_ops gpt_medium_ops = {"gpt",    "characters", create_medium, gpt_destroy,
                                  gpt_init, gpt_gradient, gpt_evaluate};
