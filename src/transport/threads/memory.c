/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/threads/memory.h"

#include "base/alloc.h"
#include "base/error.h"
#include "transport/agree.h"
#include "transport/limits.h"

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

/* Looks at the host before it touches the memory: later there would be a kill instead of an error. */
static coset_status make_block(cst_heap_block **out, size_t bytes, uint64_t number, coset_error *why)
{
    const char *where;
    size_t room = cst_memory_room(&where);
    if (bytes > room)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "coset_alloc: %zu bytes asked for, %zu available (%s)", bytes, room,
                        where);
    cst_heap_block *b = calloc(1, sizeof *b);
    void *ptr = b ? zeroed(bytes) : NULL;
    if (!ptr) {
        free(b);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "coset_alloc: no memory for %zu bytes", bytes);
    }
    *b = (cst_heap_block){NULL, ptr, number};
    *out = b;
    return COSET_OK;
}

static void free_block(cst_heap_block *b)
{
    if (b)
        free(b->ptr);
    free(b);
}

coset_status cst_heap_alloc(cst_heap *h, const coset_oob *oob, size_t bytes, int timeout_ms, void **ptr,
                            coset_error *why)
{
    cst_heap_block *b = NULL;
    coset_status mine = make_block(&b, bytes, h->given++, why);
    coset_status status = cst_agree(oob, "coset_alloc", mine, bytes, timeout_ms, why);
    if (status) {
        free_block(b);
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
        mine = cst_fail(why, COSET_ERR_ARGUMENT, -1, "coset_free: %p is no memory of coset_alloc on this communicator",
                        ptr);
    coset_status status = cst_agree(oob, "coset_free", mine, b ? b->number : 0, timeout_ms, why);
    if (status)
        return status;
    *at = b->next;
    free_block(b);
    return COSET_OK;
}

void cst_heap_free(cst_heap *h)
{
    while (h->first) {
        cst_heap_block *b = h->first;
        h->first = b->next;
        free_block(b);
    }
}
