/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives where ranks share memory (transports threads and shm): every rank raises its entry flag, reads the
 * others' records, and from all records, the same on every rank, all take the same one of these paths:
 *
 *   flat    every send buffer is in its rank's slot: each rank makes its own result and leaves. No exit barrier.
 *   direct  the buffers are mapped: each rank does its share of the work on everybody's memory, then an exit barrier.
 *   bulk    an all-reduce of long vectors that are out of reach: through staging memory, or the system's copying between
 *           processes (bulk.c).
 *   message some buffer is out of reach, or an algorithm was asked for by name: a schedule of messages (run.c).
 *
 * The order of sums is the rank order in flat and direct.
 */
#ifndef CST_COLL_SHARED_H
#define CST_COLL_SHARED_H
#include "comm/comm.h"

/* Up to here, with a core for each rank, `auto` passes vectors through the slots (path flat). */
#define CST_SHARED_FLAT_BYTES ((size_t)512)

typedef enum { CST_PATH_UNDECIDED = 0, CST_PATH_FLAT, CST_PATH_DIRECT, CST_PATH_BULK, CST_PATH_MESSAGE } cst_path;

/* Most ranks on one host that the shared paths serve; beyond, messages do. Arrays of this size live on stacks. */
#define CST_SHARED_RANKS 256

/* Enters: cst_shared_enter with the limits of the flat path. */
coset_status cst_shared_begin(coset_comm *c, cst_operation *op);
/* From all records; the same on every rank. */
cst_path cst_shared_path(const coset_comm *c, const cst_operation *op);

/* The work of each path, without waiting. */
coset_status cst_flat_work(coset_comm *c, const cst_operation *op);
coset_status cst_direct_work(coset_comm *c, const cst_operation *op);
#endif
