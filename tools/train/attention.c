/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention: each character looks at itself and at those before it in its window. */
#include "train/layers.h"

#include <math.h>
#include <string.h>

static float dot(const float *a, const float *b, size_t n)
{
    enum { PARTS = 8 }; /* partial sums that may be kept in one vector */
    float part[PARTS] = {0}, sum = 0;
    size_t i = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (size_t p = 0; p < PARTS; p++)
            part[p] += a[i + p] * b[i + p];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (size_t p = 0; p < PARTS; p++)
        sum += part[p];
    return sum;
}

static void add_scaled(float *restrict to, const float *restrict from, float x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += x * from[i];
}

/* Softmax of the first n of w, in place. */
static void softmax(float *w, size_t n)
{
    float top = w[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        top = w[i] > top ? w[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += w[i] = expf(w[i] - top);
    for (size_t i = 0; i < n; i++)
        w[i] /= sum;
}

/* One head in one window: q, k and v are columns of the rows of qkv, `size` wide and `stride` apart from row to row. */
typedef struct {
    size_t length, size, stride, width;
    float scale;
} head;

static head head_of(const attention_shape *s)
{
    size_t size = s->width / s->heads;
    return (head){s->length, size, 3 * s->width, s->width, 1 / sqrtf((float)size)};
}

static void head_forward(const head *h, float *out, float *weights, const float *q)
{
    const float *k = q + h->width, *v = q + 2 * h->width;
    for (size_t t = 0; t < h->length; t++) {
        float *w = weights + t * h->length;
        for (size_t u = 0; u <= t; u++)
            w[u] = h->scale * dot(q + t * h->stride, k + u * h->stride, h->size);
        softmax(w, t + 1);
        memset(out + t * h->width, 0, h->size * sizeof *out);
        for (size_t u = 0; u <= t; u++)
            add_scaled(out + t * h->width, v + u * h->stride, w[u], h->size);
    }
}

void attention_forward(float *out, float *weights, const float *qkv, const attention_shape *s)
{
    const head h = head_of(s);
    for (size_t b = 0; b < s->windows; b++)
        for (size_t i = 0; i < s->heads; i++)
            head_forward(&h, out + b * s->length * s->width + i * h.size,
                         weights + (b * s->heads + i) * s->length * s->length,
                         qkv + b * s->length * h.stride + i * h.size);
}

/* dw[u] = dout . v[u]; through the softmax: dscore[u] = w[u] * (dw[u] - sum of w * dw). */
static void head_backward(const head *h, float *dq, const float *dout, const float *weights, const float *q, float *dw)
{
    const float *k = q + h->width, *v = q + 2 * h->width;
    float *dk = dq + h->width, *dv = dq + 2 * h->width;
    for (size_t t = 0; t < h->length; t++) {
        const float *w = weights + t * h->length, *d = dout + t * h->width;
        float sum = 0;
        for (size_t u = 0; u <= t; u++) {
            dw[u] = dot(d, v + u * h->stride, h->size);
            sum += w[u] * dw[u];
            add_scaled(dv + u * h->stride, d, w[u], h->size);
        }
        for (size_t u = 0; u <= t; u++) {
            float score = h->scale * w[u] * (dw[u] - sum);
            add_scaled(dq + t * h->stride, k + u * h->stride, score, h->size);
            add_scaled(dk + u * h->stride, q + t * h->stride, score, h->size);
        }
    }
}

void attention_backward(float *dqkv, const float *dout, const float *weights, const float *qkv,
                        const attention_shape *s, float *scratch)
{
    const head h = head_of(s);
    memset(dqkv, 0, s->windows * s->length * h.stride * sizeof *dqkv);
    for (size_t b = 0; b < s->windows; b++)
        for (size_t i = 0; i < s->heads; i++) {
            size_t at = b * s->length * h.stride + i * h.size;
            head_backward(&h, dqkv + at, dout + b * s->length * s->width + i * h.size,
                          weights + (b * s->heads + i) * s->length * s->length, qkv + at, scratch);
        }
}
