/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx2.h"
#include "kernels/quantise/sum_lanes.h"

const cst_sum_kernels cst_sum_z_avx2 = {.encode = z_encode, .decode = z_decode, .reconstruct = z_reconstruct};
const cst_sum_kernels cst_sum_e8_avx2 = {.encode = e8_encode, .decode = e8_decode, .reconstruct = e8_reconstruct};
