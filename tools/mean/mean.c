/* SPDX-License-Identifier: Apache-2.0 */
/* `coset mean FILE...`: each file is one rank's vector; their mean as the ranks of a job would estimate it. */
#include "command.h"
#include "common/json.h"
#include "common/options.h"
#include "common/progress.h"
#include "estimate.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    coset_mean_options mean;
    const char *out, *json;
    int steps;
    int seed;
    double budget;
} settings;

static const char about[] =
    "Estimates the mean of vectors, one file (.npy or .safetensors) per rank, as the ranks of a job would, and reports the"
    " truth beside it."
    "\vExcess is the squared error over the sampling variance: mse / (spread2 / ranks). Bits count everything that a rank"
    " sends; both phases together are bits_sent * N / (N - 1). A codec's parameters follow its name:"
    " --codec qsgd:linf,bucket=512.";

static int parse(settings *s, int argc, char **argv)
{
    *s = (settings){.mean = COSET_MEAN_OPTIONS_INIT, .steps = 1};
    const tool_option options[] = {
        TOOL_OUTPUT("output", 'o', "OUT.npy", "write the estimate", &s->out),
        TOOL_TEXT("protocol", 0, "P", "sharded-star, star, tree, homomorphic, ... (sharded-star)", &s->mean.protocol),
        TOOL_TEXT("codec", 0, "C", "lattice, lattice:z, lattice:e8, lattice:entropy, none, eden, qsgd, ... (lattice)",
                  &s->mean.codec),
        TOOL_REAL("bits", 0, "B", "bits per coordinate and phase, instead of a budget", &s->mean.bits, 0.25, 32),
        TOOL_REAL("budget", 0, "E", "excess that is allowed (0.05)", &s->mean.error_budget, 1e-6, 1e3),
        TOOL_REAL("y", 0, "Y", "known bound on the distance of any two vectors (star, tree, sublinear)", &s->mean.y, 0,
                  1e300),
        TOOL_REAL("sigma", 0, "S", "known sigma, of whole vectors: E|x - mean|^2 <= S^2 (star, tree, robust)",
                  &s->mean.sigma, 0, 1e300),
        TOOL_INT("parameter", 0, "Q", "the protocol's q or m", &s->mean.parameter, 0, 65536),
        TOOL_INT("steps", 0, "K", "estimates to average the figures over, statistics carried on (1)", &s->steps, 1,
                 1000000),
        TOOL_INT("seed", 0, "S", "of the shared randomness (0)", &s->seed, 0, 2147483647),
        TOOL_OUTPUT("json", 0, "FILE", "write the figures as JSON", &s->json),
        TOOL_END,
    };
    int first = tool_options_parse(argc, argv, options, about, "+FILE...");
    s->mean.seed = (uint64_t)s->seed;
    if (s->mean.bits > 0 && s->mean.error_budget > 0)
        tool_bad_input(argv[0], "--bits and --budget exclude each other");
    if (first == argc)
        tool_bad_input(argv[0], "no files: give one .npy or .safetensors file per rank");
    if (argc - first > 4096)
        tool_bad_input(argv[0], "%d files: at most 4096", argc - first);
    return first;
}

/* The figures say how far the estimate is from the truth, and with NaN or infinity there is none. */
static void check_finite(const char *name, const char *path, const tool_vector *v)
{
    size_t i = tool_vector_not_finite(v), t = 0, in_tensor = i;
    if (i == v->count)
        return;
    for (; in_tensor >= v->tensors[t].count; t++)
        in_tensor -= v->tensors[t].count;
    double x = tool_vector_at(v->dtype, v->data, i);
    const char *what = isnan(x) ? "NaN" : x > 0 ? "infinity" : "-infinity";
    if (*v->tensors[t].name)
        tool_bad_input(name,
                       "%s: coordinate %zu of tensor \"%.100s\" (from 0) is %s: means of finite numbers are estimated",
                       path, in_tensor, v->tensors[t].name, what);
    tool_bad_input(name, "%s: coordinate %zu (from 0) is %s: means of finite numbers are estimated", path, i, what);
}

/* All files, in one dtype, with the same tensors, all numbers finite. Exits with 2 on bad input. */
static tool_vector *read_all(const char *name, char **paths, int n)
{
    tool_vector *v = calloc((size_t)n, sizeof *v);
    char error[TOOL_ERROR_TEXT];
    if (!v)
        tool_bad_input(name, "out of memory");
    coset_dtype dtype = COSET_F32;
    for (int r = 0; r < n; r++) {
        if (tool_vector_read(paths[r], &v[r], error))
            tool_bad_input(name, "%s", error);
        if (r > 0 && !tool_vectors_alike(&v[0], &v[r]))
            tool_bad_input(name, "%s has other tensors or lengths than %s (%zu and %zu elements)", paths[r], paths[0],
                           v[r].count, v[0].count);
        check_finite(name, paths[r], &v[r]);
        if (r == 0)
            dtype = v[0].dtype;
        else if (dtype != v[r].dtype)
            dtype = dtype == COSET_F64 || v[r].dtype == COSET_F64 ? COSET_F64 : COSET_F32;
    }
    for (int r = 0; r < n; r++)
        if (tool_vector_convert(&v[r], dtype))
            tool_bad_input(name, "out of memory");
    return v;
}

static void print_figures(FILE *f, const tool_figures *t, int ranks, size_t dim)
{
    double steps = t->steps;
    double both = ranks > 1 ? t->bits_sent / steps * ranks / (ranks - 1.0) : 0;
    fprintf(f, "%d ranks, %zu coordinates, %d step%s\n", ranks, dim, t->steps, t->steps > 1 ? "s" : "");
    fprintf(f, "bits per coordinate   %.4g sent, %.4g received by a rank; %.4g over both phases\n",
            t->bits_sent / steps, t->bits_received / steps, both);
    fprintf(f, "squared error         %.6g per coordinate\n", t->mse / steps);
    fprintf(f, "spread, mean          %.6g, %.6g (root mean square per coordinate)\n", sqrt(t->spread2 / steps),
            sqrt(t->mean2 / steps));
    if (t->spread2 > 0)
        fprintf(f, "excess over sampling  %.4g\n", t->excess / steps);
    fprintf(f, "repaired units, exact blocks   %.4g, %.4g\n", t->repaired / steps, t->exact / steps);
    fprintf(f, "all ranks the same    %s\n", t->identical ? "yes" : "NO");
}

static int save(const char *path, coset_dtype dtype, void *data, size_t count)
{
    char error[TOOL_ERROR_TEXT];
    tool_vector v = {.dtype = dtype, .count = count, .data = data};
    coset_dtype wide = dtype == COSET_F64 ? COSET_F64 : COSET_F32;
    int result = tool_vector_convert(&v, wide);
    if (result)
        snprintf(error, sizeof error, "out of memory");
    else
        result = tool_npy_write(path, wide, v.data, count, error);
    if (result)
        fprintf(stderr, "coset mean: %s\n", error);
    free(v.data);
    return result;
}

static int run(settings *s, const char *name, tool_vector *v, int ranks)
{
    char error[512];
    const void **x = calloc((size_t)ranks, sizeof *x);
    size_t *counts = calloc(v[0].ntensors + 1, sizeof *counts);
    void *out = malloc(v[0].count * coset_dtype_size(v[0].dtype) + 1);
    if (!x || !counts || !out)
        tool_bad_input(name, "out of memory");
    for (int r = 0; r < ranks; r++)
        x[r] = v[r].data;
    for (size_t t = 0; t < v[0].ntensors; t++)
        counts[t] = v[0].tensors[t].count;
    tool_problem p = {ranks, v[0].dtype, v[0].count, counts, v[0].ntensors, x};
    tool_estimator *e = tool_estimator_make(ranks, &s->mean, error);
    if (!e)
        tool_bad_input(name, "%s", error);
    tool_figures figures = {0};
    tool_progress bar = tool_progress_start("estimating");
    int result = 0;
    for (int k = 0; k < s->steps && !result; k++) {
        result = tool_estimate(e, &p, out, &figures, error);
        tool_progress_update(&bar, k + 1, s->steps, NULL);
    }
    tool_progress_end(&bar);
    if (result) {
        fprintf(stderr, "%s: %s\n", name, error);
        free(out);
    } else {
        print_figures(tool_human_stream(s->json), &figures, ranks, p.dim);
        result = s->out ? save(s->out, p.dtype, out, p.dim) : (free(out), 0);
        if (s->json)
            result |= tool_json_write(s->json, tool_figures_json(&figures, ranks, p.dim,
                                                                 s->mean.protocol ? s->mean.protocol : "sharded-star",
                                                                 s->mean.codec ? s->mean.codec : "lattice"));
    }
    tool_estimator_free(e);
    free(x);
    free(counts);
    return result ? TOOL_FAILED : TOOL_OK;
}

int tool_mean(int argc, char **argv)
{
    settings s;
    int first = parse(&s, argc, argv), ranks = argc - first;
    tool_vector *v = read_all(argv[0], argv + first, ranks);
    int result = run(&s, argv[0], v, ranks);
    for (int r = 0; r < ranks; r++)
        tool_vector_free(&v[r]);
    free(v);
    return result;
}
