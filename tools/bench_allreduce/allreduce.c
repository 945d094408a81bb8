/* SPDX-License-Identifier: Apache-2.0 */
/* `coset bench allreduce`: options, the sweep over sizes, and the report. */
#include "bench_allreduce/floor.h"
#include "bench_allreduce/measure.h"
#include "command.h"
#include "common/draw.h"
#include "common/json.h"
#include "common/launch.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    tool_launch launch;
    size_t min, max;
    double factor;
    const char *dtype_name, *op_name, *memory, *json;
    coset_dtype dtype;
    coset_op op;
    bool in_place, rewrite;
    compressed_options codec; /* codec.codec NULL or "none": exact */
    int iterations;
} bench;

static const char about[] =
    "Measures coset_allreduce for sizes from MIN to MAX bytes, on ranks that it starts itself or on those of a launcher."
    "\vOne iteration is a barrier, then one operation; its time is the maximum over ranks. `time` is the mean over"
    " iterations, bandwidths come from the median (p50). `cpu` is processor seconds per operation, all ranks together."
    " `floor` is the same memory traffic without any waiting. `cycle` (with --rewrite) is writing the input, the"
    " operation and reading the result. With a codec the vectors are drawn, `#wrong` counts elements that differ between"
    " ranks, `codec` is the speed of encoding and decoding alone, and `breakeven` the link below which it beats sending"
    " plainly (both in 10^9 bytes per second).";

static const char *const dtype_names[] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "u32", "i64", "u64", NULL};
static const char *const op_names[] = {"sum", "avg", "min", "max", "prod", NULL};
static const char *const memory_names[] = {"coset", "malloc", NULL};

static int index_of(const char *const *names, const char *name)
{
    int i = 0;
    while (strcmp(names[i], name))
        i++;
    return i;
}

static bool compressing(const bench *b)
{
    return strcmp(b->codec.codec, "none") != 0;
}

static void parse(bench *b, int argc, char **argv)
{
    *b = (bench){.min = 4, .max = 16 << 20, .factor = 4, .dtype_name = "f32", .memory = "coset"};
    b->codec = (compressed_options){.codec = "none", .distribution = tool_distributions[0]};
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks to start (2)", &b->launch.ranks, 1, TOOL_MAX_RANKS),
        TOOL_TEXT("transport", 0, "T", "threads, shm, tcp, ... (the library's choice)", &b->launch.transport),
        TOOL_TEXT("algo", 0, "A", "ring, direct, flat, ... (auto)", &b->launch.algorithm),
        TOOL_SIZE("min", 'b', "MIN", "smallest size in bytes (4)", &b->min),
        TOOL_SIZE("max", 'e', "MAX", "largest size in bytes (16M)", &b->max),
        TOOL_REAL("factor", 'f', "FACTOR", "from one size to the next (4)", &b->factor, 1.0001, 1e9),
        TOOL_CHOICE("dtype", 0, "D", "element type (f32)", &b->dtype_name, dtype_names),
        TOOL_CHOICE("op", 0, "O", "sum, avg, min, max, prod (sum; with a codec avg)", &b->op_name, op_names),
        TOOL_TEXT("codec", 0, "C", "lattice, lattice:e8, eden, qsgd, ... (none: exact)", &b->codec.codec),
        TOOL_REAL("bits", 0, "B", "codec: bits per coordinate and phase", &b->codec.bits, 0, 64),
        TOOL_REAL("budget", 0, "E", "codec: excess over the sampling variance (0.05)", &b->codec.budget, 0, 1e9),
        TOOL_TEXT("protocol", 0, "P", "codec: sharded-star, homomorphic, ... (sharded-star)", &b->codec.protocol),
        TOOL_REAL("link", 0, "G", "codec: least time on a link of G 10^9 bytes/s (fewest bits)", &b->codec.link, 0,
                  1e6),
        TOOL_REAL("mean", 0, "R", "codec: common mean of R spreads per coordinate (0)", &b->codec.mean, -1e9, 1e9),
        TOOL_CHOICE("dist", 0, "D", "codec: gauss, t3 or spike (gauss)", &b->codec.distribution, tool_distributions),
        TOOL_CHOICE("memory", 0, "coset|malloc", "buffers of coset_alloc or of malloc (coset)", &b->memory,
                    memory_names),
        TOOL_FLAG("in-place", 0, "send == recv", &b->in_place),
        TOOL_FLAG("rewrite", 0, "write the input before and read the result after each operation", &b->rewrite),
        TOOL_INT("iters", 0, "K", "iterations (as many as fit 0.25 s)", &b->iterations, 1, 1000000),
        TOOL_OUTPUT("json", 0, "FILE", "write the results as JSON", &b->json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, options, about, NULL);
    tool_options_text(argv[0], options, b->launch.asked, sizeof b->launch.asked);
    if (b->min > b->max)
        tool_bad_input(argv[0], "--min=%zu is above --max=%zu", b->min, b->max);
    b->dtype = (coset_dtype)index_of(dtype_names, b->dtype_name);
    if (!b->op_name)
        b->op_name = compressing(b) ? "avg" : "sum";
    if (compressing(b) && strcmp(b->op_name, "avg"))
        tool_bad_input(argv[0], "--op=%s: a codec gives means; leave it out, or --op=avg", b->op_name);
    if (compressing(b) && b->dtype != COSET_F32 && b->dtype != COSET_F64)
        tool_bad_input(argv[0], "--dtype=%s: with a codec f32 or f64", b->dtype_name);
    if (b->codec.bits > 0 && b->codec.budget > 0)
        tool_bad_input(argv[0], "--bits and --budget exclude each other");
    b->op = (coset_op)index_of(op_names, b->op_name);
}

static const tool_column exact_columns[] = {
    {"size(B)", 11}, {"count", 10}, {"type", -5},    {"redop", -5},  {"time(us)", 9},
    {"algbw", 7},    {"busbw", 7},  {"#wrong", 6},   {"p50", 9},     {"p99", 9},
    {"floor", 9},    {"cycle", 9},  {"wire(B)", 10}, {"cpu(us)", 9}, {NULL, 0},
};

static const tool_column codec_columns[] = {
    {"size(B)", 11},    {"count", 10},   {"type", -5},    {"redop", -5}, {"time(us)", 9},
    {"algbw", 7},       {"busbw", 7},    {"#wrong", 6},   {"p50", 9},    {"p99", 9},
    {"bits/coord", 10}, {"excess", 8},   {"repaired", 8}, {"codec", 7},  {"breakeven", 9},
    {"cycle", 9},       {"wire(B)", 10}, {"cpu(us)", 9},  {NULL, 0},
};

/* Gigabytes (10^9) per second. */
static double gbps(double bytes, double seconds)
{
    return seconds > 0 ? bytes / seconds / 1e9 : NAN;
}

static double bus_factor(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

/* The link, each way, on which the codec saves as much time as it takes: it sends fewer bytes than an exact ring, at the
 * price of codec_p50_s. 0: on no link. */
static double breakeven_gbps(const measurement *m, const figures *f)
{
    double exact = (double)m->count * (double)coset_dtype_size(m->dtype) * bus_factor(m->rank->size);
    double saved = exact - f->quality.bits_per_coord / 8 * (double)m->count;
    return saved > 0 ? gbps(saved, f->codec_p50_s) : 0;
}

static void print_row(tool_table *table, const bench *b, const measurement *m, const figures *f)
{
    double bytes = (double)m->count * (double)coset_dtype_size(b->dtype);
    double algbw = gbps(bytes, f->p50_s);
    tool_cell(table, "%.0f", bytes);
    tool_cell(table, "%zu", m->count);
    tool_cell(table, "%s", b->dtype_name);
    tool_cell(table, "%s", b->op_name);
    tool_cell_number(table, 1e6 * f->mean_s, 4);
    tool_cell_number(table, algbw, 3);
    tool_cell_number(table, algbw * bus_factor(m->rank->size), 3);
    tool_cell(table, "%.0f", f->wrong);
    tool_cell_number(table, 1e6 * f->p50_s, 4);
    tool_cell_number(table, 1e6 * f->p99_s, 4);
    if (m->codec) {
        tool_cell_number(table, f->quality.bits_per_coord, 4);
        tool_cell_number(table, f->quality.excess, 3);
        tool_cell(table, "%.0f", f->quality.repaired);
        tool_cell_number(table, gbps(bytes, f->codec_p50_s), 3);
        tool_cell_number(table, breakeven_gbps(m, f), 3);
    } else {
        tool_cell_number(table, 1e6 * f->floor_p50_s, 4);
    }
    tool_cell_number(table, 1e6 * f->cycle_p50_s, 4);
    tool_cell(table, "%.0f", f->wire_sent);
    tool_cell_number(table, 1e6 * f->cpu_s, 4);
}

static cJSON *row_json(const bench *b, const measurement *m, const figures *f)
{
    cJSON *row = cJSON_CreateObject();
    double bytes = (double)m->count * (double)coset_dtype_size(b->dtype);
    double algbw = gbps(bytes, f->p50_s);
    cJSON_AddNumberToObject(row, "size_bytes", bytes);
    cJSON_AddNumberToObject(row, "count", (double)m->count);
    cJSON_AddStringToObject(row, "dtype", b->dtype_name);
    cJSON_AddStringToObject(row, "op", b->op_name);
    cJSON_AddNumberToObject(row, "ranks", m->rank->size);
    cJSON_AddStringToObject(row, "transport", coset_comm_transport(m->rank->comm));
    cJSON_AddStringToObject(row, "algo", b->launch.algorithm ? b->launch.algorithm : "auto");
    cJSON_AddStringToObject(row, "codec", b->codec.codec);
    cJSON_AddStringToObject(row, "memory", b->memory);
    cJSON_AddBoolToObject(row, "in_place", b->in_place);
    cJSON_AddNumberToObject(row, "time_us_p50", 1e6 * f->p50_s);
    cJSON_AddNumberToObject(row, "time_us_p99", 1e6 * f->p99_s);
    cJSON_AddNumberToObject(row, "cycle_us_p50", 1e6 * f->cycle_p50_s);
    cJSON_AddNumberToObject(row, "floor_us_p50", 1e6 * f->floor_p50_s);
    cJSON_AddNumberToObject(row, "algbw_gbps", algbw);
    cJSON_AddNumberToObject(row, "busbw_gbps", algbw * bus_factor(m->rank->size));
    cJSON_AddNumberToObject(row, "wire_sent_bytes", f->wire_sent);
    cJSON_AddNumberToObject(row, "wire_received_bytes", f->wire_received);
    cJSON_AddNumberToObject(row, "wrong", f->wrong);
    cJSON_AddNumberToObject(row, "cpu_s", f->cpu_s);
    if (m->codec) {
        cJSON_AddNumberToObject(row, "bits_per_coord", f->quality.bits_per_coord);
        cJSON_AddNumberToObject(row, "excess_over_sampling", f->quality.excess);
        cJSON_AddNumberToObject(row, "repaired_units", f->quality.repaired);
        cJSON_AddNumberToObject(row, "codec_gbps", gbps(bytes, f->codec_p50_s));
        cJSON_AddNumberToObject(row, "breakeven_gbps", breakeven_gbps(m, f));
    }
    return row;
}

/* Page-aligned and touched, so that no page fault falls into a measurement. */
static void *ordinary_memory(size_t bytes)
{
    enum { PAGE = 4096 };
    void *p = aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);
    if (p)
        memset(p, 0, bytes);
    return p;
}

static int get_buffers(const bench *b, tool_rank *rank, void *buffers[2])
{
    bool ours = !strcmp(b->memory, "coset");
    size_t bytes = b->max ? b->max : 1;
    for (int i = 0; i < (b->in_place ? 1 : 2); i++) {
        if (ours && coset_alloc(rank->comm, bytes, &buffers[i]))
            return tool_rank_failed(rank, "getting buffers");
        if (!ours && !(buffers[i] = ordinary_memory(bytes))) {
            fprintf(stderr, "%s: rank %d: no memory for %zu bytes\n", rank->command, rank->rank, bytes);
            return TOOL_FAILED;
        }
    }
    if (b->in_place)
        buffers[1] = buffers[0];
    return TOOL_OK;
}

static void free_buffers(const bench *b, tool_rank *rank, void *buffers[2])
{
    for (int i = 0; i < (b->in_place ? 1 : 2); i++)
        if (!strcmp(b->memory, "coset"))
            coset_free(rank->comm, buffers[i]);
        else
            free(buffers[i]);
}

static size_t next_size(const bench *b, size_t size)
{
    double next = ceil((double)(size ? size : 1) * b->factor);
    return next > (double)b->max ? SIZE_MAX : (size_t)next > size ? (size_t)next : size + 1;
}

static int sweep(const bench *b, tool_rank *rank, void *buffers[2], tool_table *table, cJSON *rows)
{
    tool_progress bar = tool_progress_start("measuring");
    bar.shown = bar.shown && rank->rank == 0;
    const pattern input = pattern_of_rank(b->dtype, b->op, rank->rank);
    int status = TOOL_OK;
    for (size_t size = b->min; size <= b->max && !status; size = next_size(b, size)) {
        measurement m = {.rank = rank,
                         .dtype = b->dtype,
                         .op = b->op,
                         .input = &input,
                         .count = size / coset_dtype_size(b->dtype),
                         .send = buffers[0],
                         .recv = buffers[1],
                         .rewrite = b->rewrite,
                         .iterations = b->iterations,
                         .floor_stride = rank->shared ? b->max : 0};
        figures f;
        compressed codec;
        if (compressing(b)) {
            status = compressed_create(&codec, &b->codec, rank, b->dtype, m.count);
            if (status)
                break;
            m.codec = &codec;
        }
        tool_progress_update(&bar, (double)(size - b->min), (double)(b->max - b->min) + 1, "");
        status = measure(&m, &f);
        if (m.codec)
            compressed_free(m.codec);
        if (!status && f.wrong > 0)
            status = TOOL_FAILED; /* after the row that shows it */
        if (rank->rank || (status && !(f.wrong > 0)))
            continue;
        tool_progress_clear(&bar);
        print_row(table, b, &m, &f);
        cJSON_AddItemToArray(rows, row_json(b, &m, &f));
    }
    tool_progress_end(&bar);
    return status;
}

static int bench_rank(tool_rank *rank, void *ctx)
{
    const bench *b = ctx;
    void *buffers[2];
    if (get_buffers(b, rank, buffers))
        return TOOL_FAILED;
    tool_table table = {0};
    cJSON *rows = NULL;
    if (rank->rank == 0) {
        FILE *out = tool_human_stream(b->json);
        fprintf(
            out,
            "# coset %s: all-reduce, %d ranks, transport %s, algorithm %s, codec %s, %s memory, %s place%s; times in us\n",
            coset_version(), rank->size, coset_comm_transport(rank->comm),
            b->launch.algorithm ? b->launch.algorithm : "auto", b->codec.codec, b->memory,
            b->in_place ? "in" : "out of", b->rewrite ? ", rewritten each time" : "");
        table = tool_table_start(out, compressing(b) ? codec_columns : exact_columns);
        rows = cJSON_CreateArray();
    }
    int status = sweep(b, rank, buffers, &table, rows);
    free_buffers(b, rank, buffers);
    if (rank->rank == 0 && tool_json_write(b->json, rows))
        status = TOOL_FAILED;
    return status;
}

/* The floor needs as much memory again: only if that is a small part of what the machine has. */
static size_t floor_bytes(const bench *b)
{
    int ranks = b->launch.ranks ? b->launch.ranks : TOOL_DEFAULT_RANKS;
    double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double wanted = (double)ranks * (double)b->max * (b->in_place ? 1 : 2);
    return ranks <= FLOOR_MAX_RANKS && wanted < machine / 4 ? floor_region_bytes(ranks, b->max, b->in_place) : 0;
}

int tool_bench_allreduce(int argc, char **argv)
{
    bench b;
    parse(&b, argc, argv);
    if (compressing(&b))
        compressed_check(argv[0], &b.codec, b.launch.ranks);
    const char *transport = b.launch.transport ? b.launch.transport : "";
    if (strcmp(transport, "tcp") && !compressing(&b))
        b.launch.shared_bytes = floor_bytes(&b);
    return tool_launch_run(argv[0], &b.launch, bench_rank, &b);
}
