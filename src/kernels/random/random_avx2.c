/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx2.h"
#include "kernels/random/random_lanes.h"

const cst_random_kernels cst_random_avx2 = {.dither = dither_lanes, .words = words_lanes};
