/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/pool.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In front of every buffer, so that its size is known when it comes back. */
enum { PREFIX = 64 };

static size_t size_of(const void *ptr)
{
    size_t bytes;
    memcpy(&bytes, (const char *)ptr - PREFIX, sizeof bytes);
    return bytes;
}

static void release(void *ptr)
{
    if (ptr)
        free((char *)ptr - PREFIX);
}

void *cst_pool_get(cst_pool *pool, size_t bytes)
{
    int best = -1;
    for (int i = 0; i < CST_POOL_SLOTS; i++)
        if (pool->kept[i] && pool->bytes[i] >= bytes && pool->bytes[i] / 2 <= bytes &&
            (best < 0 || pool->bytes[i] < pool->bytes[best]))
            best = i;
    if (best >= 0) {
        void *ptr = pool->kept[best];
        pool->kept[best] = NULL;
        return ptr;
    }
    if (bytes > SIZE_MAX / 2 - 2 * PREFIX)
        return NULL;
    size_t all = cst_round_up(bytes + bytes / 8 + PREFIX, PREFIX); /* frames vary by a few percent from call to call */
    char *ptr = aligned_alloc(PREFIX, all);
    if (!ptr)
        return NULL;
    bytes = all - PREFIX;
    memcpy(ptr, &bytes, sizeof bytes);
    return ptr + PREFIX;
}

/* With no slot free the smallest makes room. */
void cst_pool_put(cst_pool *pool, void *ptr)
{
    if (!ptr)
        return;
    int slot = 0;
    for (int i = 0; i < CST_POOL_SLOTS; i++) {
        if (!pool->kept[i]) {
            slot = i;
            break;
        }
        if (pool->bytes[i] < pool->bytes[slot])
            slot = i;
    }
    release(pool->kept[slot]);
    pool->kept[slot] = ptr;
    pool->bytes[slot] = size_of(ptr);
}

void cst_pool_free(cst_pool *pool)
{
    for (int i = 0; i < CST_POOL_SLOTS; i++) {
        release(pool->kept[i]);
        pool->kept[i] = NULL;
    }
}
