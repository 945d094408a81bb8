/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Philox4x32-10, the counter-based generator of J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as
 * easy as 1, 2, 3" (SC 2011), with its published constants: a bijection of 128-bit counters for each 64-bit key.
 */
#ifndef CST_KERNELS_RANDOM_PHILOX_H
#define CST_KERNELS_RANDOM_PHILOX_H
#include <stdint.h>

enum { CST_PHILOX_ROUNDS = 10 };
#define CST_PHILOX_M0 0xD2511F53u
#define CST_PHILOX_M1 0xCD9E8D57u
#define CST_PHILOX_W0 0x9E3779B9u /* the golden ratio: what the key grows by from round to round */
#define CST_PHILOX_W1 0xBB67AE85u /* sqrt(3) - 1 */

static inline void cst_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < CST_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)CST_PHILOX_M0 * a, p1 = (uint64_t)CST_PHILOX_M1 * c;
        a = (uint32_t)(p1 >> 32) ^ b ^ k0;
        b = (uint32_t)p1;
        c = (uint32_t)(p0 >> 32) ^ d ^ k1;
        d = (uint32_t)p0;
        k0 += CST_PHILOX_W0;
        k1 += CST_PHILOX_W1;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}
#endif
