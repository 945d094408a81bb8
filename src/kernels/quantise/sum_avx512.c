/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/quantise/sum_lanes.h"

const cst_sum_kernels cst_sum_z_avx512 = {.encode = z_encode, .decode = z_decode, .reconstruct = z_reconstruct};
const cst_sum_kernels cst_sum_e8_avx512 = {.encode = e8_encode, .decode = e8_decode, .reconstruct = e8_reconstruct};
