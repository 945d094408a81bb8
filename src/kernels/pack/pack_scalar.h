/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar pieces that the scalar quantisers use too. */
#ifndef CST_KERNELS_PACK_PACK_SCALAR_H
#define CST_KERNELS_PACK_PACK_SCALAR_H
#include <stdint.h>

/* Digits of all n coordinates, each below 2^16 (and below q if the bytes are an encoder's). */
void cst_unpack_scalar(const uint8_t *in, uint32_t n, const uint8_t *classes, int32_t *digits);
/* Point of an integer's colour: integer modulo q, in [0, q). */
static inline int32_t cst_colour(int32_t integer, int32_t q)
{
    int32_t rest = integer % q;
    return rest < 0 ? rest + q : rest;
}
/* Coefficients of an E8 point (doubled coordinates) in the basis (1/2)^8, e_i + e_8 (i = 2..7), 2 e_8, and back. */
void cst_e8_to_basis(const int32_t point[8], int32_t coefficient[8]);
void cst_e8_from_basis(const int32_t coefficient[8], int32_t point[8]);
#endif
