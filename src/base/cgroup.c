/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The group at `path` below `mount` and those around it; inside a container the mount itself may be the group. */
static void climb(const char *mount, char *path, int version, cst_cgroup_fn *fn, void *ctx)
{
    for (;;) {
        char directory[4400];
        snprintf(directory, sizeof directory, "%s%s", mount, strcmp(path, "/") ? path : "");
        fn(ctx, directory, version);
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

/* Is `name` one of the names in `list`, which has commas between? */
static bool is_listed(const char *list, const char *name)
{
    for (size_t n = strlen(name); *list; list += strcspn(list, ","), list += *list == ',')
        if (!strncmp(list, name, n) && (!list[n] || list[n] == ','))
            return true;
    return false;
}

/* Lines of /proc/self/cgroup are "number:controllers:path"; version 2 has no controllers. */
void cst_cgroup_each(const char *controller, cst_cgroup_fn *fn, void *ctx)
{
    char line[4300], mount[64];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        controllers++;
        snprintf(mount, sizeof mount, "/sys/fs/cgroup/%.40s", controller);
        if (!*controllers)
            climb("/sys/fs/cgroup", path, 2, fn, ctx);
        else if (is_listed(controllers, controller))
            climb(mount, path, 1, fn, ctx);
    }
    if (f)
        fclose(f);
}
