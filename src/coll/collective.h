/* SPDX-License-Identifier: Apache-2.0 */
/* Turning a checked call into an operation that comm can drive. */
#ifndef CST_COLL_COLLECTIVE_H
#define CST_COLL_COLLECTIVE_H
#include "comm/comm.h"

/* Fills *op for cst_comm_run or cst_comm_start; chooses nothing yet (that takes all ranks' entries). */
void cst_coll_prepare(coset_comm *c, const cst_call *call, cst_operation *op);
/* Can this communicator do it (rank order, algorithm)? UNSUPPORTED with the reason noted. */
coset_status cst_coll_supported(coset_comm *c, const cst_call *call);
/* The arguments of this rank's call were wrong: the others must not wait for it. Uses up the operation's number. */
void cst_coll_announce_bad_call(coset_comm *c, const cst_call *call);
#endif
