/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/fork.h"
#include "coll/collective.h"

#include <stdint.h>

coset_status cst_check_comm(const coset_comm *comm)
{
    if (!comm)
        return COSET_ERR_ARGUMENT;
    if (comm->fork_generation != cst_fork_generation())
        return COSET_ERR_UNSUPPORTED;
    return COSET_OK;
}

static int reduces(cst_kind kind)
{
    return kind == CST_ALLREDUCE || kind == CST_REDUCE || kind == CST_REDUCE_SCATTER;
}

/* The largest buffer of the call must fit in the address space. */
static int size_overflows(const coset_comm *c, const cst_call *call)
{
    size_t bytes;
    return !cst_size_mul(call->count, cst_dtype_bytes[call->dtype], &bytes) ||
           !cst_size_mul(bytes, (size_t)c->size, &bytes) || bytes > SIZE_MAX / 2;
}

/* NULL, or what is wrong with how the buffers lie. */
static const char *buffers_wrong(const coset_comm *c, const cst_call *call)
{
    size_t sends = cst_call_send_bytes(call, c->rank, c->size), receives = cst_call_recv_bytes(call, c->rank, c->size);
    if (sends && !call->send)
        return "send is NULL";
    if (receives && !call->recv)
        return "recv is NULL";
    if (!sends || !receives)
        return NULL;
    uintptr_t s = (uintptr_t)call->send, r = (uintptr_t)call->recv;
    size_t block = cst_call_block_bytes(call), shift = (size_t)c->rank * block;
    if (s >= r + receives || r >= s + sends)
        return NULL;
    switch (call->kind) {
    case CST_REDUCE_SCATTER:
        return r == s + shift ? NULL : "send and recv overlap; in place means recv == send + rank * recvcount elements";
    case CST_ALLGATHER:
        return s == r + shift ? NULL : "send and recv overlap; in place means send == recv + rank * sendcount elements";
    case CST_ALLTOALL: return "send and recv overlap; all-to-all does not work in place";
    default: return s == r ? NULL : "send and recv overlap; in place means send == recv";
    }
}

static coset_status check(coset_comm *c, const cst_call *call)
{
    const char *name = cst_kind_name((int)call->kind);
    int pairwise = call->kind == CST_SEND || call->kind == CST_RECV;
    if (!cst_dtype_valid((int)call->dtype))
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: %d is no dtype", name, (int)call->dtype);
    if (reduces(call->kind) && !cst_op_valid((int)call->op))
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: %d is no operator", name, (int)call->op);
    if ((call->kind == CST_BROADCAST || call->kind == CST_REDUCE || pairwise) &&
        (call->root < 0 || call->root >= c->size))
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: %s %d is no rank of this group of %d", name,
                             pairwise ? "peer" : "root", call->root, c->size);
    if (pairwise && call->root == c->rank)
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: rank %d is the caller itself", name, call->root);
    if (size_overflows(c, call))
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: %zu elements of %s are more than memory can hold", name,
                             call->count, coset_dtype_name(call->dtype));
    const char *wrong = buffers_wrong(c, call);
    if (wrong)
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "%s: %s", name, wrong);
    return cst_coll_supported(c, call);
}

coset_status cst_check_call(coset_comm *c, const cst_call *call)
{
    coset_status status = check(c, call);
    if (status != COSET_OK && call->kind != CST_SEND && call->kind != CST_RECV)
        cst_coll_announce_bad_call(c, call);
    return status;
}
