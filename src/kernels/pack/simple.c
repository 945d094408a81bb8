/* SPDX-License-Identifier: Apache-2.0 */
/* Digits of any modulus at ceil(log2 q) bits each, in coordinate order. */
#include "kernels/pack/pack.h"

uint32_t cst_digit_bits(uint32_t q)
{
    uint32_t bits = 1;
    while (1u << bits < q)
        bits++;
    return bits;
}

size_t cst_digits_bytes(size_t n, uint32_t q)
{
    size_t bits = cst_digit_bits(q);
    return n / 8 * bits + (n % 8 * bits + 7) / 8;
}

void cst_digits_pack(const uint16_t *digits, size_t n, uint32_t q, uint8_t *out)
{
    uint32_t bits = cst_digit_bits(q), used = 0;
    uint32_t pending = 0;
    for (size_t i = 0; i < n; i++) {
        pending |= (uint32_t)digits[i] << used;
        for (used += bits; used >= 8; used -= 8, pending >>= 8)
            *out++ = (uint8_t)pending;
    }
    if (used)
        *out = (uint8_t)pending;
}

bool cst_digits_unpack(const uint8_t *in, size_t n, uint32_t q, uint16_t *digits)
{
    uint32_t bits = cst_digit_bits(q), have = 0, pending = 0;
    for (size_t i = 0; i < n; i++) {
        for (; have < bits; have += 8)
            pending |= (uint32_t)*in++ << have;
        uint32_t digit = pending & ((1u << bits) - 1);
        if (digit >= q)
            return false;
        digits[i] = (uint16_t)digit;
        pending >>= bits;
        have -= bits;
    }
    return pending == 0;
}
