/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce of long vectors in ordinary memory between processes of one host, in two ways:
 *
 *   copying  the kernel copies between the processes (process_vm_readv and _writev): each rank fetches the others' parts
 *            of its slice, sums, and puts the result into their memory. No synchronisation inside.
 *   staging  a pipeline through shared memory of three pieces per rank: give piece k to the others, sum the own share of
 *            piece k-1, take piece k-2. No barrier at either end.
 *
 * Both keep the rank order of sums.
 */
#ifndef CST_COLL_BULK_H
#define CST_COLL_BULK_H
#include "comm/comm.h"

/* Which of the two; the same on every rank. */
bool cst_bulk_by_copying(const coset_comm *c, const cst_operation *op);
coset_status cst_bulk_copy_work(coset_comm *c, const cst_operation *op);

/* Staging: begin makes op->state (and, the first time on a communicator, the staging memory: blocking). */
coset_status cst_bulk_begin(coset_comm *c, cst_operation *op);
coset_status cst_bulk_step(coset_comm *c, cst_operation *op);
void cst_bulk_end(cst_operation *op);
#endif
