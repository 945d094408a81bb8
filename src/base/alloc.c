/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *cst_alloc_aligned(size_t align, size_t bytes)
{
    if (bytes > SIZE_MAX - align)
        return NULL;
    size_t size = cst_round_up(bytes ? bytes : 1, align);
    void *p = aligned_alloc(align, size);
    if (p)
        memset(p, 0, size);
    return p;
}

bool cst_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool cst_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
