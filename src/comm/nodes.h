/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks share a host, and the two groups made from it. */
#ifndef CST_COMM_NODES_H
#define CST_COMM_NODES_H
#include <coset.h>
#include <stddef.h>

typedef struct {
    int *node_of; /* node of each rank; nodes are numbered by their lowest rank */
    int *local;   /* number of each rank among those of its node */
    int nodes;
    int most, fewest;  /* ranks on a node */
    coset_comm *node;  /* ranks of the own node; NULL until made */
    coset_comm *cross; /* ranks with the own local number; NULL until made, and where local >= fewest */
    int made;
    void *room; /* memory of the node group in which means are made (mean/hosts.c); NULL until needed */
    size_t room_bytes;
} cst_nodes;

/* `identity(ctx, rank)` names the host of a rank. MEMORY. */
coset_status cst_nodes_find(cst_nodes *n, int size, const char *(*identity)(const void *ctx, int rank),
                            const void *ctx);
/* Destroys the groups, too. */
void cst_nodes_free(cst_nodes *n);
/* Makes node and cross, collectively, as part of operation `sequence` of `c`. Nothing to do if they are there. */
coset_status cst_nodes_make(coset_comm *c, uint64_t sequence);
#endif
