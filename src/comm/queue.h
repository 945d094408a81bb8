/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait for their turn, and their requests: collectives in the order of their numbers, sends and receives
 * apart. Lists only; who moves the operations on is drive.c's business. Any thread, unless said otherwise.
 */
#ifndef CST_COMM_QUEUE_H
#define CST_COMM_QUEUE_H
#include "comm/comm.h"
#include "comm/request.h"

/* The ticket (cst_queue): operations queued, the bit of the driver, one number. */
#define CST_TICKET_QUEUED UINT64_C(0xffff)
#define CST_TICKET_DRIVER (CST_TICKET_QUEUED + 1)
#define CST_TICKET_STEP   (CST_TICKET_DRIVER << 1)

static inline int cst_is_pairwise(const cst_operation *op)
{
    return op->call.kind == CST_SEND || op->call.kind == CST_RECV;
}

static inline int cst_queued(const coset_comm *c)
{
    return (int)(atomic_load(&c->queue.ticket) & CST_TICKET_QUEUED);
}

static inline int cst_driven(const coset_comm *c)
{
    return (atomic_load(&c->queue.ticket) & CST_TICKET_DRIVER) != 0;
}

/* A copy of *op with the next number, at the end of its list; wakes the driver. MEMORY: none left, or too many queued. */
coset_status cst_queue_add(coset_comm *c, const cst_operation *op, coset_request **out);
/* The collective that is under way; NULL: none. */
cst_operation *cst_queue_head(coset_comm *c);
/* The send or receive after `op`, which NULL stands before; NULL: none. */
cst_operation *cst_queue_next_pairwise(coset_comm *c, const cst_operation *op);
/* The driver only: takes an operation that has ended out of its list. */
void cst_queue_drop_head(coset_comm *c);
void cst_queue_remove_pairwise(coset_comm *c, cst_operation *op);
/* The driver only: the request of an operation that is in no list any more becomes the waiter's, who may free it. */
void cst_queue_hand_over(coset_comm *c, coset_request *r, coset_status status);
/* Frees every request. Nobody may use one any more. */
void cst_queue_drop_requests(coset_comm *c);
#endif
