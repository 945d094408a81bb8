/* SPDX-License-Identifier: Apache-2.0 */
/* What others need to know about where this process runs. No pointers: it is gathered as bytes. */
#ifndef CST_TOPO_PLACE_H
#define CST_TOPO_PLACE_H
#include "base/host.h"

#include <stdint.h>

typedef struct {
    char host[CST_HOST_ID_BYTES]; /* identity: equal on two ranks that can share memory */
    char name[64];                /* the host's name, for people */
    int32_t cores;                /* cores that this process may use */
    int32_t pid;
} cst_place;

void cst_place_self(cst_place *out);

/* Cores that this process may use, at least 1: the smaller of its affinity mask and its cgroup's quota (rounded down),
 * either version of cgroups. */
int cst_cores_usable(void);
/* Cores that a cgroup's "cpu.max" line allows ("150000 100000" -> 1, "max 100000" -> 0: no limit). -1: unreadable. */
int cst_cores_of_quota(const char *line);
#endif
