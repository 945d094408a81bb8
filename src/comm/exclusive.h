/* SPDX-License-Identifier: Apache-2.0 */
/* Collective calls about the communicator itself (alloc, free, split): in the order of all other operations, but run to
 * their end by the thread that calls them, with messages of their own. */
#ifndef CST_COMM_EXCLUSIVE_H
#define CST_COMM_EXCLUSIVE_H
#include "comm/comm.h"

/* Runs body(c, sequence, arg) as operation `kind` with `count` (which ranks must agree on) once every rank has entered. */
coset_status cst_comm_exclusive(coset_comm *c, cst_kind kind, size_t count,
                                coset_status (*body)(coset_comm *c, uint64_t sequence, void *arg), void *arg);
#endif
