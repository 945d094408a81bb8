/* SPDX-License-Identifier: Apache-2.0 */
/* `coset bench ddp`: options, the reducer that is measured, and the report. */
#include "bench_ddp/measure.h"
#include "command.h"
#include "common/buckets.h"
#include "common/codec.h"
#include "common/json.h"
#include "common/options.h"
#include "common/table.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LAYERS = 24, DEFAULT_PARAMS = 12000000 };

typedef struct {
    tool_launch launch;
    const char *codec, *backward, *json;
    double budget, backward_ms, bucket_mb;
    int layers, params, iterations;
} bench;

static const char about[] =
    "Measures how much of the communication of gradients a backward pass hides: the same steps with and without"
    " communication, in turn."
    "\v`sleep`: an accelerator computes, the processor waits; `work`: the same cores compute. Times are medians over"
    " iterations of the maximum over ranks. `oracle` is the step without communication, `exposed` = step - oracle,"
    " `comm cpu` the processor time of communication on one rank.";

static const char *const backward_names[] = {"sleep", "work", NULL};

static bool compresses(const bench *b)
{
    return strcmp(b->codec, "none") != 0;
}

static coset_mean_options mean_options(const bench *b)
{
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS; /* what was asked for, also where the link is quicker */
    mean.codec = b->codec;
    mean.error_budget = b->budget;
    return mean;
}

static void parse(bench *b, int argc, char **argv)
{
    *b = (bench){.codec = "none", .backward = "sleep", .layers = DEFAULT_LAYERS, .params = DEFAULT_PARAMS};
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks to start (2)", &b->launch.ranks, 1, TOOL_MAX_RANKS),
        TOOL_TEXT("transport", 0, "T", "threads, shm, tcp, ... (the library's choice)", &b->launch.transport),
        TOOL_TEXT("codec", 0, "C", "none, lattice, eden, ... (none)", &b->codec),
        TOOL_REAL("budget", 0, "E", "error budget of the codec (0.05)", &b->budget, 1e-9, 1e9),
        TOOL_INT("layers", 0, "L", "layers, a parameter each (24)", &b->layers, 1, 100000),
        TOOL_INT("params", 0, "P", "elements of all layers together (12000000)", &b->params, 1, 2000000000),
        TOOL_REAL("backward-ms", 0, "M", "length of backward (3 times the communication)", &b->backward_ms, 1e-3, 1e6),
        TOOL_CHOICE("backward", 0, "sleep|work", "what computes (sleep)", &b->backward, backward_names),
        TOOL_REAL("bucket-mb", 0, "X", "MiB in a bucket (25; the first and last 1)", &b->bucket_mb, 1e-6, 1e6),
        TOOL_INT("iters", 0, "K", "iterations (as many as fit 4 s)", &b->iterations, 1, 1000000),
        TOOL_OUTPUT("json", 0, "FILE", "write the results as JSON", &b->json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, options, about, NULL);
    tool_options_text(argv[0], options, b->launch.asked, sizeof b->launch.asked);
    if (b->params < b->layers)
        tool_bad_input(argv[0], "--params=%d is below --layers=%d: a layer needs an element", b->params, b->layers);
    const coset_mean_options mean = mean_options(b);
    if (compresses(b))
        tool_check_codec(argv[0], &mean, b->launch.ranks);
    else if (b->budget > 0)
        tool_bad_input(argv[0], "--budget needs a codec: add --codec lattice");
}

static const tool_column columns[] = {
    {"backward", -8}, {"buckets", 7},      {"step(ms)", 9},      {"oracle(ms)", 10}, {"backward(ms)", 12},
    {"comm(ms)", 8},  {"exposed(ms)", 11}, {"comm cpu(ms)", 12}, {"wire(B)", 10},    {NULL, 0},
};

static void print_report(const bench *b, const tool_rank *rank, const ddp_figures *f)
{
    FILE *out = tool_human_stream(b->json);
    fprintf(out, "# coset %s: DDP, %d ranks, transport %s, codec %s, %d elements in %d layers, %d iterations\n",
            coset_version(), rank->size, coset_comm_transport(rank->comm), b->codec, b->params, b->layers,
            f->iterations);
    tool_table table = tool_table_start(out, columns);
    tool_cell(&table, "%s", b->backward);
    tool_cell(&table, "%zu", f->buckets);
    tool_cell_number(&table, 1e3 * f->step_s, 4);
    tool_cell_number(&table, 1e3 * f->oracle_s, 4);
    tool_cell_number(&table, 1e3 * f->backward_s, 4);
    tool_cell_number(&table, 1e3 * f->comm_s, 4);
    tool_cell_number(&table, 1e3 * (f->step_s - f->oracle_s), 3);
    tool_cell_number(&table, 1e3 * f->comm_cpu_s, 3);
    tool_cell(&table, "%.0f", f->sent_bytes);
    fprintf(out, "exposed: %.1f %% of the communication; step: %.1f %% above the oracle\n",
            100 * (f->step_s - f->oracle_s) / f->comm_s, 100 * (f->step_s / f->oracle_s - 1));
}

static cJSON *report_json(const bench *b, const tool_rank *rank, const ddp_figures *f)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddNumberToObject(j, "ranks", rank->size);
    cJSON_AddStringToObject(j, "transport", coset_comm_transport(rank->comm));
    cJSON_AddStringToObject(j, "codec", b->codec);
    cJSON_AddStringToObject(j, "backward", b->backward);
    cJSON_AddNumberToObject(j, "params", b->params);
    cJSON_AddNumberToObject(j, "layers", b->layers);
    cJSON_AddNumberToObject(j, "iterations", f->iterations);
    cJSON_AddNumberToObject(j, "step_ms", 1e3 * f->step_s);
    cJSON_AddNumberToObject(j, "backward_ms", 1e3 * f->backward_s);
    cJSON_AddNumberToObject(j, "comm_ms", 1e3 * f->comm_s);
    cJSON_AddNumberToObject(j, "exposed_ms", 1e3 * (f->step_s - f->oracle_s));
    cJSON_AddNumberToObject(j, "finish_ms", 1e3 * f->finish_s);
    cJSON_AddNumberToObject(j, "oracle_step_ms", 1e3 * f->oracle_s);
    cJSON_AddNumberToObject(j, "comm_cpu_ms", 1e3 * f->comm_cpu_s);
    cJSON_AddNumberToObject(j, "buckets", (double)f->buckets);
    cJSON_AddNumberToObject(j, "wire_sent_bytes", f->sent_bytes);
    if (f->coords > 0)
        cJSON_AddNumberToObject(j, "bits_per_coord", f->bits / f->coords);
    return j;
}

/* Equal layers; the first ones take what is left over. */
static void divide(const bench *b, size_t *counts, coset_param *params)
{
    size_t layers = (size_t)b->layers, all = (size_t)b->params;
    for (size_t i = 0; i < layers; i++) {
        counts[i] = all / layers + (i < all % layers);
        params[i] =
            (coset_param){.id = i + 1, .count = counts[i], .dtype = COSET_F32, .ndim = 2, .name = NULL, .flags = 0};
    }
}

static int measure_reducer(const bench *b, tool_rank *rank, size_t *counts, coset_param *params)
{
    const coset_mean_options mean = mean_options(b);
    coset_ddp_options options = COSET_DDP_OPTIONS_INIT;
    options.mean = compresses(b) ? &mean : NULL;
    tool_bucket_sizes(b->bucket_mb, &options);
    divide(b, counts, params);
    ddp_bench m = {.rank = rank,
                   .layers = (size_t)b->layers,
                   .counts = counts,
                   .kind = strcmp(b->backward, "work") ? LOAD_SLEEP : LOAD_WORK,
                   .backward_s = b->backward_ms / 1e3,
                   .iterations = b->iterations};
    if (coset_ddp_create(rank->comm, &options, params, m.layers, &m.ddp))
        return tool_rank_failed(rank, "making the reducer");
    ddp_figures f;
    int status = ddp_measure(&m, &f);
    coset_ddp_destroy(m.ddp);
    if (status || rank->rank)
        return status;
    print_report(b, rank, &f);
    return tool_json_write(b->json, report_json(b, rank, &f)) ? TOOL_FAILED : TOOL_OK;
}

static int bench_rank(tool_rank *rank, void *ctx)
{
    const bench *b = ctx;
    size_t *counts = calloc((size_t)b->layers, sizeof *counts);
    coset_param *params = calloc((size_t)b->layers, sizeof *params);
    int status = TOOL_FAILED;
    if (counts && params)
        status = measure_reducer(b, rank, counts, params);
    else
        fprintf(stderr, "%s: out of memory\n", rank->command);
    free(counts);
    free(params);
    return status;
}

int tool_bench_ddp(int argc, char **argv)
{
    bench b;
    parse(&b, argc, argv);
    return tool_launch_run(argv[0], &b.launch, bench_rank, &b);
}
