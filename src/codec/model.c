/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/model.h"

#include "codec/portable.h"

cst_entropy_model cst_model_of_class(unsigned class)
{
    if (class < CST_ENTROPY_TABLES)
        return (cst_entropy_model){(uint8_t) class, 0};
    unsigned above = class - CST_ENTROPY_TABLES;
    return (cst_entropy_model){(uint8_t)(CST_ENTROPY_TABLES - 4 + above % 4), (uint8_t)(1 + above / 4)};
}

unsigned cst_model_class(double variance)
{
    double class = 2 * cst_log2(variance) + 8; /* 4 log2(4 sigma) */
    return class < 0 ? 0 : class > CST_MODELS - 1 ? CST_MODELS - 1 : (unsigned)(class + 0.5);
}

/* Bits of round(X + dither), X Gaussian with sigma = 2^(i/4) / 16: the entropy from class 8 (sigma = 1/4, the smallest
 * table) on, below what that table costs. From class 24 on it is log2(sigma) + 2.0546. */
static const double entropy[] = {0.4700, 0.4984, 0.5322, 0.5722, 0.6200, 0.6769, 0.7443, 0.8245, 0.9204,
                                 1.0282, 1.1444, 1.2718, 1.4146, 1.5755, 1.7546, 1.9497, 2.1583, 2.3775,
                                 2.6048, 2.8384, 3.0765, 3.3180, 3.5620, 3.8076, 4.0546};
enum { ENTROPIES = sizeof entropy / sizeof *entropy };

/* What tables of 1024ths and scales on a grid lose together, on average. */
static const double coder_loss = 0.012;

double cst_model_bits(double variance)
{
    double at = 2 * cst_log2(variance) + 16; /* 4 log2(16 sigma) */
    if (at <= 0)
        return entropy[0];
    if (at >= ENTROPIES - 1)
        return 0.5 * cst_log2(variance) + 2.0546 + coder_loss;
    int i = (int)at;
    return entropy[i] + (at - i) * (entropy[i + 1] - entropy[i]) + coder_loss;
}
