/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of coset_alloc where ranks share an address space: ordinary memory, remembered so that it can be released. */
#ifndef CST_TRANSPORT_THREADS_MEMORY_H
#define CST_TRANSPORT_THREADS_MEMORY_H
#include <coset_transport.h>

typedef struct cst_heap_block cst_heap_block;
typedef struct {
    cst_heap_block *first;
    uint64_t given; /* allocations so far: equal on all ranks, numbers the blocks */
} cst_heap;

/* The contract's alloc and release: collective over the oob. */
coset_status cst_heap_alloc(cst_heap *h, const coset_oob *oob, size_t bytes, int timeout_ms, void **ptr,
                            coset_error *why);
coset_status cst_heap_release(cst_heap *h, const coset_oob *oob, void *ptr, int timeout_ms, coset_error *why);
void cst_heap_free(cst_heap *h);
#endif
