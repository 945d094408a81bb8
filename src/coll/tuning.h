/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/algorithms.py has found by measuring (tuning.c is its output). */
#ifndef CST_COLL_TUNING_H
#define CST_COLL_TUNING_H
#include "coll/cost.h"

/* Fitted to the measurements; indexed by cst_place_kind. */
extern const cst_prices cst_tuned_prices[];

/* All-reduce by messages: the first row that fits, with at most so many ranks and bytes. Measured for as many ranks as
 * could be measured, predicted by the prices for more. The last row of each place takes every vector; a row whose algorithm
 * lacks a promise that the call needs is passed over, and DIRECT, which lacks none, is taken if there is no row. */
typedef struct {
    int ranks;
    size_t bytes;
    cst_algo algo;
    bool network; /* ranks on several hosts */
} cst_tuned_row;
extern const cst_tuned_row cst_tuned_rows[];
extern const int cst_tuned_row_count;
#endif
