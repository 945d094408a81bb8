/* SPDX-License-Identifier: Apache-2.0 */
/* Memory. NULL when there is none: callers return COSET_ERR_MEMORY. */
#ifndef CST_BASE_ALLOC_H
#define CST_BASE_ALLOC_H
#include <stdbool.h>
#include <stddef.h>

/* Zeroed, aligned to `align` (a power of two, at least sizeof(void *)); free() it. */
void *cst_alloc_aligned(size_t align, size_t bytes);
/* *out = a * b; false on overflow. */
bool cst_size_mul(size_t a, size_t b, size_t *out);
/* *out = a + b; false on overflow. */
bool cst_size_add(size_t a, size_t b, size_t *out);
/* value rounded up to a multiple of `unit`, a power of two. */
static inline size_t cst_round_up(size_t value, size_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}
#endif
