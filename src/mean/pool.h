/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large buffers kept from call to call: fresh pages from the system cost as much as a pass over the data. One pool per
 * coset_mean, used by one thread at a time.
 */
#ifndef CST_MEAN_POOL_H
#define CST_MEAN_POOL_H
#include <stddef.h>

enum { CST_POOL_SLOTS = 24 };

typedef struct {
    void *kept[CST_POOL_SLOTS];
    size_t bytes[CST_POOL_SLOTS];
} cst_pool;

/* At least `bytes`, aligned to 64, contents undefined; NULL: no memory. Give it back with cst_pool_put. */
void *cst_pool_get(cst_pool *pool, size_t bytes);
/* ptr may be NULL. */
void cst_pool_put(cst_pool *pool, void *ptr);
void cst_pool_free(cst_pool *pool);
#endif
