/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "coll/bulk.h"
#include "coll/patterns/chunk.h"
#include "coll/shared.h"
#include "kernels/reduce/reduce.h"

/* Copying wins while its fixed cost (3 to 4 us a system call, the pinning of pages) is small against staging's
 * synchronisation. Never on shared cores, where staging's copies stay in one cache. Measured, docs/performance.md. */
#define COPYING_BYTES ((size_t)768 << 10)

/* What goes with one system call: a rank's whole slice of up to COPYING_BYTES, chunks being rounded (coll/patterns/chunk.h).
 * All ranks' parts of that size together still fit a second-level cache; in parts of 64 KiB the calls took a quarter of the
 * time. */
static size_t part_bytes(int size)
{
    return COPYING_BYTES / (size_t)size + 2 * CST_CHUNK_ALIGN * sizeof(double);
}

static bool pays(const coset_comm *c, const cst_operation *op)
{
    if (c->caps.flags & COSET_PREFERS_GET_PUT)
        return true;
    return c->core_each && op->call.count * coset_dtype_size(op->call.dtype) <= COPYING_BYTES;
}

bool cst_bulk_by_copying(const coset_comm *c, const cst_operation *op)
{
    if (!(c->caps.flags & COSET_CAN_GET_PUT) || !pays(c, op))
        return false;
    for (int r = 0; r < c->size; r++) {
        const cst_entry_slot *slot = cst_slot_of(c, op, r);
        if (slot->send.kind != COSET_LOC_PRIVATE || slot->recv.kind != COSET_LOC_PRIVATE)
            return false;
    }
    return true;
}

/* Sums elements [begin, begin + count) and distributes the result. `scratch` holds the others' parts; *with is the last peer. */
static coset_status do_part(coset_comm *c, const cst_operation *op, size_t begin, size_t count, char *scratch,
                            int *with)
{
    const cst_call *call = &op->call;
    const coset_transport_ops *t = c->transport->ops;
    size_t size = coset_dtype_size(call->dtype), bytes = count * size, offset = begin * size;
    const void *from[CST_SHARED_RANKS];
    for (int r = 0; r < c->size; r++) {
        if (r == c->rank) {
            from[r] = (const char *)call->send + offset;
            continue;
        }
        from[r] = scratch;
        *with = r;
        coset_status status = t->get(c->transport, r, &cst_slot_of(c, op, r)->send, offset, scratch, bytes);
        if (status != COSET_OK)
            return status;
        scratch += bytes;
    }
    void *to = (char *)call->recv + offset;
    cst_reduce(call->dtype, call->op, &to, 1, from, c->size, count, call->op == COSET_AVG ? (unsigned)c->size : 1, 0);
    for (int i = 1; i < c->size; i++) {
        int r = *with = (c->rank + i) % c->size;
        coset_status status = t->put(c->transport, r, &cst_slot_of(c, op, r)->recv, offset, to, bytes);
        if (status != COSET_OK)
            return status;
    }
    return COSET_OK;
}

coset_status cst_bulk_copy_work(coset_comm *c, const cst_operation *op)
{
    cst_range range = cst_chunk(op->call.count, c->size, c->rank);
    size_t step = part_bytes(c->size) / coset_dtype_size(op->call.dtype);
    if (!c->staging.scratch) /* kept: fresh pages would cost ten times what the copying does */
        c->staging.scratch = cst_alloc_aligned(4096, (size_t)c->size * part_bytes(c->size));
    char *scratch = c->staging.scratch;
    int with = -1;
    coset_status status = scratch ? COSET_OK : COSET_ERR_MEMORY;
    for (size_t at = range.begin; at < range.end && status == COSET_OK; at += step)
        status = do_part(c, op, at, range.end - at < step ? range.end - at : step, scratch, &with);
    size_t size = coset_dtype_size(op->call.dtype), mine = cst_range_size(range) * size;
    size_t rest = op->call.count * size - mine; /* of this rank's vector and result: the others read and write it */
    c->direct_sent += rest + mine * (size_t)(c->size - 1);
    c->direct_received += rest + mine * (size_t)(c->size - 1);
    if (status == COSET_OK)
        return status;
    if (status == COSET_ERR_PEER)
        return cst_comm_fail(c, status, with, op->sequence, "rank %d is gone (its memory cannot be reached)", with);
    return cst_comm_fail(c, status, with, op->sequence,
                         "copying between the memories of ranks %d and %d failed: %s; "
                         "COSET_SHM_METHOD=staged avoids it",
                         c->rank, with, coset_strerror(status));
}
