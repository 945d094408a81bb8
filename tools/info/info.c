/* SPDX-License-Identifier: Apache-2.0 */
/* `coset info`: what this build can do on this machine. */
#include "command.h"
#include "common/json.h"
#include "common/options.h"
#include "common/table.h"
#include "info/machine.h"
#include "info/tuning.h"

#include <coset.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "Shows version, processor level, kernels, transports (or why one cannot be used), MPI and memory.";

/* Collects what coset_describe says: one object per group; transports as an array, with the reason apart. */
static void collect(void *ctx, const char *group, const char *name, const char *value)
{
    cJSON *all = ctx;
    if (strcmp(group, "transport")) {
        cJSON *of_group = cJSON_GetObjectItem(all, group);
        if (!of_group)
            of_group = cJSON_AddObjectToObject(all, group);
        if (*value && !value[strspn(value, "0123456789")])
            cJSON_AddNumberToObject(of_group, name, atof(value));
        else
            cJSON_AddStringToObject(of_group, name, value);
        return;
    }
    cJSON *list = cJSON_GetObjectItem(all, "transports"), *one = cJSON_CreateObject();
    if (!list)
        list = cJSON_AddArrayToObject(all, "transports");
    bool usable = !strcmp(value, "usable");
    cJSON_AddStringToObject(one, "name", name);
    cJSON_AddBoolToObject(one, "usable", usable);
    if (usable)
        cJSON_AddNullToObject(one, "why");
    else
        cJSON_AddStringToObject(one, "why", value);
    cJSON_AddItemToArray(list, one);
}

static cJSON *everything(void)
{
    cJSON *all = cJSON_CreateObject();
    cJSON_AddStringToObject(all, "version", coset_version());
    cJSON_AddNumberToObject(all, "wire_version", COSET_WIRE_VERSION);
    coset_describe(collect, all);
    cJSON_AddItemToObject(all, "mpi", machine_mpis());
    machine_facts(cJSON_GetObjectItem(all, "machine"));
    return all;
}

static const char *text_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsString(item) ? item->valuestring : "?";
}

static double number_of(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void print_group(FILE *out, const char *title, const cJSON *group)
{
    const cJSON *item;
    fprintf(out, "%-11s", title);
    cJSON_ArrayForEach(item, group) fprintf(out, " %s: %s%s", item->string, item->valuestring, item->next ? "," : "");
    fputc('\n', out);
}

static void print_transports(FILE *out, const cJSON *list)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, list)
        fprintf(out, "%-11s %s: %s\n", "transport", text_of(one, "name"),
                cJSON_IsTrue(cJSON_GetObjectItem(one, "usable")) ? "usable" : text_of(one, "why"));
}

static void print_mpis(FILE *out, const cJSON *list)
{
    const cJSON *one;
    if (!cJSON_GetArraySize(list))
        fprintf(out, "%-11s none found in PATH\n", "MPI");
    cJSON_ArrayForEach(one, list) fprintf(out, "%-11s %s: %s\n", "MPI", text_of(one, "name"), text_of(one, "launcher"));
}

static void print_machine(FILE *out, const cJSON *m)
{
    char memory[32], shm[32], l2[32], l3[32];
    fprintf(out, "%-11s %s, %.0f cores (%.0f allowed), %.0f NUMA nodes, L2 %s, L3 %s (by %s)\n", "machine",
            text_of(m, "processor"), number_of(m, "cores"), number_of(m, "cores_allowed"), number_of(m, "numa_nodes"),
            tool_size_text(l2, number_of(m, "l2_bytes")), tool_size_text(l3, number_of(m, "l3_bytes")),
            text_of(m, "source"));
    fprintf(out, "%-11s %s, /dev/shm %s, huge pages %s (shared memory: %s), %.0f reserved\n", "memory",
            tool_size_text(memory, number_of(m, "memory_bytes")), tool_size_text(shm, number_of(m, "shm_bytes")),
            text_of(m, "huge_pages"), text_of(m, "huge_pages_shared"), number_of(m, "hugetlb_pages"));
}

int tool_info(int argc, char **argv)
{
    const char *json = NULL, *ranks = NULL, *sizes = NULL;
    bool tuning = false;
    const tool_option options[] = {
        TOOL_OUTPUT("json", 0, "FILE", "write the facts as JSON", &json),
        TOOL_FLAG("tuning", 0, "show instead which algorithm auto chooses for which vector, and why", &tuning),
        TOOL_TEXT("ranks", 0, "LIST", "with --tuning: numbers of ranks (default 2,4,8,16,64)", &ranks),
        TOOL_TEXT("sizes", 0, "LIST", "with --tuning: sizes of vectors (default 64,4K,64K,1M,16M,100M)", &sizes),
        TOOL_END,
    };
    tool_options_parse(argc, argv, options, about, NULL);
    if (tuning)
        return info_tuning(argv[0], ranks, sizes, json);
    if (ranks || sizes)
        tool_bad_input(argv[0], "--%s belongs to --tuning", ranks ? "ranks" : "sizes");
    cJSON *all = everything();
    FILE *out = tool_human_stream(json);
    if (out == stdout) {
        fprintf(out, "%-11s %s (wire version %d)\n", "coset", coset_version(), COSET_WIRE_VERSION);
        print_group(out, "processor", cJSON_GetObjectItem(all, "cpu"));
        print_group(out, "kernels", cJSON_GetObjectItem(all, "kernel"));
        print_transports(out, cJSON_GetObjectItem(all, "transports"));
        print_mpis(out, cJSON_GetObjectItem(all, "mpi"));
        print_machine(out, cJSON_GetObjectItem(all, "machine"));
    }
    return tool_json_write(json, all) ? TOOL_FAILED : TOOL_OK;
}
