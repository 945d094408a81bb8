/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of the entropy code as one number, and what a scale costs.
 *
 * Class i stands for sigma/step = 2^(i/4) / 4. Classes 0 .. 16 are the coder's tables; above, each octave more sends one
 * more low bit raw (kernels/entropy/entropy.h).
 */
#ifndef CST_CODEC_MODEL_H
#define CST_CODEC_MODEL_H
#include "kernels/entropy/entropy.h"

enum { CST_MODELS = CST_ENTROPY_TABLES + 4 * CST_ENTROPY_SHIFT_MAX };

/* class < CST_MODELS */
cst_entropy_model cst_model_of_class(unsigned class);
/* The cheapest class for coordinates of variance `variance` steps^2 before dithering. Portable (codec/portable.h). */
unsigned cst_model_class(double variance);
/* Bits per coordinate of a Gaussian of that variance, dithered, with its best model: entropy and the coder's loss.
 * Portable. */
double cst_model_bits(double variance);
#endif
