/* SPDX-License-Identifier: Apache-2.0 */
/* Who shares a host with whom. Hosts are numbered in the order of their lowest rank, ranks of a host in rank order, so
 * every rank computes the same. */
#ifndef CST_TOPO_HOSTS_H
#define CST_TOPO_HOSTS_H
#include "topo/place.h"

#include <stdbool.h>

typedef struct {
    int size, count; /* ranks, hosts */
    int *host;       /* [size] the rank's host, 0..count-1 */
    int *local;      /* [size] the rank's number on its host */
    int *local_size; /* [count] ranks of the host */
    int *leader;     /* [count] lowest rank of the host */
    bool uniform;    /* every host has as many ranks as the others */
    bool blocks;     /* the ranks of every host are consecutive */
} cst_hosts;

/* From the places of all ranks, in rank order. Returns 0, or -1 without memory. */
int cst_hosts_build(cst_hosts *out, const cst_place *places, int size);
void cst_hosts_free(cst_hosts *hosts);
#endif
