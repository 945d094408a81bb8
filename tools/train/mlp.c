/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A multilayer perceptron on the handwritten digits: 64 pixels -> 256 -> 128 -> 10 classes, ReLU between the layers,
 * softmax and cross-entropy at the end. Written to be read: plain loops, a layer at a time over the samples of the batch.
 *
 * A layer computes out[o] = bias[o] + sum_i in[i] * weight[i][o]. Weights are stored [in][out], so that the inner loop
 * of forward and of the weight gradient runs over o: neighbouring elements, no sum across them, which a compiler turns
 * into vectors without reordering any addition.
 */
#include "train/digits.h"
#include "train/model.h"
#include "common/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, TEST_SAMPLES = 360, INIT_STREAM = 1, SPLIT_STREAM = 2 };
static const size_t widths[LAYERS + 1] = {DIGITS_PIXELS, 256, 128, DIGITS_CLASSES};

typedef struct {
    model base;
    model_param params[2 * LAYERS]; /* weight and bias of each layer */
    digits data;
    size_t *order;             /* shuffled sample numbers: the test samples first */
    size_t room;               /* samples that values and deltas hold */
    float *values[LAYERS + 1]; /* [samples][width]: outputs of each layer; [0] is the input */
    float *deltas[LAYERS + 1]; /* d loss / d values, before the ReLU */
} mlp;

static float *weight_of(float *const *p, int layer)
{
    return p[2 * layer];
}

static float *bias_of(float *const *p, int layer)
{
    return p[2 * layer + 1];
}

/* Room for n samples. Returns 0, or -1 if memory is short. */
static int reserve(mlp *m, size_t n)
{
    for (int l = 0; l <= LAYERS && n > m->room; l++) {
        free(m->values[l]);
        free(m->deltas[l]);
        m->values[l] = malloc(n * widths[l] * sizeof(float));
        m->deltas[l] = malloc(n * widths[l] * sizeof(float));
        if (!m->values[l] || !m->deltas[l]) {
            m->room = 0;
            return -1;
        }
    }
    m->room = n > m->room ? n : m->room;
    return 0;
}

static void forward_layer(float *const *weights, int layer, const float *in, float *out)
{
    size_t ins = widths[layer], outs = widths[layer + 1];
    const float *w = weight_of(weights, layer);
    memcpy(out, bias_of(weights, layer), outs * sizeof *out);
    for (size_t i = 0; i < ins; i++) {
        float x = in[i];
        for (size_t o = 0; o < outs; o++)
            out[o] += x * w[i * outs + o];
    }
    if (layer < LAYERS - 1)
        for (size_t o = 0; o < outs; o++)
            out[o] = out[o] > 0 ? out[o] : 0;
}

/* Of the sample that is the `row`th of the batch; leaves its logits in values[LAYERS]. */
static void forward(mlp *m, float *const *weights, size_t sample, size_t row)
{
    memcpy(m->values[0] + row * DIGITS_PIXELS, m->data.pixels[sample], sizeof m->data.pixels[0]);
    for (int l = 0; l < LAYERS; l++)
        forward_layer(weights, l, m->values[l] + row * widths[l], m->values[l + 1] + row * widths[l + 1]);
}

/* probabilities = softmax(logits); returns the cross-entropy of `label`. The maximum is taken off first: no overflow. */
static double softmax_loss(const float *logits, int label, float *probabilities)
{
    float top = logits[0];
    for (int c = 1; c < DIGITS_CLASSES; c++)
        top = logits[c] > top ? logits[c] : top;
    float sum = 0;
    for (int c = 0; c < DIGITS_CLASSES; c++)
        sum += probabilities[c] = expf(logits[c] - top);
    for (int c = 0; c < DIGITS_CLASSES; c++)
        probabilities[c] /= sum;
    return (double)logf(sum) - (double)(logits[label] - top);
}

/* Adds this sample's part to the gradients of one layer. */
static void accumulate_layer(const mlp *m, int layer, size_t row, float *const *grads)
{
    size_t ins = widths[layer], outs = widths[layer + 1];
    const float *in = m->values[layer] + row * ins, *delta = m->deltas[layer + 1] + row * outs;
    float *dw = weight_of(grads, layer), *db = bias_of(grads, layer);
    for (size_t o = 0; o < outs; o++)
        db[o] += delta[o];
    for (size_t i = 0; i < ins; i++) {
        float x = in[i];
        if (x == 0) /* half of what a ReLU gives */
            continue;
        for (size_t o = 0; o < outs; o++)
            dw[i * outs + o] += x * delta[o];
    }
}

/* deltas[layer] from deltas[layer + 1]: through the weights, then through the ReLU (open where its output is not 0). */
static void backward_layer(mlp *m, float *const *weights, int layer, size_t row)
{
    enum { PARTS = 8 }; /* partial sums that may be kept in one vector */
    size_t ins = widths[layer], outs = widths[layer + 1];
    const float *w = weight_of(weights, layer), *delta = m->deltas[layer + 1] + row * outs;
    const float *value = m->values[layer] + row * ins;
    float *below = m->deltas[layer] + row * ins;
    for (size_t i = 0; i < ins; i++) {
        float part[PARTS] = {0}, sum = 0;
        size_t o = 0;
        for (; o + PARTS <= outs; o += PARTS)
            for (size_t k = 0; k < PARTS; k++)
                part[k] += w[i * outs + o + k] * delta[o + k];
        for (; o < outs; o++)
            sum += w[i * outs + o] * delta[o];
        for (size_t k = 0; k < PARTS; k++)
            sum += part[k];
        below[i] = value[i] > 0 ? sum : 0;
    }
}

/* The loss of one sample; leaves d loss / d logits, times scale. */
static double forward_loss(mlp *m, float *const *weights, size_t sample, size_t row, float scale)
{
    forward(m, weights, sample, row);
    float *top = m->deltas[LAYERS] + row * DIGITS_CLASSES;
    int label = m->data.label[sample];
    double loss = softmax_loss(m->values[LAYERS] + row * DIGITS_CLASSES, label, top);
    top[label] -= 1; /* softmax and cross-entropy together: d loss / d logits = probabilities - one-hot label */
    for (int c = 0; c < DIGITS_CLASSES; c++)
        top[c] *= scale;
    return loss;
}

static int mlp_gradient(model *base, float *const *weights, const size_t *samples, size_t n, float scale,
                        float *const *grads, model_ready ready, void *ctx, double *losses)
{
    mlp *m = (mlp *)base;
    if (reserve(m, n))
        return -1;
    *losses = 0;
    for (size_t i = 0; i < n; i++)
        *losses += forward_loss(m, weights, m->order[TEST_SAMPLES + samples[i]], i, scale);
    for (int l = LAYERS - 1; l >= 0; l--) {
        for (size_t i = 0; i < n; i++)
            accumulate_layer(m, l, i, grads);
        for (int p = 2 * l + 1; p >= 2 * l && ready; p--)
            ready(ctx, p);
        for (size_t i = 0; i < n && l > 0; i++)
            backward_layer(m, weights, l, i);
    }
    return 0;
}

static int most_likely(const float *logits)
{
    int best = 0;
    for (int c = 1; c < DIGITS_CLASSES; c++)
        best = logits[c] > logits[best] ? c : best;
    return best;
}

static int mlp_evaluate(model *base, float *const *weights, model_score *score)
{
    mlp *m = (mlp *)base;
    float probabilities[DIGITS_CLASSES];
    *score = (model_score){0, 0};
    if (reserve(m, 1))
        return -1;
    for (size_t i = 0; i < base->test_samples; i++) {
        size_t sample = m->order[i];
        forward(m, weights, sample, 0);
        score->loss += softmax_loss(m->values[LAYERS], m->data.label[sample], probabilities);
        score->accuracy += most_likely(m->values[LAYERS]) == m->data.label[sample];
    }
    score->loss /= (double)base->test_samples;
    score->accuracy /= (double)base->test_samples;
    return 0;
}

/* He initialisation (2015), uniform: variance 2 / inputs, as fits a ReLU. Biases start at 0. */
static void mlp_init(const model *base, uint64_t seed, float *const *weights)
{
    tool_random r = random_stream(seed, INIT_STREAM);
    for (int l = 0; l < LAYERS; l++) {
        float range = sqrtf(6.0f / (float)widths[l]);
        for (size_t i = 0; i < base->param[2 * l].count; i++)
            weight_of(weights, l)[i] = range * random_signed(&r);
        memset(bias_of(weights, l), 0, base->param[2 * l + 1].count * sizeof(float));
    }
}

static void mlp_destroy(model *base)
{
    mlp *m = (mlp *)base;
    if (!m)
        return;
    digits_free(&m->data);
    free(m->order);
    for (int l = 0; l <= LAYERS; l++) {
        free(m->values[l]);
        free(m->deltas[l]);
    }
    free(m);
}

static void name_params(mlp *m)
{
    for (int l = 0; l < LAYERS; l++) {
        model_param *weight = &m->params[2 * l], *bias = weight + 1;
        weight->count = widths[l] * widths[l + 1];
        bias->count = widths[l + 1];
        weight->ndim = 2;
        bias->ndim = 1;
        snprintf(weight->name, sizeof weight->name, "layer%d.weight", l);
        snprintf(bias->name, sizeof bias->name, "layer%d.bias", l);
    }
}

static model *mlp_create(uint64_t seed)
{
    mlp *m = calloc(1, sizeof *m);
    size_t line;
    if (!m || digits_parse(tool_digits_csv, &m->data, &line))
        goto fail;
    m->order = calloc(m->data.count, sizeof *m->order);
    if (!m->order)
        goto fail;
    for (size_t i = 0; i < m->data.count; i++)
        m->order[i] = i;
    tool_random r = random_stream(seed, SPLIT_STREAM);
    random_shuffle(&r, m->order, m->data.count);
    name_params(m);
    m->base = (model){&mlp_ops, 2 * LAYERS, m->params, m->data.count - TEST_SAMPLES, TEST_SAMPLES, 1};
    return &m->base;
fail:
    mlp_destroy(m ? &m->base : NULL);
    return NULL;
}

const model_ops mlp_ops = {"mlp", "images", mlp_create, mlp_destroy, mlp_init, mlp_gradient, mlp_evaluate};
