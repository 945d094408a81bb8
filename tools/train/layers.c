/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layers.h"

#include <math.h>
#include <string.h>

/*
 * The compiler makes the inner loops once more for AVX2 and the program chooses at its start. There is no fused
 * multiply-add in either, so both give the same bits. Not under sanitizers, whose run time is not up yet when the choice
 * is made, and not elsewhere than on x86.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define FOR_SEVERAL_LEVELS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_SEVERAL_LEVELS
#endif

typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
enum { LANES = 8, TILE_ROWS = 4, TILE_COLUMNS = 2 * LANES };

/* Rows [i, i + rows) of c, columns [j, n): where no whole tile fits. */
static inline void edge(float *c, const float *a, size_t a_row, size_t a_col, const float *b, size_t rows, size_t i,
                        size_t j, size_t n, size_t k)
{
    for (size_t r = i; r < i + rows; r++)
        for (size_t p = 0; p < k; p++) {
            float x = a[r * a_row + p * a_col];
            for (size_t q = j; q < n; q++)
                c[r * n + q] += x * b[p * n + q];
        }
}

/* Four rows and sixteen columns of c stay in registers while the sum runs over k. */
FOR_SEVERAL_LEVELS
void multiply_add(float *c, const float *a, size_t a_row, size_t a_col, const float *b, size_t m, size_t n, size_t k)
{
    size_t whole = n / TILE_COLUMNS * TILE_COLUMNS, i = 0;
    for (; i + TILE_ROWS <= m; i += TILE_ROWS) {
        for (size_t j = 0; j < whole; j += TILE_COLUMNS) {
            vec sum[TILE_ROWS][2] = {{{0}}};
            const float *at = a + i * a_row;
            for (size_t p = 0; p < k; p++, at += a_col) {
                const vec b0 = *(const vec *)(b + p * n + j), b1 = *(const vec *)(b + p * n + j + LANES);
                for (size_t r = 0; r < TILE_ROWS; r++) {
                    sum[r][0] += at[r * a_row] * b0;
                    sum[r][1] += at[r * a_row] * b1;
                }
            }
            for (size_t r = 0; r < TILE_ROWS; r++) {
                *(vec *)(c + (i + r) * n + j) += sum[r][0];
                *(vec *)(c + (i + r) * n + j + LANES) += sum[r][1];
            }
        }
        edge(c, a, a_row, a_col, b, TILE_ROWS, i, whole, n, k);
    }
    edge(c, a, a_row, a_col, b, m - i, i, 0, n, k);
}

void linear_forward(float *out, const float *in, const float *w, const float *bias, size_t rows, size_t ins,
                    size_t outs)
{
    for (size_t r = 0; r < rows; r++)
        if (bias)
            memcpy(out + r * outs, bias, outs * sizeof *out);
        else
            memset(out + r * outs, 0, outs * sizeof *out);
    multiply_add(out, in, ins, 1, w, rows, outs, ins);
}

static void transpose(float *out, const float *in, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            out[c * rows + r] = in[r * columns + c];
}

void linear_backward(float *din, float *dw, float *dbias, const float *dout, const float *in, const float *w,
                     size_t rows, size_t ins, size_t outs, float *scratch)
{
    multiply_add(dw, in, 1, ins, dout, ins, outs, rows);
    for (size_t r = 0; r < rows && dbias; r++)
        for (size_t o = 0; o < outs; o++)
            dbias[o] += dout[r * outs + o];
    transpose(scratch, w, ins, outs);
    memset(din, 0, rows * ins * sizeof *din);
    multiply_add(din, dout, outs, 1, scratch, rows, ins, outs);
}

void norm_forward(float *out, float *centre, float *inverse, const float *in, const float *gain, const float *bias,
                  size_t rows, size_t width)
{
    const float epsilon = 1e-5f; /* as in the paper's successors: keeps a row of equal values finite */
    for (size_t r = 0; r < rows; r++, in += width, out += width) {
        float sum = 0, squares = 0;
        for (size_t i = 0; i < width; i++)
            sum += in[i];
        float mean = sum / (float)width;
        for (size_t i = 0; i < width; i++)
            squares += (in[i] - mean) * (in[i] - mean);
        float scale = 1 / sqrtf(squares / (float)width + epsilon);
        for (size_t i = 0; i < width; i++)
            out[i] = (in[i] - mean) * scale * gain[i] + bias[i];
        centre[r] = mean;
        inverse[r] = scale;
    }
}

/* With n = (in - mean) / deviation and g = dout * gain: din = (g - mean(g) - n * mean(g * n)) / deviation. */
void norm_backward(float *din, float *dgain, float *dbias, const float *dout, const float *in, const float *centre,
                   const float *inverse, const float *gain, size_t rows, size_t width)
{
    for (size_t r = 0; r < rows; r++, in += width, dout += width, din += width) {
        float sum = 0, product = 0;
        for (size_t i = 0; i < width; i++) {
            float n = (in[i] - centre[r]) * inverse[r], g = dout[i] * gain[i];
            sum += g;
            product += g * n;
            dgain[i] += dout[i] * n;
            dbias[i] += dout[i];
        }
        sum /= (float)width;
        product /= (float)width;
        for (size_t i = 0; i < width; i++) {
            float n = (in[i] - centre[r]) * inverse[r];
            din[i] += (dout[i] * gain[i] - sum - n * product) * inverse[r];
        }
    }
}

static const float gelu_slope = 0.7978845608f /* sqrt(2 / pi) */, gelu_cubic = 0.044715f;

void gelu_forward(float *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = in[i];
        out[i] = 0.5f * x * (1 + tanhf(gelu_slope * (x + gelu_cubic * x * x * x)));
    }
}

void gelu_backward(float *d, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = in[i], t = tanhf(gelu_slope * (x + gelu_cubic * x * x * x));
        d[i] *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * gelu_slope * (1 + 3 * gelu_cubic * x * x);
    }
}

double softmax_loss_rows(float *logits, const unsigned char *label, size_t rows, size_t width, size_t classes,
                         float scale, size_t *right)
{
    double loss = 0;
    for (size_t r = 0; r < rows; r++, logits += width) {
        size_t best = 0;
        for (size_t c = 1; c < classes; c++)
            best = logits[c] > logits[best] ? c : best;
        float top = logits[best], mine = logits[label[r]] - top, sum = 0;
        *right += best == label[r];
        for (size_t c = 0; c < classes; c++) /* the maximum is taken off first: no overflow */
            sum += logits[c] = expf(logits[c] - top);
        loss += (double)logf(sum) - (double)mine;
        for (size_t c = 0; c < classes; c++)
            logits[c] *= scale / sum;
        for (size_t c = classes; c < width; c++)
            logits[c] = 0;
        logits[label[r]] -= scale; /* softmax and cross-entropy together: probabilities - one-hot label */
    }
    return loss;
}
