/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of this process, of either version. */
#ifndef CST_BASE_CGROUP_H
#define CST_BASE_CGROUP_H

/* `directory` holds the files of one group and lives as long as the call. */
typedef void cst_cgroup_fn(void *ctx, const char *directory, int version);

/* Calls fn for the group that `controller` ("cpu", "memory") has put this process in and for every group around it: each
 * may have a limit. Where the groups cannot be read fn is not called. */
void cst_cgroup_each(const char *controller, cst_cgroup_fn *fn, void *ctx);
#endif
