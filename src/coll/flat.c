/* SPDX-License-Identifier: Apache-2.0 */
/* flat: every rank's data is in its slot; each rank makes its own result from all of them. */
#include "coll/patterns/chunk.h"
#include "coll/shared.h"
#include "kernels/reduce/reduce.h"

#include <string.h>

/* Sums elements [begin, begin + count) of every rank's data into `to`. */
static void sum_all(const coset_comm *c, const cst_operation *op, size_t begin, size_t count, void *to)
{
    const cst_call *call = &op->call;
    const void *from[CST_SHARED_RANKS];
    size_t offset = begin * cst_dtype_bytes[call->dtype];
    for (int r = 0; r < c->size; r++)
        from[r] = (const char *)cst_shared_source(c, op, r) + offset;
    unsigned divide = call->op == COSET_AVG ? (unsigned)c->size : 1;
    cst_reduce(call->dtype, call->op, &to, 1, from, c->size, count, divide, 0);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memmove(to, from, bytes); /* in place, the own block may be where it belongs */
}

/* Bytes of this rank's slot that the others read. */
static size_t read_by_others(const coset_comm *c, const cst_call *call, size_t block)
{
    size_t others = (size_t)c->size - 1;
    switch (call->kind) {
    case CST_ALLREDUCE:
    case CST_ALLGATHER:
    case CST_ALLTOALL:
    case CST_REDUCE_SCATTER: return block * others; /* of the last two each reads its own block */
    case CST_BROADCAST: return c->rank == call->root ? block * others : 0;
    case CST_REDUCE: return c->rank == call->root ? 0 : block;
    default: return 0;
    }
}

/* Bytes of the others' slots that this rank reads. */
static size_t read_of_others(const coset_comm *c, const cst_call *call, size_t block)
{
    size_t others = (size_t)c->size - 1;
    switch (call->kind) {
    case CST_ALLREDUCE:
    case CST_ALLGATHER:
    case CST_ALLTOALL:
    case CST_REDUCE_SCATTER: return block * others;
    case CST_BROADCAST: return c->rank == call->root ? 0 : block;
    case CST_REDUCE: return c->rank == call->root ? block * others : 0;
    default: return 0;
    }
}

coset_status cst_flat_work(coset_comm *c, const cst_operation *op)
{
    const cst_call *call = &op->call;
    size_t block = cst_call_block_bytes(call);
    char *recv = call->recv;
    switch (call->kind) {
    case CST_ALLREDUCE: sum_all(c, op, 0, call->count, recv); break;
    case CST_REDUCE:
        if (c->rank == call->root)
            sum_all(c, op, 0, call->count, recv);
        break;
    case CST_REDUCE_SCATTER: sum_all(c, op, (size_t)c->rank * call->count, call->count, recv); break;
    case CST_ALLGATHER:
        for (int r = 0; r < c->size; r++)
            copy(recv + (size_t)r * block, cst_shared_source(c, op, r), block);
        break;
    case CST_ALLTOALL:
        for (int r = 0; r < c->size; r++)
            copy(recv + (size_t)r * block, (const char *)cst_shared_source(c, op, r) + (size_t)c->rank * block, block);
        break;
    case CST_BROADCAST: copy(recv, cst_shared_source(c, op, call->root), block); break;
    default: break; /* a barrier is over when all have entered */
    }
    c->direct_sent += read_by_others(c, call, block);
    c->direct_received += read_of_others(c, call, block);
    return COSET_OK;
}
