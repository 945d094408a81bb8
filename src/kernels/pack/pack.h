/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modulo classes and how their digits become bytes.
 *
 * A class k stands for the modulus q = floor(2^(k/4)) and takes k/4 bits per coordinate, exactly. The digits (colours)
 * of the four vectors 64g .. 64g+63 in one lane make one integer; each of the 16 lanes is a bit stream of its own,
 * filled from the low end and cut in 32-bit words:
 *
 *     k <= 32   v = d0 + q (d1 + q (d2 + q d3))          k bits
 *     k >= 34   v = d0 + q d1, then v = d2 + q d3        k/2 bits each (k even)
 *
 *     byte 64w + 4l .. : word w of lane l, little-endian   (a row of words = 64 bytes)
 *
 * The last row may be partly filled: only its first B = ceil(bits / 8) bytes of each lane are stored, as B planes of 16
 * bytes (plane p = byte p of lanes 0..15). Each unit of 128 coordinates has a class of its own and takes 2k bits per lane.
 * Coordinates of Z are coloured as they are; those of E8 by their coefficients in the basis (quantise.h).
 */
#ifndef CST_KERNELS_PACK_PACK_H
#define CST_KERNELS_PACK_PACK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CST_CLASS_MIN = 4,
    CST_CLASS_MAX = 64,
    CST_CLASS_QUADS = 32 /* the last class with four digits in one integer */
};

/* What the kernels need of a class. */
typedef struct {
    int32_t q;
    uint8_t digits;      /* in one packed integer: 4 or 2; 0: no such class */
    uint8_t bits;        /* of one packed integer: k, or k/2 */
    uint8_t shift;       /* with reciprocal: v / d = (v * reciprocal) >> (32 + shift) for every v of `bits` bits, */
    uint32_t reciprocal; /* where d = q^2 (four digits) or q (two) */
    float inverse;       /* 1/q */
} cst_class_info;

extern const cst_class_info cst_classes[CST_CLASS_MAX + 1];

/* Classes are 4, 7, 8, 10..32 and the even ones from 34 to 64: 5, 6 and 9 have the modulus of a cheaper one, and two
 * digits take whole bits. */
static inline bool cst_class_valid(uint32_t k)
{
    return k <= CST_CLASS_MAX && cst_classes[k].digits != 0;
}
/* The cheapest class whose q is at least `modulus`; 0 if there is none (modulus above 65536, or not a number). */
uint32_t cst_class_for(float modulus);
/* Bytes of a packed block of `units` units. Classes must be valid. At most CST_PACKED_MAX. */
size_t cst_packed_bytes(const uint8_t *classes, uint32_t units);
enum { CST_PACKED_MAX = 4096 * 2 };

typedef struct {
    /* out: cst_packed_bytes(classes, n / 128) bytes, exactly these are written. |points| < 2^22. */
    void (*pack_z)(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out);
    void (*pack_e8)(const int32_t *points, uint32_t n, const uint8_t *classes, uint8_t *out);
} cst_pack_kernels;

const cst_pack_kernels *cst_pack_kernels_for(int cpu_level);

extern const cst_pack_kernels cst_pack_scalar, cst_pack_avx2, cst_pack_avx512;

/*
 * Simple packing, for any q from 2 to 65536 (the protocols of the paper): digits in coordinate order, ceil(log2 q) bits
 * each, from the low end of each byte.
 */
void cst_colour_z(const int32_t *points, uint32_t n, uint32_t q, uint16_t *digits);
/* n: multiple of 128, cells as in block.h. */
void cst_colour_e8(const int32_t *points, uint32_t n, uint32_t q, uint16_t *digits);
uint32_t cst_digit_bits(uint32_t q);
size_t cst_digits_bytes(size_t n, uint32_t q);
void cst_digits_pack(const uint16_t *digits, size_t n, uint32_t q, uint8_t *out);
/* False if a digit is not below q or the padding bits of the last byte are not zero; bytes: cst_digits_bytes(n, q). */
bool cst_digits_unpack(const uint8_t *in, size_t n, uint32_t q, uint16_t *digits);
#endif
