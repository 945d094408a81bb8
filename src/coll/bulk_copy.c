/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "coll/bulk.h"
#include "coll/patterns/chunk.h"
#include "coll/shared.h"
#include "kernels/reduce/reduce.h"

/* Copying wins while its fixed cost (3 to 4 us a system call, the pinning of pages) is small against staging's
 * synchronisation. Measured, docs/performance.md. */
#define COPYING_BYTES ((size_t)768 << 10)
/* A block of every rank must stay in the second-level cache until it is summed. */
#define COPY_BLOCK ((size_t)64 << 10)

int cst_bulk_by_copying(const coset_comm *c, const cst_operation *op)
{
    if (!(c->caps.flags & COSET_CAN_GET_PUT) || op->call.count * coset_dtype_size(op->call.dtype) > COPYING_BYTES)
        return 0;
    for (int r = 0; r < c->size; r++) {
        const cst_entry_slot *slot = cst_slot_of(c, op, r);
        if (slot->send.kind != COSET_LOC_PRIVATE || slot->recv.kind != COSET_LOC_PRIVATE)
            return 0;
    }
    return 1;
}

/* Sums elements [begin, begin + count) and distributes the result. `scratch` holds size blocks; *with is the last peer. */
static coset_status do_block(coset_comm *c, const cst_operation *op, size_t begin, size_t count, char *scratch,
                             int *with)
{
    const cst_call *call = &op->call;
    const coset_transport_ops *t = c->transport->ops;
    size_t size = coset_dtype_size(call->dtype), bytes = count * size, offset = begin * size;
    const void *from[CST_SHARED_RANKS];
    for (int r = 0; r < c->size; r++) {
        from[r] = r == c->rank ? (const char *)call->send + offset : scratch + (size_t)r * COPY_BLOCK;
        if (r == c->rank)
            continue;
        *with = r;
        coset_status status =
            t->get(c->transport, r, &cst_slot_of(c, op, r)->send, offset, scratch + (size_t)r * COPY_BLOCK, bytes);
        if (status != COSET_OK)
            return status;
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
    size_t step = COPY_BLOCK / coset_dtype_size(op->call.dtype);
    if (!c->staging.scratch) /* kept: fresh pages would cost ten times what the copying does */
        c->staging.scratch = cst_alloc_aligned(4096, (size_t)c->size * COPY_BLOCK);
    char *scratch = c->staging.scratch;
    coset_status status = scratch ? COSET_OK : COSET_ERR_MEMORY;
    int with = -1;
    for (size_t at = range.begin; at < range.end && status == COSET_OK; at += step)
        status = do_block(c, op, at, range.end - at < step ? range.end - at : step, scratch, &with);
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
