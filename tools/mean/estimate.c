/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate.h"

#include "local.h"
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool_estimator {
    int ranks;
    coset_mean **means;
};

void tool_estimator_free(tool_estimator *e)
{
    if (!e)
        return;
    for (int r = 0; e->means && r < e->ranks; r++)
        coset_mean_destroy(e->means[r]);
    free(e->means);
    free(e);
}

tool_estimator *tool_estimator_make(int ranks, const coset_mean_options *options, char *error)
{
    tool_estimator *e = calloc(1, sizeof *e);
    coset_error why = COSET_ERROR_INIT;
    snprintf(why.text, sizeof why.text, "out of memory");
    if (e) {
        e->ranks = ranks;
        e->means = calloc((size_t)ranks, sizeof(coset_mean *));
    }
    bool good = e && e->means;
    for (int r = 0; good && r < ranks; r++)
        good = coset_mean_create(r, ranks, options, &e->means[r], &why) == COSET_OK;
    if (good)
        return e;
    snprintf(error, sizeof why.text, "%s", why.text);
    tool_estimator_free(e);
    return NULL;
}

/* Everything that one call needs beside the vectors. */
typedef struct {
    char *outputs; /* [rank][dim] */
    coset_span *spans;
    const coset_span **of_rank;
    coset_mean_report *reports;
} workspace;

static void workspace_free(workspace *w)
{
    free(w->outputs);
    free(w->spans);
    free(w->of_rank);
    free(w->reports);
}

static bool workspace_make(workspace *w, const tool_problem *p)
{
    size_t ranks = (size_t)p->ranks, width = coset_dtype_size(p->dtype);
    w->outputs = malloc(ranks * p->dim * width + 1);
    w->spans = calloc(ranks * p->ntensors + 1, sizeof *w->spans);
    w->of_rank = calloc(ranks, sizeof(coset_span *));
    w->reports = calloc(ranks, sizeof *w->reports);
    if (!w->outputs || !w->spans || !w->of_rank || !w->reports)
        return false;
    for (size_t r = 0; r < ranks; r++) {
        w->reports[r] = (coset_mean_report)COSET_MEAN_REPORT_INIT;
        w->of_rank[r] = w->spans + r * p->ntensors;
        size_t at = 0;
        for (size_t t = 0; t < p->ntensors; t++) {
            w->spans[r * p->ntensors + t] = (coset_span){t, (const char *)p->x[r] + at * width,
                                                         w->outputs + (r * p->dim + at) * width, p->counts[t]};
            at += p->counts[t];
        }
    }
    return true;
}

static void compare(const tool_problem *p, const workspace *w, tool_figures *f)
{
    double spread = 0, error = 0, energy = 0;
    for (size_t i = 0; i < p->dim; i++) {
        double mean = 0, around = 0;
        for (int r = 0; r < p->ranks; r++)
            mean += tool_vector_at(p->dtype, p->x[r], i) / p->ranks;
        for (int r = 0; r < p->ranks; r++)
            around += pow(tool_vector_at(p->dtype, p->x[r], i) - mean, 2);
        spread += p->ranks > 1 ? around / (p->ranks - 1) : 0;
        energy += mean * mean;
        error += pow(tool_vector_at(p->dtype, w->outputs, i) - mean, 2);
    }
    double dim = p->dim ? (double)p->dim : 1;
    f->mse += error / dim;
    f->spread2 += spread / dim;
    f->mean2 += energy / dim;
    f->excess += error / (spread / p->ranks);
}

int tool_estimate(tool_estimator *e, const tool_problem *p, void *out, tool_figures *f, char *error)
{
    workspace w = {0};
    size_t bytes = p->dim * coset_dtype_size(p->dtype);
    coset_error why = COSET_ERROR_INIT;
    snprintf(why.text, sizeof why.text, "out of memory");
    coset_status status = COSET_ERR_MEMORY;
    if (workspace_make(&w, p)) {
        tool_mean_times times = {0};
        status = tool_mean_local_timed(e->means, p->ranks, w.of_rank, p->ntensors, p->dtype, w.reports, &times, &why);
        f->encoding += times.encoding;
        f->decoding += times.decoding;
    }
    if (!status) {
        if (f->steps == 0)
            f->identical = true;
        f->steps++;
        compare(p, &w, f);
        double per = 1.0 / p->ranks / (p->dim ? (double)p->dim : 1);
        for (int r = 0; r < p->ranks; r++) {
            f->bits_sent += per * (double)w.reports[r].bits_sent;
            f->bits_received += per * (double)w.reports[r].bits_received;
            f->identical &= memcmp(w.outputs, w.outputs + (size_t)r * bytes, bytes) == 0;
        }
        f->repaired += (double)w.reports[0].repaired;
        f->exact += (double)w.reports[0].exact;
        if (bytes)
            memcpy(out, w.outputs, bytes);
    } else {
        snprintf(error, sizeof why.text, "%s", why.text);
    }
    workspace_free(&w);
    return status ? -1 : 0;
}

cJSON *tool_figures_json(const tool_figures *f, int ranks, size_t dim, const char *protocol, const char *codec)
{
    cJSON *o = cJSON_CreateObject();
    double steps = f->steps ? f->steps : 1;
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"bits_sent_per_coord", f->bits_sent},
        {"bits_received_per_coord", f->bits_received},
        {"mse_per_coord", f->mse},
        {"spread2_per_coord", f->spread2},
        {"mean2_per_coord", f->mean2},
        {"excess_over_sampling", f->excess},
        {"repaired_units", f->repaired},
        {"exact_blocks", f->exact},
    };
    cJSON_AddNumberToObject(o, "ranks", ranks);
    cJSON_AddNumberToObject(o, "dim", (double)dim);
    cJSON_AddStringToObject(o, "protocol", protocol);
    cJSON_AddStringToObject(o, "codec", codec);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].value / steps);
    cJSON_AddBoolToObject(o, "identical_on_all_ranks", f->identical);
    return o;
}
