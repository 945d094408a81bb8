/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct: the buffers are mapped in every process, so a collective is one pass over memory. For an all-reduce rank i
 * sums slice i of all N buffers, in rank order, and stores it into all N results: scatter-reduce and all-gather in one,
 * with the traffic of a ring, 2(N-1)/N * S per rank, and no copy in between.
 */
#include "coll/patterns/chunk.h"
#include "coll/shared.h"
#include "kernels/reduce/reduce.h"

#include <string.h>

/* From this size on, results out of place are stored past the caches: first those of the other ranks (their lines have
 * just been read by another core, and fetching them for ownership costs more than writing memory), then also the own
 * (the caches cannot keep it anyway). In place ordinary stores always win: the lines are there. Measured,
 * docs/performance.md. */
#define NT_OTHERS_BYTES ((size_t)256 << 10)
#define NT_OWN_BYTES    ((size_t)16 << 20)

static unsigned store_flags(const coset_comm *c, const cst_operation *op, size_t bytes)
{
    for (int r = 0; r < c->size; r++) {
        const cst_entry_slot *slot = &c->control[r]->slot[op->sequence & 1];
        if (slot->send.segment == slot->recv.segment && slot->send.offset == slot->recv.offset)
            return 0;
    }
    if (bytes >= NT_OWN_BYTES)
        return CST_REDUCE_NT_FIRST | CST_REDUCE_NT_REST;
    return bytes >= NT_OTHERS_BYTES ? CST_REDUCE_NT_REST : 0;
}

/* Sums elements `range` of every rank's send buffer into the same elements of `targets`. */
static coset_status sum_slice(coset_comm *c, const cst_operation *op, cst_range range, void *targets[], int ntargets,
                              size_t target_shift, unsigned flags)
{
    const cst_call *call = &op->call;
    size_t size = cst_dtype_bytes[call->dtype];
    const void *from[CST_SHARED_RANKS];
    void *to[CST_SHARED_RANKS];
    for (int r = 0; r < c->size; r++) {
        const char *base = cst_shared_source(c, op, r);
        if (!base)
            return cst_comm_fail(c, COSET_ERR_CORRUPT, r, op->sequence,
                                 "rank %d gave a buffer that is not in its memory", r);
        from[r] = base + range.begin * size;
    }
    for (int k = 0; k < ntargets; k++) {
        if (!targets[k])
            return cst_comm_fail(c, COSET_ERR_CORRUPT, -1, op->sequence,
                                 "a rank gave a result buffer that is not in its memory");
        to[k] = (char *)targets[k] + (range.begin - target_shift) * size;
    }
    unsigned divide = call->op == COSET_AVG ? (unsigned)c->size : 1;
    cst_reduce(call->dtype, call->op, to, ntargets, from, c->size, cst_range_size(range), divide, flags);
    return COSET_OK;
}

static coset_status allreduce(coset_comm *c, const cst_operation *op)
{
    cst_range range = cst_chunk(op->call.count, c->size, c->rank);
    void *targets[CST_SHARED_RANKS];
    for (int k = 0; k < c->size; k++)
        targets[k] = cst_shared_target(c, op, (c->rank + k) % c->size);
    size_t size = coset_dtype_size(op->call.dtype), total = op->call.count * size, mine = cst_range_size(range) * size;
    c->direct_sent += (total - mine) + mine * (size_t)(c->size - 1);
    c->direct_received += mine * (size_t)(c->size - 1) + (total - mine);
    if (!mine)
        return COSET_OK;
    return sum_slice(c, op, range, targets, c->size, 0, store_flags(c, op, total));
}

static coset_status reduce(coset_comm *c, const cst_operation *op)
{
    cst_range range = cst_chunk(op->call.count, c->size, c->rank);
    void *target = cst_shared_target(c, op, op->call.root);
    size_t size = coset_dtype_size(op->call.dtype);
    size_t total = op->call.count * size, mine = cst_range_size(range) * size;
    int root = c->rank == op->call.root;
    c->direct_sent += total - mine + (root ? 0 : mine);
    c->direct_received += mine * (size_t)(c->size - 1) + (root ? total - mine : 0);
    return cst_range_size(range) ? sum_slice(c, op, range, &target, 1, 0, 0) : COSET_OK;
}

static coset_status reduce_scatter(coset_comm *c, const cst_operation *op)
{
    size_t begin = (size_t)c->rank * op->call.count;
    void *target = op->call.recv;
    c->direct_sent +=
        cst_call_send_bytes(&op->call, c->rank, c->size) - op->call.count * coset_dtype_size(op->call.dtype);
    c->direct_received += op->call.count * coset_dtype_size(op->call.dtype) * (size_t)(c->size - 1);
    return sum_slice(c, op, (cst_range){begin, begin + op->call.count}, &target, 1, begin, 0);
}

/* Copies `bytes` at `offset` of rank r's send buffer to `to`. */
static coset_status fetch(coset_comm *c, const cst_operation *op, int r, size_t offset, char *to, size_t bytes)
{
    const char *from = cst_shared_source(c, op, r);
    if (!from)
        return cst_comm_fail(c, COSET_ERR_CORRUPT, r, op->sequence, "rank %d gave a buffer that is not in its memory",
                             r);
    if (from + offset != to)
        memcpy(to, from + offset, bytes);
    return COSET_OK;
}

coset_status cst_direct_work(coset_comm *c, const cst_operation *op)
{
    const cst_call *call = &op->call;
    size_t block = cst_call_block_bytes(call);
    coset_status status = COSET_OK;
    switch (call->kind) {
    case CST_ALLREDUCE: return allreduce(c, op);
    case CST_REDUCE: return reduce(c, op);
    case CST_REDUCE_SCATTER: return reduce_scatter(c, op);
    case CST_BROADCAST:
        c->direct_sent += c->rank == call->root ? block * (size_t)(c->size - 1) : 0;
        c->direct_received += c->rank == call->root ? 0 : block;
        return fetch(c, op, call->root, 0, call->recv, block);
    case CST_ALLGATHER:
    case CST_ALLTOALL:
        /* start at the own rank: all ranks read from different ones at any time */
        for (int i = 0; i < c->size && status == COSET_OK; i++) {
            int r = (c->rank + i) % c->size;
            size_t offset = call->kind == CST_ALLTOALL ? (size_t)c->rank * block : 0;
            status = fetch(c, op, r, offset, (char *)call->recv + (size_t)r * block, block);
        }
        c->direct_sent += block * (size_t)(c->size - 1);
        c->direct_received += block * (size_t)(c->size - 1);
        return status;
    default: return COSET_OK;
    }
}
