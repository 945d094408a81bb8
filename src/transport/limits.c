/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/limits.h"

#include "base/cgroup.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The number after `key` at the head of a line of the file, or the file's only number if key is "". SIZE_MAX: none. */
static size_t read_number(const char *path, const char *key)
{
    char line[256];
    unsigned long long v;
    size_t found = SIZE_MAX, length = strlen(key);
    FILE *f = fopen(path, "re");
    while (f && found == SIZE_MAX && fgets(line, sizeof line, f))
        if (!strncmp(line, key, length) && sscanf(line + length, " %llu", &v) == 1)
            found = (size_t)v;
    if (f)
        fclose(f);
    return found;
}

static size_t host_room(void)
{
    size_t available = read_number("/proc/meminfo", "MemAvailable:"), swap = read_number("/proc/meminfo", "SwapFree:");
    if (available == SIZE_MAX)
        return SIZE_MAX;
    return (available + (swap == SIZE_MAX ? 0 : swap)) * 1024;
}

typedef struct {
    const char *limit, *usage, *cache_key; /* files of a control group, and the reclaimable part in its memory.stat */
} group_files;
static const group_files files_v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const group_files files_v2 = {"memory.max", "memory.current", "inactive_file "};

static size_t group_room(const char *directory, const group_files *names)
{
    char path[4500];
    snprintf(path, sizeof path, "%s/%s", directory, names->limit);
    size_t limit = read_number(path, "");
    snprintf(path, sizeof path, "%s/%s", directory, names->usage);
    size_t used = read_number(path, "");
    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    size_t cache = read_number(path, names->cache_key);
    if (cache != SIZE_MAX)
        used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 0;
}

/* *least = the group's room, if it is less. */
static void take_least(void *ctx, const char *directory, int version)
{
    size_t *least = ctx, room = group_room(directory, version == 2 ? &files_v2 : &files_v1);
    if (room < *least)
        *least = room;
}

size_t cst_memory_room(const char **where)
{
    size_t host = host_room(), group = SIZE_MAX;
    cst_cgroup_each("memory", take_least, &group);
    *where = group < host ? "the control group's limit" : "the host's memory";
    return group < host ? group : host;
}
