/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/threads/memory.h"

#include "base/alloc.h"
#include "base/error.h"
#include "transport/agree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct cst_heap_block {
    cst_heap_block *next;
    void *ptr;
    uint64_t number;
};

/* Huge pages where the block is large enough to hold some. */
static void *zeroed(size_t bytes)
{
    const size_t huge = (size_t)2 << 20;
    size_t align = bytes >= huge ? huge : 64, size;
    if (!cst_size_add(bytes ? bytes : 1, align - 1, &size))
        return NULL;
    size &= ~(align - 1);
    void *p = aligned_alloc(align, size);
    if (!p)
        return NULL;
    if (align == huge)
        madvise(p, size, MADV_HUGEPAGE);
    memset(p, 0, size);
    return p;
}

coset_status cst_heap_alloc(cst_heap *h, const coset_oob *oob, size_t bytes, int timeout_ms, void **ptr, coset_error *why)
{
    cst_heap_block *b = calloc(1, sizeof *b);
    if (b) {
        b->ptr = zeroed(bytes);
        b->number = h->given++;
    }
    coset_status mine = b && b->ptr ? COSET_OK : COSET_ERR_MEMORY;
    if (mine)
        cst_fail(why, mine, -1, "coset_alloc: no memory for %zu bytes", bytes);
    coset_status status = cst_agree(oob, "coset_alloc", mine, bytes, timeout_ms, why);
    if (status) {
        free(b ? b->ptr : NULL);
        free(b);
        return status;
    }
    b->next = h->first;
    h->first = b;
    *ptr = b->ptr;
    return COSET_OK;
}

coset_status cst_heap_release(cst_heap *h, const coset_oob *oob, void *ptr, int timeout_ms, coset_error *why)
{
    cst_heap_block **at = &h->first;
    while (*at && (*at)->ptr != ptr)
        at = &(*at)->next;
    cst_heap_block *b = *at;
    coset_status mine = COSET_OK;
    if (!b)
        mine = cst_fail(why, COSET_ERR_ARGUMENT, -1, "coset_free: %p is no memory of coset_alloc on this communicator", ptr);
    coset_status status = cst_agree(oob, "coset_free", mine, b ? b->number : 0, timeout_ms, why);
    if (status)
        return status;
    *at = b->next;
    free(b->ptr);
    free(b);
    return COSET_OK;
}

void cst_heap_free(cst_heap *h)
{
    while (h->first) {
        cst_heap_block *b = h->first;
        h->first = b->next;
        free(b->ptr);
        free(b);
    }
}
