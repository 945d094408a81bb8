/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_neon.h"

#include "kernels/convert/kernels.h"

const cst_convert_table cst_convert_neon = CST_CONVERT_TABLE;
