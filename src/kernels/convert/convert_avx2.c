/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx2.h"

#include "kernels/convert/kernels.h"

const cst_convert_table cst_convert_avx2 = CST_CONVERT_TABLE;
