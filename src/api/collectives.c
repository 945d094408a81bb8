/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives and the point-to-point calls, blocking and not: check, then hand on. */
#include "api/check.h"
#include "coll/collective.h"

static coset_status run(const cst_call *call, coset_comm *comm)
{
    coset_status status = cst_check_comm(comm);
    if (status == COSET_OK)
        status = cst_check_call(comm, call);
    if (status != COSET_OK)
        return status;
    cst_operation op;
    cst_coll_prepare(comm, call, &op);
    return cst_comm_run(comm, &op);
}

static coset_status start(const cst_call *call, coset_comm *comm, coset_request **request)
{
    if (!request)
        return COSET_ERR_ARGUMENT;
    coset_status status = cst_check_comm(comm);
    if (status == COSET_OK)
        status = cst_check_call(comm, call);
    if (status != COSET_OK)
        return status;
    cst_operation op;
    cst_coll_prepare(comm, call, &op);
    return cst_comm_start(comm, &op, request);
}

static cst_call make(cst_kind kind, const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op,
                     int root)
{
    return (cst_call){.kind = kind, .dtype = dtype, .op = op, .root = root, .count = count, .send = send, .recv = recv};
}

coset_status coset_allreduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op,
                             coset_comm *comm)
{
    cst_call call = make(CST_ALLREDUCE, send, recv, count, dtype, op, -1);
    return run(&call, comm);
}

coset_status coset_iallreduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op,
                              coset_comm *comm, coset_request **request)
{
    cst_call call = make(CST_ALLREDUCE, send, recv, count, dtype, op, -1);
    return start(&call, comm, request);
}

coset_status coset_reduce_scatter(const void *send, void *recv, size_t recvcount, coset_dtype dtype, coset_op op,
                                  coset_comm *comm)
{
    cst_call call = make(CST_REDUCE_SCATTER, send, recv, recvcount, dtype, op, -1);
    return run(&call, comm);
}

coset_status coset_ireduce_scatter(const void *send, void *recv, size_t recvcount, coset_dtype dtype, coset_op op,
                                   coset_comm *comm, coset_request **request)
{
    cst_call call = make(CST_REDUCE_SCATTER, send, recv, recvcount, dtype, op, -1);
    return start(&call, comm, request);
}

coset_status coset_allgather(const void *send, void *recv, size_t sendcount, coset_dtype dtype, coset_comm *comm)
{
    cst_call call = make(CST_ALLGATHER, send, recv, sendcount, dtype, COSET_SUM, -1);
    return run(&call, comm);
}

coset_status coset_iallgather(const void *send, void *recv, size_t sendcount, coset_dtype dtype, coset_comm *comm,
                              coset_request **request)
{
    cst_call call = make(CST_ALLGATHER, send, recv, sendcount, dtype, COSET_SUM, -1);
    return start(&call, comm, request);
}

coset_status coset_alltoall(const void *send, void *recv, size_t count_per_peer, coset_dtype dtype, coset_comm *comm)
{
    cst_call call = make(CST_ALLTOALL, send, recv, count_per_peer, dtype, COSET_SUM, -1);
    return run(&call, comm);
}

coset_status coset_ialltoall(const void *send, void *recv, size_t count_per_peer, coset_dtype dtype, coset_comm *comm,
                             coset_request **request)
{
    cst_call call = make(CST_ALLTOALL, send, recv, count_per_peer, dtype, COSET_SUM, -1);
    return start(&call, comm, request);
}

coset_status coset_broadcast(const void *send, void *recv, size_t count, coset_dtype dtype, int root, coset_comm *comm)
{
    cst_call call = make(CST_BROADCAST, send, recv, count, dtype, COSET_SUM, root);
    return run(&call, comm);
}

coset_status coset_ibroadcast(const void *send, void *recv, size_t count, coset_dtype dtype, int root, coset_comm *comm,
                              coset_request **request)
{
    cst_call call = make(CST_BROADCAST, send, recv, count, dtype, COSET_SUM, root);
    return start(&call, comm, request);
}

coset_status coset_reduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op, int root,
                          coset_comm *comm)
{
    cst_call call = make(CST_REDUCE, send, recv, count, dtype, op, root);
    return run(&call, comm);
}

coset_status coset_ireduce(const void *send, void *recv, size_t count, coset_dtype dtype, coset_op op, int root,
                           coset_comm *comm, coset_request **request)
{
    cst_call call = make(CST_REDUCE, send, recv, count, dtype, op, root);
    return start(&call, comm, request);
}

coset_status coset_barrier(coset_comm *comm)
{
    cst_call call = make(CST_BARRIER, NULL, NULL, 0, COSET_U8, COSET_SUM, -1);
    return run(&call, comm);
}

coset_status coset_ibarrier(coset_comm *comm, coset_request **request)
{
    cst_call call = make(CST_BARRIER, NULL, NULL, 0, COSET_U8, COSET_SUM, -1);
    return start(&call, comm, request);
}

coset_status coset_send(const void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm)
{
    cst_call call = make(CST_SEND, buffer, NULL, count, dtype, COSET_SUM, peer);
    return run(&call, comm);
}

coset_status coset_isend(const void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm,
                         coset_request **request)
{
    cst_call call = make(CST_SEND, buffer, NULL, count, dtype, COSET_SUM, peer);
    return start(&call, comm, request);
}

coset_status coset_recv(void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm)
{
    cst_call call = make(CST_RECV, NULL, buffer, count, dtype, COSET_SUM, peer);
    return run(&call, comm);
}

coset_status coset_irecv(void *buffer, size_t count, coset_dtype dtype, int peer, coset_comm *comm,
                         coset_request **request)
{
    cst_call call = make(CST_RECV, NULL, buffer, count, dtype, COSET_SUM, peer);
    return start(&call, comm, request);
}
