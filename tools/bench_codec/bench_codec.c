/* SPDX-License-Identifier: Apache-2.0 */
/* `coset bench codec`: error, bits and speed of codecs on drawn vectors, all ranks in one process. */
#include "../mean/estimate.h"
#include "command.h"
#include "common/draw.h"
#include "common/json.h"
#include "common/options.h"
#include "common/progress.h"
#include "common/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    coset_mean_options mean;
    int ranks, steps, seed;
    size_t dim;
    double mean_rms;
    const char *distribution, *codecs, *json;
} settings;

static const char about[] =
    "Measures codecs of the compressed mean on drawn vectors: a common part and each rank's own with spread 1."
    "\vSeveral codecs, one row each: --codec \"lattice eden qsgd:linf\". Excess is the squared error over the sampling variance;"
    " bits are of both phases, everything counted; GB/s are of f32 on one core: until a rank's codes are ready, and from then"
    " to the result.";

static const char default_codecs[] =
    "lattice lattice:z lattice:e8 lattice:entropy eden qsgd:linf suresh:rotated natural none";

static void parse(settings *s, int argc, char **argv)
{
    *s = (settings){.mean = COSET_MEAN_OPTIONS_INIT,
                    .ranks = 8,
                    .steps = 3,
                    .dim = 1 << 20,
                    .distribution = "gauss",
                    .codecs = default_codecs};
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks (8)", &s->ranks, 1, 1024),
        TOOL_SIZE("dim", 0, "D", "coordinates (1M)", &s->dim),
        TOOL_REAL("mean", 0, "R", "common mean per coordinate, in spreads (0)", &s->mean_rms, 0, 1e9),
        TOOL_CHOICE("dist", 0, "gauss|t3|spike", "distribution (gauss)", &s->distribution, tool_distributions),
        TOOL_TEXT("codec", 0, "C", "codecs, separated by spaces (a list of all kinds)", &s->codecs),
        TOOL_TEXT("protocol", 0, "P", "protocol (sharded-star)", &s->mean.protocol),
        TOOL_REAL("bits", 0, "B", "bits per coordinate and phase, instead of a budget", &s->mean.bits, 0.25, 32),
        TOOL_REAL("budget", 0, "E", "excess that is allowed (0.05)", &s->mean.error_budget, 1e-6, 1e3),
        TOOL_INT("steps", 0, "K", "calls to average over, new vectors each (3)", &s->steps, 1, 100000),
        TOOL_INT("seed", 0, "S", "of vectors and shared randomness (0)", &s->seed, 0, 2147483647),
        TOOL_OUTPUT("json", 0, "FILE", "write the figures as JSON", &s->json),
        TOOL_END,
    };
    tool_options_parse(argc, argv, options, about, NULL);
    if (s->mean.bits > 0 && s->mean.error_budget > 0)
        tool_bad_input(argv[0], "--bits and --budget exclude each other");
    s->mean.seed = (uint64_t)s->seed;
}

static const tool_column columns[] = {{"codec", -20}, {"bits", 8},     {"excess", 11},  {"repaired", 8},
                                      {"exact", 6},   {"enc GB/s", 8}, {"dec GB/s", 8}, {NULL, 0}};

/* One rank's share of the time: all ranks take turns in this process. */
static double gbps(const settings *s, double seconds, int steps)
{
    return seconds > 0 ? 4e-9 * (double)s->dim * s->ranks * steps / seconds : NAN;
}

static void add_row(tool_table *table, cJSON *all, const settings *s, const char *codec, const tool_figures *f)
{
    double steps = f->steps, n = s->ranks;
    tool_cell(table, "%s", codec);
    tool_cell_number(table, n > 1 ? f->bits_sent / steps * n / (n - 1) : 0, 4);
    tool_cell_number(table, f->excess / steps, 4);
    tool_cell_number(table, f->repaired / steps, 3);
    tool_cell_number(table, f->exact / steps, 3);
    tool_cell_number(table, gbps(s, f->encoding, f->steps), 3);
    tool_cell_number(table, gbps(s, f->decoding, f->steps), 3);
    cJSON *o = tool_figures_json(f, s->ranks, s->dim, s->mean.protocol ? s->mean.protocol : "sharded-star", codec);
    cJSON_AddNumberToObject(o, "encode_gbps", gbps(s, f->encoding, f->steps));
    cJSON_AddNumberToObject(o, "decode_gbps", gbps(s, f->decoding, f->steps));
    cJSON_AddItemToArray(all, o);
}

/* The ranks of one codec. Exits with 2 if the codec or its options are wrong. */
static tool_estimator *make(const settings *s, const char *name, const char *codec)
{
    char error[512];
    coset_mean_options options = s->mean;
    options.codec = codec;
    tool_estimator *e = tool_estimator_make(s->ranks, &options, error);
    if (!e)
        tool_bad_input(name, "%s", error);
    return e;
}

/* All steps of one codec. */
static int measure(settings *s, const char *name, const char *codec, float **x, void *out, tool_figures *f)
{
    char error[512];
    tool_estimator *e = make(s, name, codec);
    tool_problem p = {s->ranks, COSET_F32, s->dim, &s->dim, 1, (const void *const *)x};
    tool_progress bar = tool_progress_start(codec);
    int result = 0;
    *f = (tool_figures){0};
    for (int k = 0; k < s->steps && !result; k++) {
        for (int r = 0; r < s->ranks; r++)
            tool_draw(x[r], s->dim, s->distribution, s->mean_rms, (uint64_t)s->seed * 1000003u + (uint64_t)k, r);
        result = tool_estimate(e, &p, out, f, error);
        tool_progress_update(&bar, k + 1, s->steps, NULL);
    }
    tool_progress_end(&bar);
    tool_estimator_free(e);
    if (result)
        fprintf(stderr, "%s: %s: %s\n", name, codec, error);
    return result;
}

static int measure_all(settings *s, const char *name, float **x, void *out)
{
    char *list = strdup(s->codecs), *all_codecs = strdup(s->codecs), *rest = NULL;
    for (char *codec = all_codecs ? strtok_r(all_codecs, " ", &rest) : NULL; codec; codec = strtok_r(NULL, " ", &rest))
        tool_estimator_free(make(s, name, codec)); /* before hours are spent on the first */
    free(all_codecs);
    cJSON *all = cJSON_CreateArray();
    tool_table table = tool_table_start(tool_human_stream(s->json), columns);
    int failed = 0;
    for (char *codec = list ? strtok_r(list, " ", &rest) : NULL; codec; codec = strtok_r(NULL, " ", &rest)) {
        tool_figures f;
        int bad = measure(s, name, codec, x, out, &f);
        if (!bad)
            add_row(&table, all, s, codec, &f);
        failed |= bad;
    }
    free(list);
    return failed | tool_json_write(s->json, all);
}

int tool_bench_codec(int argc, char **argv)
{
    settings s;
    parse(&s, argc, argv);
    float **x = calloc((size_t)s.ranks, sizeof *x);
    void *out = malloc(4 * s.dim + 1);
    int enough = x && out;
    for (int r = 0; enough && r < s.ranks; r++)
        enough = (x[r] = malloc(4 * s.dim + 1)) != NULL;
    if (!enough)
        tool_bad_input(argv[0], "no memory for %d vectors of %zu coordinates", s.ranks, s.dim);
    int failed = measure_all(&s, argv[0], x, out);
    for (int r = 0; r < s.ranks; r++)
        free(x[r]);
    free(x);
    free(out);
    return failed ? TOOL_FAILED : TOOL_OK;
}
