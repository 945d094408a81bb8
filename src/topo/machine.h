/* SPDX-License-Identifier: Apache-2.0 */
/* This host's packages, cores, caches and NUMA nodes, for `coset info` and for people who look for the slow part. Takes
 * some milliseconds: not for the creation of communicators. */
#ifndef CST_TOPO_MACHINE_H
#define CST_TOPO_MACHINE_H
#include <stdint.h>

typedef struct {
    const char *source;                       /* "hwloc" or "sysconf" */
    int packages, cores, threads, numa_nodes; /* 0: unknown */
    uint64_t l2_bytes, l3_bytes;              /* of one core; 0: unknown */
    int numa_node; /* the node that all cores of this process belong to, -1 if there are several */
} cst_machine;

void cst_machine_look(cst_machine *out);
#endif
