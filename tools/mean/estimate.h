/* SPDX-License-Identifier: Apache-2.0 */
/* Averaging vectors as the ranks of a job would, and the truth beside the result: for `coset mean` and `coset bench codec`. */
#ifndef COSET_TOOLS_MEAN_ESTIMATE_H
#define COSET_TOOLS_MEAN_ESTIMATE_H
#include <cjson/cJSON.h>
#include <coset_mean.h>
#include <stdbool.h>

/* What is to be averaged: x[rank] points to `dim` elements, cut in tensors. */
typedef struct {
    int ranks;
    coset_dtype dtype;
    size_t dim;
    const size_t *counts; /* of the tensors; their sum is dim */
    size_t ntensors;
    const void *const *x;
} tool_problem;

/* Sums over steps; divided by `steps` when asked for. */
typedef struct {
    int steps;
    double bits_sent, bits_received; /* per coordinate and rank */
    double mse, spread2, mean2, excess;
    double repaired, exact;
    double encoding, decoding; /* seconds, all ranks together */
    bool identical;
} tool_figures;

typedef struct tool_estimator tool_estimator;
/* The ranks of a job. NULL after a line in `error` (256 bytes). */
tool_estimator *tool_estimator_make(int ranks, const coset_mean_options *options, char *error);
void tool_estimator_free(tool_estimator *e);
/* One call; adds to *figures. The estimate of rank 0 is left in `out` (dim elements). Returns 0, or -1 with `error`. */
int tool_estimate(tool_estimator *e, const tool_problem *p, void *out, tool_figures *figures, char *error);
/* The keys of `coset mean`, averaged. */
cJSON *tool_figures_json(const tool_figures *f, int ranks, size_t dim, const char *protocol, const char *codec);
#endif
