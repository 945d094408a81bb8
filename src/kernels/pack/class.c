/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pack/pack.h"
#include "kernels/pack/rows.h"

/*
 * reciprocal = ceil(2^(32 + shift) / d) with the largest shift for which it fits 32 bits; the test of this table derives
 * it again. Written out, so that ranks cannot differ by the library functions of their hosts.
 */
#define CLASS(k, modulus, count, width, right, magic)                                                                  \
    [k] = {.q = modulus, .digits = count, .bits = width, .shift = right, .reciprocal = magic, .inverse = 1.0f / modulus}

const cst_class_info cst_classes[CST_CLASS_MAX + 1] = {
    CLASS(4, 2, 4, 4, 1, 0x80000000u),        CLASS(7, 3, 4, 7, 3, 0xE38E38E4u),
    CLASS(8, 4, 4, 8, 3, 0x80000000u),        CLASS(10, 5, 4, 10, 4, 0xA3D70A3Eu),
    CLASS(11, 6, 4, 11, 5, 0xE38E38E4u),      CLASS(12, 8, 4, 12, 5, 0x80000000u),
    CLASS(13, 9, 4, 13, 6, 0xCA4587E7u),      CLASS(14, 11, 4, 14, 6, 0x8767AB60u),
    CLASS(15, 13, 4, 15, 7, 0xC1E4BBD6u),     CLASS(16, 16, 4, 16, 7, 0x80000000u),
    CLASS(17, 19, 4, 17, 8, 0xB58A4856u),     CLASS(18, 22, 4, 18, 8, 0x8767AB60u),
    CLASS(19, 26, 4, 19, 9, 0xC1E4BBD6u),     CLASS(20, 32, 4, 20, 9, 0x80000000u),
    CLASS(21, 38, 4, 21, 10, 0xB58A4856u),    CLASS(22, 45, 4, 22, 10, 0x81742E05u),
    CLASS(23, 53, 4, 23, 11, 0xBAA551EFu),    CLASS(24, 64, 4, 24, 11, 0x80000000u),
    CLASS(25, 76, 4, 25, 12, 0xB58A4856u),    CLASS(26, 90, 4, 26, 12, 0x81742E05u),
    CLASS(27, 107, 4, 27, 13, 0xB72C627Au),   CLASS(28, 128, 4, 28, 13, 0x80000000u),
    CLASS(29, 152, 4, 29, 14, 0xB58A4856u),   CLASS(30, 181, 4, 30, 14, 0x80070063u),
    CLASS(31, 215, 4, 31, 15, 0xB57930DDu),   CLASS(32, 256, 4, 32, 15, 0x80000000u),
    CLASS(34, 362, 2, 17, 8, 0xB509E68Bu),    CLASS(36, 512, 2, 18, 8, 0x80000000u),
    CLASS(38, 724, 2, 19, 9, 0xB509E68Bu),    CLASS(40, 1024, 2, 20, 9, 0x80000000u),
    CLASS(42, 1448, 2, 21, 10, 0xB509E68Bu),  CLASS(44, 2048, 2, 22, 10, 0x80000000u),
    CLASS(46, 2896, 2, 23, 11, 0xB509E68Bu),  CLASS(48, 4096, 2, 24, 11, 0x80000000u),
    CLASS(50, 5792, 2, 25, 12, 0xB509E68Bu),  CLASS(52, 8192, 2, 26, 12, 0x80000000u),
    CLASS(54, 11585, 2, 27, 13, 0xB505E66Au), CLASS(56, 16384, 2, 28, 13, 0x80000000u),
    CLASS(58, 23170, 2, 29, 14, 0xB505E66Au), CLASS(60, 32768, 2, 30, 14, 0x80000000u),
    CLASS(62, 46340, 2, 31, 15, 0xB505E66Au), CLASS(64, 65536, 2, 32, 15, 0x80000000u),
};

uint32_t cst_class_for(float modulus)
{
    if (!(modulus <= 65536))
        return 0;
    /* q of class k is at most 2^(k/4): classes below four times the modulus's logarithm are too small. */
    uint32_t k = modulus < 4 ? CST_CLASS_MIN : 4u * (31u - (uint32_t)__builtin_clz((uint32_t)modulus));
    for (; k <= CST_CLASS_MAX; k++)
        if (cst_class_valid(k) && (float)cst_classes[k].q >= modulus)
            return k;
    return 0;
}

size_t cst_packed_bytes(const uint8_t *classes, uint32_t units)
{
    uint32_t lane_bits = cst_lane_bits(classes, units);
    uint32_t rows = lane_bits / 32, last = lane_bits % 32;
    return 64 * (size_t)rows + 16 * (size_t)((last + 7) / 8);
}
