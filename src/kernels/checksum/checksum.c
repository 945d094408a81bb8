/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/checksum/checksum.h"
#include "kernels/random/random.h"

void cst_checksum_keys(uint64_t seed, int32_t keys[CST_CHECKSUM_KEYS])
{
    enum { WHOLE = CST_CHECKSUM_KEYS / 32 * 32 };
    cst_stream stream = cst_stream_of(cst_stream_root_of(seed, 0, 0), CST_USE_CHECKSUM, 0, CST_EVERY_SENDER, 0);
    cst_random_scalar.words(&stream, 0, WHOLE, (uint32_t *)keys);
    uint32_t last[32];
    cst_random_scalar.words(&stream, WHOLE, 32, last);
    for (int i = WHOLE; i < CST_CHECKSUM_KEYS; i++)
        keys[i] = (int32_t)last[i - WHOLE];
}

static cst_checksum points_scalar(const int32_t *points, uint32_t n, const int32_t *keys)
{
    cst_checksum total = {{0, 0}};
    for (uint32_t i = 0; i < n; i++)
        total = cst_checksum_add(total, cst_checksum_of_one(keys, i, points[i]));
    return total;
}

const cst_checksum_kernels cst_checksum_scalar = {.points = points_scalar};
