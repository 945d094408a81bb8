/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear checksum of the integer coordinates of a block's lattice points.
 *
 *     sum[j] = sum over i of key[i + 16 j] * point[i]   modulo 2^64,   j = 0, 1,   keys: 32 random bits, signed
 *
 * Linear: the checksums of several senders add up to the checksum of the sum of their points. A receiver that decoded
 * another point than was sent sees the same checksum with probability at most 2^-64 over the keys: |key * difference|
 * stays below 2^63, so for the last wrong coordinate one key at most cancels the rest; the second sum reads the keys 16
 * further on (a Toeplitz matrix), where that coordinate meets a key that the first sum has not used for any wrong one.
 * Points are what the quantiser calls points: integers for Z, doubled coordinates for E8.
 */
#ifndef CST_KERNELS_CHECKSUM_CHECKSUM_H
#define CST_KERNELS_CHECKSUM_CHECKSUM_H
#include <stdbool.h>
#include <stdint.h>

enum { CST_CHECKSUM_SHIFT = 16, CST_CHECKSUM_KEYS = 4096 + CST_CHECKSUM_SHIFT };

typedef struct {
    uint64_t sum[2];
} cst_checksum;

static inline cst_checksum cst_checksum_add(cst_checksum a, cst_checksum b)
{
    return (cst_checksum){{a.sum[0] + b.sum[0], a.sum[1] + b.sum[1]}};
}
static inline bool cst_checksum_equal(cst_checksum a, cst_checksum b)
{
    return a.sum[0] == b.sum[0] && a.sum[1] == b.sum[1];
}
/* One more coordinate: what correcting point[i] by `difference` adds to the checksum. */
static inline cst_checksum cst_checksum_of_one(const int32_t *keys, uint32_t i, int32_t difference)
{
    return (cst_checksum){
        {(uint64_t)((int64_t)difference * keys[i]), (uint64_t)((int64_t)difference * keys[i + CST_CHECKSUM_SHIFT])}};
}

/* Keys of a job: the same on all ranks with the same seed. 16 KiB; align to 64 bytes for speed. */
void cst_checksum_keys(uint64_t seed, int32_t keys[CST_CHECKSUM_KEYS]);

typedef struct {
    /* n: multiple of 16, at most CST_BLOCK. */
    cst_checksum (*points)(const int32_t *points, uint32_t n, const int32_t *keys);
} cst_checksum_kernels;

const cst_checksum_kernels *cst_checksum_kernels_for(int cpu_level);

extern const cst_checksum_kernels cst_checksum_scalar, cst_checksum_avx2, cst_checksum_avx512;
#endif
