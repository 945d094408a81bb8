/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job.h"

#include "command.h"
#include "common/progress.h"
#include "common/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * How far N ranks and one rank may drift apart through the order of additions alone, relative to the largest weight.
 * Measured: below 2e-6 after 20 epochs on 2 to 8 ranks; a single wrong gradient moves weights by more than 1e-3.
 */
static const double rounding_bound = 1e-4;

/* What one rank carries through its run. The arrays have an entry per step. */
typedef struct {
    const train_settings *settings;
    tool_rank *rank;
    model *model;
    learner learner;
    averager average;
    trace *trace;
    tool_progress bar;
    size_t steps, per_epoch, skipped;
    double *loss, *sent, *step_s, *exposed;
    double shown_loss; /* running mean for the progress bar */
    size_t hashed;     /* averagings whose weights were compared */
} job;

static int out_of_memory(const tool_rank *rank)
{
    fprintf(stderr, "%s: rank %d: out of memory\n", rank->command, rank->rank);
    return TOOL_FAILED;
}

/* Gathers every rank's hash; the same answer on all ranks. */
static int compare_weights(const job *j, uint64_t *hash, bool *identical)
{
    uint64_t *all = calloc((size_t)j->rank->size, sizeof *all);
    if (!all)
        return out_of_memory(j->rank);
    *hash = learner_hash(&j->learner);
    int status = TOOL_OK;
    if (coset_allgather(hash, all, 1, COSET_U64, j->rank->comm))
        status = tool_rank_failed(j->rank, "comparing weights");
    *identical = true;
    for (int i = 0; i < j->rank->size && !status; i++)
        *identical = *identical && all[i] == all[0];
    free(all);
    return status;
}

/* ---- hooks ---- */

static int on_backward(void *ctx, bool last)
{
    job *j = ctx;
    return averager_backward(&j->average, last);
}

static void on_ready(void *ctx, int param)
{
    job *j = ctx;
    averager_ready(&j->average, param);
}

static int on_gradients(void *ctx, learner *l, bool *skip)
{
    (void)l;
    job *j = ctx;
    return averager_gradients(&j->average, skip);
}

static int on_models(void *ctx, learner *l)
{
    (void)l;
    job *j = ctx;
    return averager_models(&j->average);
}

static void show(job *j, const train_step *t)
{
    double seconds = t->end - t->start, units = (double)(t->samples * j->model->units) * j->rank->size;
    double bits = j->average.averagings
                      ? 8 * j->average.sent_bytes / ((double)j->average.averagings * (double)j->learner.total)
                      : 0;
    char note[120];
    j->shown_loss = t->step ? 0.95 * j->shown_loss + 0.05 * t->loss : t->loss;
    snprintf(note, sizeof note, "loss %.4f, %.0f %s/s, exposed %.2f ms, %.2f bits/coordinate", j->shown_loss,
             units / seconds, j->model->ops->unit, 1e3 * t->exposed, bits);
    tool_progress_update(&j->bar, (double)t->step + 1, (double)t->steps, note);
}

static int check_weights(job *j, const train_step *t)
{
    if (!j->settings->check_weights || j->hashed == j->average.averagings)
        return TOOL_OK;
    j->hashed = j->average.averagings;
    uint64_t hash;
    bool identical;
    if (compare_weights(j, &hash, &identical))
        return TOOL_FAILED;
    if (!identical && j->rank->rank == 0)
        fprintf(stderr, "%s: step %zu: the ranks' weights differ\n", j->rank->command, t->step + 1);
    return identical ? TOOL_OK : TOOL_FAILED;
}

static int on_stepped(void *ctx, const learner *l, const train_step *t)
{
    (void)l;
    job *j = ctx;
    j->loss[t->step] = t->loss;
    j->sent[t->step] = j->average.sent_bytes; /* cumulative; differences are taken at the end */
    j->step_s[t->step] = t->end - t->start;
    j->exposed[t->step] = t->exposed;
    j->skipped += t->skipped;
    show(j, t);
    if (j->trace && trace_add(j->trace, &j->average, t))
        return out_of_memory(j->rank);
    return check_weights(j, t);
}

/* ---- figures ---- */

static double sum_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* From the records of this rank to those of all, and to the result. */
static int summarise(job *j, job_result *out)
{
    size_t n = j->steps, last = n - (n >= j->per_epoch ? j->per_epoch : (n + 9) / 10);
    for (size_t i = n; i-- > 1;)
        j->sent[i] -= j->sent[i - 1];
    out->repaired = j->average.repaired;
    if (tool_rank_sum(j->rank, j->loss, n) || tool_rank_max(j->rank, j->sent, n) ||
        tool_rank_max(j->rank, j->step_s, n) || tool_rank_max(j->rank, j->exposed, n) ||
        tool_rank_sum(j->rank, &out->repaired, 1))
        return TOOL_FAILED;
    for (size_t i = 0; i < n; i++)
        j->loss[i] /= j->rank->size;
    double seconds = sum_of(j->step_s, n), exposed = sum_of(j->exposed, n), sent = sum_of(j->sent, n);
    const train_settings *s = j->settings;
    out->codec = s->codec;
    out->steps = n;
    out->skipped = j->skipped;
    out->parameters = (double)j->learner.total;
    out->exposed_share = exposed / seconds;
    out->bytes_per_step = sent / (double)n;
    out->bits_per_coord = 8 * sent / ((double)j->average.averagings * out->parameters);
    out->train_loss = sum_of(j->loss + last, n - last) / (double)(n - last);
    out->unit_rate = (double)n * (double)s->batch * s->accumulate * (double)j->model->units / seconds;
    out->step_s = tool_percentile(j->step_s, n, 0.5);
    out->exposed_s = s->local_steps > 1 ? exposed / (double)n : tool_percentile(j->exposed, n, 0.5);
    out->loss = j->loss;
    out->sent = j->sent;
    j->loss = j->sent = NULL;
    return compare_weights(j, &out->hash, &out->identical);
}

bool job_equal_to_rounding(const job_result *r)
{
    return !r->verified || r->difference <= rounding_bound * r->largest;
}

/* ---- the same on one rank ---- */

/* Exact averages of whole gradients, by an optimizer that does not magnify rounding, and in little time. */
static bool can_verify(const train_settings *s)
{
    return !strcmp(s->model_name, "mlp") && !strcmp(s->codec, "none") && !strcmp(s->optimizer_name, "sgd") &&
           s->local_steps <= 1 && !(s->clip > 0);
}

static int show_alone(void *ctx, const learner *l, const train_step *t)
{
    (void)l;
    tool_progress_update(ctx, (double)t->step + 1, (double)t->steps, NULL);
    return 0;
}

static int verify(job *j, job_result *out)
{
    learner alone;
    const train_plan plan = settings_plan(j->settings);
    tool_progress bar = tool_progress_start("one rank on the same batches");
    const train_hooks hooks = {.stepped = show_alone, .ctx = &bar};
    if (learner_create(&alone, j->model, &plan, true))
        return out_of_memory(j->rank);
    int status = train_run(&alone, &plan, 0, j->rank->size - 1, j->rank->size, &hooks);
    tool_progress_end(&bar);
    out->difference = learner_difference(&alone, &j->learner, &out->largest);
    out->verified = true;
    learner_free(&alone);
    return status ? out_of_memory(j->rank) : TOOL_OK;
}

/* ---- the run ---- */

static int train(job *j, job_result *out)
{
    const train_plan plan = settings_plan(j->settings);
    const train_hooks hooks = {on_backward, on_ready, on_gradients, on_models, on_stepped, j};
    j->bar = tool_progress_start(j->settings->codec);
    j->bar.shown = j->bar.shown && j->rank->rank == 0;
    int status = train_run(&j->learner, &plan, j->rank->rank, j->rank->rank, j->rank->size, &hooks);
    tool_progress_end(&j->bar);
    if (status < 0)
        return out_of_memory(j->rank);
    if (!status)
        status = summarise(j, out);
    if (status || j->rank->rank)
        return status;
    if (j->model->ops->evaluate(j->model, j->learner.weight, &out->score))
        return out_of_memory(j->rank);
    return can_verify(j->settings) ? verify(j, out) : TOOL_OK;
}

/* Before anything is shared: every rank comes to the same answer by itself. */
static int prepare(job *j)
{
    const train_plan plan = settings_plan(j->settings);
    j->steps = train_steps(j->model, &plan, j->rank->size, &j->per_epoch);
    if (!j->steps) {
        if (j->rank->rank == 0)
            fprintf(
                stderr,
                "%s: --batch=%d, --accumulate=%d do not fit %d ranks: each needs a sample a batch, and a step an epoch\n",
                j->rank->command, j->settings->batch, j->settings->accumulate, j->rank->size);
        return TOOL_USAGE;
    }
    j->loss = calloc(j->steps, sizeof(double));
    j->sent = calloc(j->steps, sizeof(double));
    j->step_s = calloc(j->steps, sizeof(double));
    j->exposed = calloc(j->steps, sizeof(double));
    if (!j->loss || !j->sent || !j->step_s || !j->exposed ||
        learner_create(&j->learner, j->model, &plan, averager_needs_own_gradients(j->settings)))
        return out_of_memory(j->rank);
    return averager_create(&j->average, j->settings, j->rank, &j->learner);
}

int job_run(const train_settings *s, tool_rank *rank, trace *t, job_result *out)
{
    job j = {.settings = s, .rank = rank, .trace = t, .model = s->model->create((uint64_t)s->seed)};
    *out = (job_result){0};
    if (!j.model)
        return out_of_memory(rank);
    int status = prepare(&j);
    if (!status)
        status = train(&j, out);
    averager_destroy(&j.average);
    learner_free(&j.learner);
    free(j.loss);
    free(j.sent);
    free(j.step_s);
    free(j.exposed);
    j.model->ops->destroy(j.model);
    return status;
}

void job_free(job_result *r)
{
    free(r->loss);
    free(r->sent);
    *r = (job_result){0};
}
