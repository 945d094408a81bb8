/* SPDX-License-Identifier: Apache-2.0 */
/* What a user asked for: one call on one rank, arguments already checked. */
#ifndef CST_COMM_CALL_H
#define CST_COMM_CALL_H
#include "base/dtype.h"

typedef enum {
    CST_ALLREDUCE = 1,
    CST_REDUCE_SCATTER,
    CST_ALLGATHER,
    CST_ALLTOALL,
    CST_BROADCAST,
    CST_REDUCE,
    CST_BARRIER,
    CST_SEND,
    CST_RECV,
    CST_ALLOC,
    CST_FREE,
    CST_SPLIT,
    CST_MEAN,     /* the compressed mean by hosts (mean/hosts.h) */
    CST_BAD_CALL, /* announced by a rank whose arguments were wrong, so that the others do not wait for it */
} cst_kind;

/* "allreduce"; "?" for a value that is none (records come from other processes). */
const char *cst_kind_name(int kind);

/* count is what the public call takes: for reduce-scatter the received, for all-gather the sent, for all-to-all the
 * per-peer elements. root is the peer of a send or receive. */
typedef struct {
    cst_kind kind;
    coset_dtype dtype;
    coset_op op;
    int root;
    int algorithm; /* enum cst_algo of coll/select.h; compared between ranks, not understood here */
    size_t count;
    const void *send;
    void *recv;
} cst_call;

/* Bytes of the send and receive buffers of a call on a group of `size`, on rank `rank` (0 where the rank has none).
 * Inline: on the path of every operation. */
static inline size_t cst_call_block_bytes(const cst_call *call)
{
    return call->count * cst_dtype_bytes[call->dtype];
}

static inline size_t cst_call_send_bytes(const cst_call *call, int rank, int size)
{
    switch (call->kind) {
    case CST_ALLREDUCE:
    case CST_ALLGATHER:
    case CST_REDUCE:
    case CST_SEND: return cst_call_block_bytes(call);
    case CST_REDUCE_SCATTER:
    case CST_ALLTOALL: return cst_call_block_bytes(call) * (size_t)size;
    case CST_BROADCAST: return rank == call->root ? cst_call_block_bytes(call) : 0;
    default: return 0;
    }
}

static inline size_t cst_call_recv_bytes(const cst_call *call, int rank, int size)
{
    switch (call->kind) {
    case CST_ALLREDUCE:
    case CST_REDUCE_SCATTER:
    case CST_BROADCAST:
    case CST_RECV: return cst_call_block_bytes(call);
    case CST_ALLGATHER:
    case CST_ALLTOALL: return cst_call_block_bytes(call) * (size_t)size;
    case CST_REDUCE: return rank == call->root ? cst_call_block_bytes(call) : 0;
    default: return 0;
    }
}
#endif
