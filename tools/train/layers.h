/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers that a transformer is made of, forward and backward, in f32. Activations are matrices of `rows` rows, one per
 * character; every backward function adds to the gradients of weights, and writes (or, where it says so, adds to) the
 * gradient of its input. Names: `d` before a name is d loss / d name.
 *
 * Sums run in an order that depends on the sizes alone.
 */
#ifndef COSET_TOOLS_TRAIN_LAYERS_H
#define COSET_TOOLS_TRAIN_LAYERS_H
#include <stddef.h>

/* c[m][n] += a * b[k][n], where element (i, p) of the m x k matrix a is a[i * a_row + p * a_col]. */
void multiply_add(float *c, const float *a, size_t a_row, size_t a_col, const float *b, size_t m, size_t n, size_t k);

/* out[rows][outs] = in[rows][ins] * w[ins][outs] + bias[outs]; bias may be NULL. */
void linear_forward(float *out, const float *in, const float *w, const float *bias, size_t rows, size_t ins,
                    size_t outs);
/* din is overwritten. dbias may be NULL. scratch: ins * outs floats. */
void linear_backward(float *din, float *dw, float *dbias, const float *dout, const float *in, const float *w,
                     size_t rows, size_t ins, size_t outs, float *scratch);

/* Layer normalisation (Ba, Kiros and Hinton, 2016). centre and inverse: rows floats each, kept for backward. */
void norm_forward(float *out, float *centre, float *inverse, const float *in, const float *gain, const float *bias,
                  size_t rows, size_t width);
/* Adds to din. */
void norm_backward(float *din, float *dgain, float *dbias, const float *dout, const float *in, const float *centre,
                   const float *inverse, const float *gain, size_t rows, size_t width);

/* The Gaussian error linear unit, by its usual tanh form (Hendrycks and Gimpel, 2016). */
void gelu_forward(float *out, const float *in, size_t n);
/* In place: d becomes d * gelu'(in). */
void gelu_backward(float *d, const float *in, size_t n);

/*
 * Causal attention of `heads` heads (Vaswani et al., 2017) over `windows` windows of `length` characters.
 * qkv[windows * length][3 * width]: queries, keys, values; out[windows * length][width];
 * weights[windows][heads][length][length]: kept for backward.
 */
typedef struct {
    size_t windows, length, width, heads;
} attention_shape;
void attention_forward(float *out, float *weights, const float *qkv, const attention_shape *s);
/* dqkv is overwritten; scratch: length floats. */
void attention_backward(float *dqkv, const float *dout, const float *weights, const float *qkv,
                        const attention_shape *s, float *scratch);

/* logits[rows][width] become d (mean loss of the rows * scale) / d logits; only the first `classes` columns count, the
 * others become 0. Returns the sum of the losses (cross-entropy of softmax); *right counts rows whose largest logit is
 * the label's. */
double softmax_loss_rows(float *logits, const unsigned char *label, size_t rows, size_t width, size_t classes,
                         float scale, size_t *right);
#endif
