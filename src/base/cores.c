/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cores.h"

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

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(line, (int)size, f);
    fclose(f);
    return got;
}

static int smaller_limit(int a, int b)
{
    return b > 0 && (a == 0 || b < a) ? b : a;
}

/* The tightest limit of a version 2 cgroup and those above it; 0: none. */
static int limit_v2(const char *group)
{
    char dir[4096], path[4200], line[64];
    int limit = 0;
    if (strlen(group) >= sizeof dir)
        return 0;
    strcpy(dir, group);
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", dir);
        if (read_line(path, line, sizeof line))
            limit = smaller_limit(limit, cst_cores_of_quota(line));
        char *slash = strrchr(dir, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

static int limit_v1(const char *group)
{
    char path[4200], quota[32], period[32], line[80];
    for (int own = 1; own >= 0; own--) { /* inside a container the group is mounted at the root */
        snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%.4000s/cpu.cfs_quota_us", own ? group : "");
        if (!read_line(path, quota, sizeof quota))
            continue;
        snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%.4000s/cpu.cfs_period_us", own ? group : "");
        if (!read_line(path, period, sizeof period))
            continue;
        snprintf(line, sizeof line, "%.30s %.30s", quota, period);
        return smaller_limit(0, cst_cores_of_quota(line));
    }
    return 0;
}

/* Lines of /proc/self/cgroup are "number:controllers:path"; version 2 has no controllers. */
static int limit_of_cgroups(void)
{
    char line[4300];
    int limit = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        controllers++;
        if (!*controllers)
            limit = smaller_limit(limit, limit_v2(strcmp(path, "/") ? path : ""));
        else if (!strcmp(controllers, "cpu") || !strcmp(controllers, "cpu,cpuacct"))
            limit = smaller_limit(limit, limit_v1(strcmp(path, "/") ? path : ""));
    }
    if (f)
        fclose(f);
    return limit;
}

int cst_cores_of_host(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int cores = online > 0 ? (int)online : 1, limit = limit_of_cgroups();
    return limit > 0 && limit < cores ? limit : cores;
}
