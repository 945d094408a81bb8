/* SPDX-License-Identifier: Apache-2.0 */
/* The static tables, in the forms in which encoders and decoders use them; built once from tables.inc. */
#ifndef CST_KERNELS_ENTROPY_TABLES_H
#define CST_KERNELS_ENTROPY_TABLES_H
#include "kernels/entropy/entropy.h"

/* Symbol s < escape stands for s - largest; others are unused (frequency 0). */
typedef struct {
    int32_t largest; /* magnitude with a symbol of its own */
    int32_t escape;  /* the escape's symbol: 2 largest + 1 */
    uint16_t frequency[CST_ENTROPY_SYMBOLS];
    uint16_t start[CST_ENTROPY_SYMBOLS]; /* sum of the frequencies before */

    /* Encoding without division: x / f = (x * reciprocal >> 32) >> shift for x < 2^31, and the next state is
     * x + bias + (x / f) * (1024 - f). For f = 1, whose reciprocal does not fit, x / f comes out as x - 1 and
     * the bias makes up for it. step = f | shift << 12 | bias << 16. */
    _Alignas(64) uint32_t reciprocal[CST_ENTROPY_SYMBOLS];
    _Alignas(64) uint32_t step[CST_ENTROPY_SYMBOLS];
} cst_entropy_encode_table;

/* For each of the 1024 low parts of a state: frequency | (low part - start) << 12 | symbol << 24. */
typedef struct {
    _Alignas(64) uint32_t slot[1 << CST_ENTROPY_BITS];
} cst_entropy_decode_table;

const cst_entropy_encode_table *cst_entropy_encode_tables(void); /* CST_ENTROPY_TABLES of them */
const cst_entropy_decode_table *cst_entropy_decode_tables(void);
#endif
