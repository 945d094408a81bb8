/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cores.h"

#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More is no limit. */
#define MOST_CORES 8192

int cst_cores_of_quota(const char *line)
{
    long long quota, period;
    if (!strncmp(line, "max", 3))
        return 0;
    if (sscanf(line, "%lld %lld", &quota, &period) != 2 || period <= 0 || quota == 0)
        return -1;
    if (quota < 0) /* version 1 writes -1 for no limit */
        return 0;
    long long cores = quota / period;
    return cores < 1 ? 1 : cores > MOST_CORES ? MOST_CORES : (int)cores;
}

static bool read_line(const char *directory, const char *file, char *line, size_t size)
{
    char path[4500];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *f = fopen(path, "re");
    bool got = f && fgets(line, (int)size, f);
    if (f)
        fclose(f);
    return got;
}

/* *limit = the group's, if it is tighter; 0: none so far. Version 1 has quota and period in files of their own. */
static void tighten(void *ctx, const char *directory, int version)
{
    int *limit = ctx;
    char line[80] = "", quota[32], period[32];
    if (version == 2)
        read_line(directory, "cpu.max", line, sizeof line);
    else if (read_line(directory, "cpu.cfs_quota_us", quota, sizeof quota) &&
             read_line(directory, "cpu.cfs_period_us", period, sizeof period))
        snprintf(line, sizeof line, "%s %s", quota, period);
    int cores = cst_cores_of_quota(line);
    if (cores > 0 && (*limit == 0 || cores < *limit))
        *limit = cores;
}

int cst_cores_of_host(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int cores = online > 0 ? (int)online : 1, limit = 0;
    cst_cgroup_each("cpu", tighten, &limit);
    return limit > 0 && limit < cores ? limit : cores;
}
