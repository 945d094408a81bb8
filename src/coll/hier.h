/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hier: all-reduce on groups of ranks that share hosts. Inside each host the vector is reduced in L pieces, L being the
 * fewest ranks that any host has, piece k onto the host's k-th rank; the k-th ranks of all hosts all-reduce piece k, all
 * L groups at once; inside each host piece k is broadcast. So the link between two hosts carries every element once in
 * each direction and all ranks of a host that can take part in that do. Three groups: world, node, cross.
 */
#ifndef CST_COLL_HIER_H
#define CST_COLL_HIER_H
#include "comm/comm.h"

/* Is it possible here (several hosts, one of them with several ranks)? */
int cst_hier_possible(const coset_comm *c);
/* From so many bytes on `auto` takes it, where it is possible: below, the three phases' latency weighs more than the bytes
 * that they keep off the network. */
#define CST_HIER_BYTES ((size_t)64 << 10)
/* Should this call go that way: asked for by name, or worth it? */
int cst_hier_wanted(const coset_comm *c, const cst_call *call);
/* Runs it to its end: blocks, as the groups' own operations do. The groups are made when first needed. */
coset_status cst_hier_run(coset_comm *c, cst_operation *op);
/* A group's failure is everybody's: the ranks that wait in the other groups are told, and the whole group, with the rank that
 * is the cause as the whole group numbers it. `text` says why; if it is empty the groups' own errors do. A rank that was only
 * told waits, at most a second, to hear the cause. Returns the status that the whole group then has. */
coset_status cst_hier_fail(coset_comm *c, uint64_t sequence, coset_status status, const char *text);
#endif
