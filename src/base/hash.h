/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH64 (Yann Collet, "xxHash fast digest algorithm", specification 0.2.0): 64 bits over bytes given in any pieces.
 * It finds accidents, not attacks. The value is the same on every machine.
 */
#ifndef CST_BASE_HASH_H
#define CST_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t lane[4];
    uint64_t seed, total;
    uint8_t rest[32]; /* bytes that do not fill a block of 32 yet: total % 32 of them */
} cst_hash;

void cst_hash_begin(cst_hash *h, uint64_t seed);
void cst_hash_add(cst_hash *h, const void *data, size_t bytes);
/* May be called at any time; more can be added afterwards. */
uint64_t cst_hash_end(const cst_hash *h);
uint64_t cst_hash64(uint64_t seed, const void *data, size_t bytes);
#endif
