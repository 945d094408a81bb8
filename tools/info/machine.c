/* SPDX-License-Identifier: Apache-2.0 */
#include "info/machine.h"

#include "common/program.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The first line of a file, without its end; false if it cannot be read. */
static bool first_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(line, size, f);
    if (f)
        fclose(f);
    if (got)
        line[strcspn(line, "\n")] = 0;
    return got;
}

/* "always [madvise] never" -> "madvise" */
static void keep_chosen(char *line)
{
    char *from = strchr(line, '['), *to = from ? strchr(from, ']') : NULL;
    if (to) {
        *to = 0;
        memmove(line, from + 1, strlen(from + 1) + 1);
    }
}

static void add_text(cJSON *to, const char *key, const char *path)
{
    char line[256];
    if (first_line(path, line, sizeof line)) {
        keep_chosen(line);
        cJSON_AddStringToObject(to, key, line);
    } else {
        cJSON_AddNullToObject(to, key);
    }
}

static void add_number(cJSON *to, const char *key, const char *path)
{
    char line[64];
    if (first_line(path, line, sizeof line))
        cJSON_AddNumberToObject(to, key, atof(line));
    else
        cJSON_AddNullToObject(to, key);
}

static void add_processor(cJSON *to)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256], *value = NULL;
    while (f && !value && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && (value = strstr(line, ": ")))
            value[strcspn(value, "\n")] = 0;
    if (f)
        fclose(f);
    if (value)
        cJSON_AddStringToObject(to, "processor", value + 2);
    else
        cJSON_AddNullToObject(to, "processor");
}

void machine_facts(cJSON *facts)
{
    cpu_set_t allowed;
    struct statvfs shm;
    add_processor(facts);
    if (!sched_getaffinity(0, sizeof allowed, &allowed))
        cJSON_AddNumberToObject(facts, "cores_allowed", CPU_COUNT(&allowed));
    else
        cJSON_AddNullToObject(facts, "cores_allowed");
    cJSON_AddNumberToObject(facts, "memory_bytes", (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
    if (!statvfs("/dev/shm", &shm))
        cJSON_AddNumberToObject(facts, "shm_bytes", (double)shm.f_blocks * (double)shm.f_frsize);
    else
        cJSON_AddNullToObject(facts, "shm_bytes");
    add_text(facts, "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    add_text(facts, "huge_pages_shared", "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    add_number(facts, "hugetlb_pages", "/proc/sys/vm/nr_hugepages");
    add_number(facts, "ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope");
}

cJSON *machine_mpis(void)
{
    static const char *const launchers[][2] = {
        {"Open MPI", "mpirun.openmpi"}, {"MPICH", "mpirun.mpich"}, {"default", "mpirun"}};
    cJSON *found = cJSON_CreateArray();
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        char path[4096];
        if (!tool_find_program(launchers[i][1], path, sizeof path))
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", launchers[i][0]);
        cJSON_AddStringToObject(one, "launcher", path);
        cJSON_AddItemToArray(found, one);
    }
    return found;
}
