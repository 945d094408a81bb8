/* SPDX-License-Identifier: Apache-2.0 */
/* Written by bench/algorithms.py from bench/algorithms.json. */
#include "coll/tuning.h"

#include <limits.h>
#include <stdint.h>

const cst_prices cst_tuned_prices[] = {
    /* median error 6 % of 52 measurements */
    [CST_PLACE_NETWORK] = {"network", 27.65, 7, 8.013, 0.9456, 0},
    /* median error 15 % of 14 measurements */
    [CST_PLACE_MEMORY] = {"shared memory", 0.1583, 0, 0, 0, 0.01257},
    /* median error 9 % of 58 measurements */
    [CST_PLACE_HOST] = {"one host", 7.25, 7, 0.1723, 0, 0.0004766},
};

const cst_tuned_row cst_tuned_rows[] = {
    /* network, 2 ranks */
    {2, 4096, CST_ALGO_FLAT, true},
    {2, 65536, CST_ALGO_RD, true},
    {2, 1048576, CST_ALGO_RHD, true},
    {2, SIZE_MAX, CST_ALGO_RING, true},
    /* network, 2 ranks, for sums in rank order and 16-bit floats */
    {2, 1048576, CST_ALGO_FLAT, true},
    {2, SIZE_MAX, CST_ALGO_DIRECT, true},
    /* network, 4 ranks */
    {4, 4096, CST_ALGO_FLAT, true},
    {4, 65536, CST_ALGO_DIRECT, true},
    {4, SIZE_MAX, CST_ALGO_RING, true},
    /* network, 4 ranks, for sums in rank order and 16-bit floats */
    {4, 4096, CST_ALGO_FLAT, true},
    {4, SIZE_MAX, CST_ALGO_DIRECT, true},
    /* network, 8 ranks */
    {8, 1024, CST_ALGO_FLAT, true},
    {8, 65536, CST_ALGO_DIRECT, true},
    {8, SIZE_MAX, CST_ALGO_RING, true},
    /* network, 8 ranks, for sums in rank order and 16-bit floats */
    {8, 1024, CST_ALGO_FLAT, true},
    {8, SIZE_MAX, CST_ALGO_DIRECT, true},
    /* network, 16 ranks */
    {16, 256, CST_ALGO_FLAT, true},
    {16, 4096, CST_ALGO_RD, true},
    {16, 262144, CST_ALGO_DIRECT, true},
    {16, SIZE_MAX, CST_ALGO_RING, true},
    /* network, 16 ranks, for sums in rank order and 16-bit floats */
    {16, 1024, CST_ALGO_FLAT, true},
    {16, SIZE_MAX, CST_ALGO_DIRECT, true},
    /* network, more ranks */
    {INT_MAX, 4096, CST_ALGO_RD, true},
    {INT_MAX, 4194304, CST_ALGO_TREE, true},
    {INT_MAX, SIZE_MAX, CST_ALGO_RING, true},
    /* host, 2 ranks */
    {2, 1048576, CST_ALGO_FLAT, false},
    {2, SIZE_MAX, CST_ALGO_RING, false},
    /* host, 2 ranks, for sums in rank order and 16-bit floats */
    {2, 1048576, CST_ALGO_FLAT, false},
    {2, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 4 ranks */
    {4, 16384, CST_ALGO_FLAT, false},
    {4, 65536, CST_ALGO_RD, false},
    {4, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 4 ranks, for sums in rank order and 16-bit floats */
    {4, 65536, CST_ALGO_FLAT, false},
    {4, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 8 ranks */
    {8, 65536, CST_ALGO_RD, false},
    {8, 262144, CST_ALGO_TREE, false},
    {8, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 8 ranks, for sums in rank order and 16-bit floats */
    {8, 16384, CST_ALGO_FLAT, false},
    {8, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 16 ranks */
    {16, 65536, CST_ALGO_RD, false},
    {16, 4194304, CST_ALGO_TREE, false},
    {16, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, 16 ranks, for sums in rank order and 16-bit floats */
    {16, 16384, CST_ALGO_FLAT, false},
    {16, SIZE_MAX, CST_ALGO_DIRECT, false},
    /* host, more ranks */
    {INT_MAX, 16384, CST_ALGO_RD, false},
    {INT_MAX, SIZE_MAX, CST_ALGO_TREE, false},
};
const int cst_tuned_row_count = sizeof cst_tuned_rows / sizeof *cst_tuned_rows;
