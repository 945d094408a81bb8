/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/limits.h"

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
static const group_files version1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const group_files version2 = {"memory.max", "memory.current", "inactive_file "};

static size_t group_room(const char *directory, const group_files *names)
{
    char path[768];
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

/* The least room in the group at `path` below `mount` and the groups around it. */
static size_t groups_room(const char *mount, char *path, const group_files *names)
{
    size_t least = SIZE_MAX;
    for (;;) {
        char directory[640];
        snprintf(directory, sizeof directory, "%s%s", mount, path);
        size_t room = group_room(directory, names);
        least = room < least ? room : least;
        char *slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* A line of /proc/self/cgroup is number:controllers:path; version 2 has number 0 and no controllers. */
static size_t cgroup_room(void)
{
    char line[512];
    size_t least = SIZE_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        size_t room = SIZE_MAX;
        if (!strcmp(line, "0"))
            room = groups_room("/sys/fs/cgroup", path, &version2);
        else if (!strcmp(controllers + 1, "memory"))
            room = groups_room("/sys/fs/cgroup/memory", path, &version1);
        least = room < least ? room : least;
    }
    if (f)
        fclose(f);
    return least;
}

size_t cst_memory_room(const char **where)
{
    size_t host = host_room(), group = cgroup_room();
    *where = group < host ? "the control group's limit" : "the host's memory";
    return group < host ? group : host;
}
