/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"
#include "kernels/quantise/quantise_lanes.h"

const cst_quantise_kernels cst_z_avx512 = {.encode = z_encode,
                                           .decode = z_decode,
                                           .decode_add = z_decode_add,
                                           .decode_digits = z_decode_digits,
                                           .quantise = z_quantise,
                                           .quantise_both = z_quantise_both,
                                           .reconstruct = z_reconstruct,
                                           .reconstruct_add = z_reconstruct_add,
                                           .need = z_need};
const cst_quantise_kernels cst_e8_avx512 = {.encode = e8_encode,
                                            .decode = e8_decode,
                                            .decode_add = e8_decode_add,
                                            .decode_digits = e8_decode_digits,
                                            .quantise = e8_quantise,
                                            .quantise_both = e8_quantise_both,
                                            .reconstruct = e8_reconstruct,
                                            .reconstruct_add = e8_reconstruct_add,
                                            .need = e8_need};
