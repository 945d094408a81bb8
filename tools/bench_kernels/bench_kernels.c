/* SPDX-License-Identifier: Apache-2.0 */
/* `coset bench kernels`: the speed of every inner loop, at every CPU level of this machine, by where its data lives. */
#include "bench_kernels/row.h"
#include "command.h"
#include "common/json.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/table.h"
#include "cpu/cpu.h"

#include <string.h>
#include <sys/mman.h>

/* One line for every folder of kernels. */
static const kernel_row *const groups[] = {
    kernel_rows_reduce,
    kernel_rows_codec,
};
enum { GROUPS = sizeof groups / sizeof *groups };

/* Bytes of one buffer. The same on every machine, so that figures compare; the names say where up to eight such buffers
 * lie on common servers (1 MiB of L2, 16 MiB of L3 and more). A call with next to no data shows what a call costs. */
enum { PLACES = 4, SLACK = 64 << 10 };
typedef struct {
    const char *name;
    size_t bytes;
} place;

typedef struct {
    const char *only, *level, *json;
    size_t size;
    int budget_ms;
} settings;

typedef struct {
    settings set;
    place places[PLACES];
    int nplaces;
    cst_cpu levels[CST_CPU_COUNT];
    int nlevels;
    char *buffer[KERNEL_MAX_BUFFERS];
    cJSON *results;
    tool_table table;
    tool_progress progress;
    int done, total;
} bench;

static void choose_places(bench *b)
{
    static const place usual[PLACES] = {{"call", 4}, {"L2", 128 << 10}, {"L3", 2 << 20}, {"DRAM", 64 << 20}};
    memcpy(b->places, usual, sizeof usual);
    b->nplaces = PLACES;
    if (b->set.size) {
        b->places[0] = (place){"asked", b->set.size};
        b->nplaces = 1;
    }
}

static void choose_levels(bench *b)
{
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++)
        if (cst_cpu_has(level) && (!b->set.level || !strcmp(b->set.level, cst_cpu_name(level))))
            b->levels[b->nlevels++] = level;
}

static int selected(const bench *b, const kernel_row *row)
{
    return !b->set.only || strstr(row->name, b->set.only) != NULL;
}

/* Multiples of the kernel's block; 0 where a block is too much for "call". */
static size_t size_for(const kernel_row *row, const place *where)
{
    return where->bytes / row->unit * row->unit;
}

static void fill_f32(char *p, size_t bytes, uint32_t seed)
{
    float *x = (float *)(void *)p;
    uint32_t r = seed;
    for (size_t i = 0; i < bytes / sizeof *x; i++) {
        r = r * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)r * 0x1p-31f;
    }
}

static int open_buffers(bench *b)
{
    size_t bytes = SLACK;
    for (int i = 0; i < b->nplaces; i++)
        bytes = b->places[i].bytes + SLACK > bytes ? b->places[i].bytes + SLACK : bytes;
    for (int i = 0; i < KERNEL_MAX_BUFFERS; i++) {
        b->buffer[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->buffer[i] == MAP_FAILED)
            return -1;
        madvise(b->buffer[i], bytes, MADV_HUGEPAGE);
    }
    return 0;
}

static void report(bench *b, const kernel_row *row, cst_cpu level, const place *where, size_t bytes, double seconds)
{
    const double gbps = (double)bytes / seconds * 1e-9;
    char size[32];
    tool_progress_end(&b->progress);
    tool_cell(&b->table, "%s", row->name);
    tool_cell(&b->table, "%s", cst_cpu_name(level));
    tool_cell(&b->table, "%s", where->name);
    tool_cell(&b->table, "%s", tool_size_text(size, (double)bytes));
    tool_cell_number(&b->table, seconds * 1e6, 4);
    tool_cell_number(&b->table, gbps, 4);
    tool_cell_number(&b->table, gbps * row->moved, 4);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kernel", row->name);
    cJSON_AddStringToObject(o, "level", cst_cpu_name(level));
    cJSON_AddStringToObject(o, "place", where->name);
    cJSON_AddNumberToObject(o, "size_bytes", (double)bytes);
    cJSON_AddNumberToObject(o, "time_us_p50", seconds * 1e6);
    cJSON_AddNumberToObject(o, "gbps", gbps);
    cJSON_AddNumberToObject(o, "moved_gbps", gbps * row->moved);
    cJSON_AddItemToArray(b->results, o);
}

static void measure_at(bench *b, const kernel_row *row, const place *where)
{
    const size_t bytes = size_for(row, where);
    for (int i = 0; bytes && i < row->buffers; i++)
        fill_f32(b->buffer[i], bytes + SLACK, (uint32_t)i + 1);
    for (int l = 0; l < b->nlevels; l++) {
        tool_progress_update(&b->progress, b->done++, b->total, row->name);
        if (!bytes)
            continue;
        cst_cpu_set_for_test(b->levels[l]);
        if (row->prepare)
            row->prepare(row, b->buffer, bytes);
        const double seconds = kernel_measure(row, b->buffer, bytes, b->set.budget_ms * 1e-3);
        report(b, row, b->levels[l], where, bytes, seconds);
    }
}

static void measure_row(bench *b, const kernel_row *row)
{
    for (int p = 0; p < b->nplaces; p++)
        measure_at(b, row, &b->places[p]);
}

static void each_row(bench *b, void (*act)(bench *, const kernel_row *))
{
    for (int g = 0; g < GROUPS; g++)
        for (const kernel_row *row = groups[g]; row->name; row++)
            if (selected(b, row))
                act(b, row);
}

static void count_row(bench *b, const kernel_row *row)
{
    (void)row;
    b->total += b->nplaces * b->nlevels;
}

static const tool_column columns[] = {{"kernel", -30}, {"level", -7}, {"in", -5},         {"size", 10},
                                      {"us", 10},      {"GB/s", 8},   {"moved GB/s", 10}, {NULL, 0}};

int tool_bench_kernels(int argc, char **argv)
{
    static const char *const levels[] = {"scalar", "avx2", "avx512", "neon", NULL};
    bench b = {.set = {.budget_ms = 60}};
    const tool_option options[] = {
        TOOL_TEXT("only", 'k', "TEXT", "kernels whose name contains TEXT (default all)", &b.set.only),
        TOOL_CHOICE("level", 'l', "LEVEL", "one CPU level (default all that this machine has)", &b.set.level, levels),
        TOOL_SIZE("size", 'b', "SIZE", "bytes of the vector (default 4 B, and in L2, L3, DRAM)", &b.set.size),
        TOOL_INT("time", 't', "MS", "milliseconds for each measurement (default 60)", &b.set.budget_ms, 1, 60000),
        TOOL_OUTPUT("json", 0, "FILE", "results as a JSON array, - for standard output", &b.set.json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, options,
                       "Measures the library's inner loops on one core. GB/s are 10^9 bytes of the vector per second, "
                       "moved GB/s count every byte read and written.",
                       NULL);
    const cst_cpu before = cst_cpu_level();
    choose_places(&b);
    choose_levels(&b);
    if (!b.nlevels)
        tool_bad_input(argv[0], "--level=%s: this processor cannot run it; see `coset info`", b.set.level);
    each_row(&b, count_row);
    if (!b.total)
        tool_bad_input(argv[0], "--only=%s: no kernel has this in its name; without --only all are listed", b.set.only);
    if (open_buffers(&b)) {
        fprintf(stderr, "%s: no memory for the buffers\n", argv[0]);
        return TOOL_FAILED;
    }
    b.results = cJSON_CreateArray();
    b.table = tool_table_start(tool_human_stream(b.set.json), columns);
    b.progress = tool_progress_start("kernels");
    each_row(&b, measure_row);
    tool_progress_end(&b.progress);
    cst_cpu_set_for_test(before);
    return tool_json_write(b.set.json, b.results) ? TOOL_FAILED : TOOL_OK;
}
