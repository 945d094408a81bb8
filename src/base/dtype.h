/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and operators (coset_dtype_size and the names are public; see coset.h). */
#ifndef CST_BASE_DTYPE_H
#define CST_BASE_DTYPE_H
#include <coset.h>
#include <stdbool.h>

/* Bytes of one element, for a dtype known to be valid. */
extern const unsigned char cst_dtype_bytes[COSET_DTYPE_COUNT];
bool cst_dtype_valid(int dtype);
bool cst_op_valid(int op);
/* f16 and bf16: summed in f32, rounded once. */
bool cst_dtype_is_half(coset_dtype dtype);
bool cst_dtype_is_float(coset_dtype dtype);
#endif
