/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/call.h"

const char *cst_kind_name(int kind)
{
    static const char *const names[] = {
        [CST_ALLREDUCE] = "allreduce", [CST_REDUCE_SCATTER] = "reduce_scatter", [CST_ALLGATHER] = "allgather",
        [CST_ALLTOALL] = "alltoall",   [CST_BROADCAST] = "broadcast",           [CST_REDUCE] = "reduce",
        [CST_BARRIER] = "barrier",     [CST_SEND] = "send",                     [CST_RECV] = "recv",
        [CST_ALLOC] = "alloc",         [CST_FREE] = "free",                     [CST_SPLIT] = "split",
        [CST_BAD_CALL] = "call with wrong arguments",
    };
    return kind > 0 && (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static size_t elements(const cst_call *call, int blocks)
{
    return call->count * (size_t)blocks * coset_dtype_size(call->dtype);
}

size_t cst_call_send_bytes(const cst_call *call, int rank, int size)
{
    switch (call->kind) {
    case CST_ALLREDUCE: case CST_ALLGATHER: case CST_REDUCE: case CST_SEND: return elements(call, 1);
    case CST_REDUCE_SCATTER: case CST_ALLTOALL: return elements(call, size);
    case CST_BROADCAST: return rank == call->root ? elements(call, 1) : 0;
    default: return 0;
    }
}

size_t cst_call_recv_bytes(const cst_call *call, int rank, int size)
{
    switch (call->kind) {
    case CST_ALLREDUCE: case CST_REDUCE_SCATTER: case CST_BROADCAST: case CST_RECV: return elements(call, 1);
    case CST_ALLGATHER: case CST_ALLTOALL: return elements(call, size);
    case CST_REDUCE: return rank == call->root ? elements(call, 1) : 0;
    default: return 0;
    }
}
