/* SPDX-License-Identifier: Apache-2.0 */
/* How many cores the ranks of this host have together: with fewer than ranks, one that spins keeps the core from the very
 * rank that it waits for. */
#ifndef CST_BASE_CORES_H
#define CST_BASE_CORES_H

/* The cores that are online, fewer if a cgroup's quota (either version, rounded down) says so; at least 1. Affinity masks
 * do not count: launchers bind each rank to a core of its own. Reads files: for creation, not for a call's path. */
int cst_cores_of_host(void);
/* Cores that a cgroup's "cpu.max" line allows ("150000 100000" -> 1, "max 100000" -> 0: no limit). -1: unreadable. */
int cst_cores_of_quota(const char *line);
#endif
