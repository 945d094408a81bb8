/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx2.h"
#include "kernels/quantise/quantise_lanes.h"

const cst_quantise_kernels cst_z_avx2 = {.encode = z_encode,
                                         .decode = z_decode,
                                         .decode_digits = z_decode_digits,
                                         .quantise = z_quantise,
                                         .reconstruct = z_reconstruct,
                                         .need = z_need};
const cst_quantise_kernels cst_e8_avx2 = {.encode = e8_encode,
                                          .decode = e8_decode,
                                          .decode_digits = e8_decode_digits,
                                          .quantise = e8_quantise,
                                          .reconstruct = e8_reconstruct,
                                          .need = e8_need};
