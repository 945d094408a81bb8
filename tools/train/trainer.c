/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include "common/stats.h"
#include "train/optimizer.h"

#include <stdlib.h>
#include <string.h>

size_t model_total(const model *m)
{
    size_t total = 0;
    for (int p = 0; p < m->params; p++)
        total += m->param[p].count;
    return total;
}

static void point(const model *m, float *flat, float **each)
{
    for (int p = 0; p < m->params; p++) {
        each[p] = flat;
        flat += m->param[p].count;
    }
}

int learner_create(learner *l, model *m, uint64_t seed, float *grads)
{
    size_t total = model_total(m), params = (size_t)m->params;
    *l = (learner){.model = m, .total = total, .grads = grads, .grads_are_ours = !grads};
    l->weights = calloc(total, sizeof(float));
    l->velocity = calloc(total, sizeof(float));
    if (!grads)
        l->grads = calloc(total, sizeof(float));
    l->weight = calloc(params, sizeof *l->weight);
    l->grad = calloc(params, sizeof *l->grad);
    if (!l->weights || !l->velocity || !l->grads || !l->weight || !l->grad) {
        learner_free(l);
        return -1;
    }
    point(m, l->weights, l->weight);
    point(m, l->grads, l->grad);
    m->ops->init(m, seed, l->weight);
    return 0;
}

void learner_free(learner *l)
{
    free(l->weights);
    free(l->velocity);
    if (l->grads_are_ours)
        free(l->grads);
    free(l->weight);
    free(l->grad);
    *l = (learner){0};
}

uint64_t learner_hash(const learner *l)
{
    const uint64_t offset = 0xcbf29ce484222325u, prime = 0x100000001b3u;
    const unsigned char *bytes = (const unsigned char *)l->weights;
    uint64_t hash = offset;
    for (size_t i = 0; i < l->total * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * prime;
    return hash;
}

/* The samples of several ranks' parts of one step, one after another. */
typedef struct {
    batches *parts;
    int count;
    size_t *samples, batch;
} union_batch;

static void union_free(union_batch *u)
{
    for (int i = 0; i < u->count; i++)
        batches_free(&u->parts[i]);
    free(u->parts);
    free(u->samples);
}

static int union_create(union_batch *u, const learner *l, const train_plan *plan, int first, int last, int ranks)
{
    *u = (union_batch){.parts = calloc((size_t)(last - first + 1), sizeof *u->parts)};
    int status = u->parts ? 0 : -1;
    for (int r = first; r <= last && !status; r++) {
        batches *b = &u->parts[u->count++];
        status = batches_create(b, plan->seed, r, ranks, l->model->train_samples, plan->global_batch);
        u->batch += b->batch;
    }
    if (!status && !(u->samples = malloc(u->batch * sizeof *u->samples)))
        status = -1;
    if (status)
        union_free(u);
    return status;
}

static void union_at(union_batch *u, size_t step)
{
    size_t *to = u->samples;
    for (int i = 0; i < u->count; i++) {
        memcpy(to, batches_at(&u->parts[i], step), u->parts[i].batch * sizeof *to);
        to += u->parts[i].batch;
    }
}

/* Seconds of each step. */
typedef struct {
    double *step, *sync;
} timings;

/* *loss = the mean over this process's samples. */
static int train_step(learner *l, const train_plan *plan, const union_batch *u, float scale, size_t step, size_t steps,
                      const train_hooks *hooks, timings *t, double *loss)
{
    double start = tool_now();
    *loss = l->model->ops->gradient(l->model, l->weight, u->samples, u->batch, scale, l->grad, NULL, NULL) /
            (double)u->batch;
    double computed = tool_now();
    int status = hooks->sync ? hooks->sync(hooks->ctx, l->grads, l->total) : 0;
    if (status)
        return status;
    double synced = tool_now();
    sgd_step(l->weights, l->velocity, l->grads, l->total, falling_rate(plan->rate, step, steps), plan->momentum);
    t->sync[step] = synced - computed;
    t->step[step] = tool_now() - start;
    return 0;
}

static void summarise(timings *t, size_t steps, train_figures *out)
{
    double step_sum = 0, sync_sum = 0;
    for (size_t i = 0; i < steps; i++) {
        step_sum += t->step[i];
        sync_sum += t->sync[i];
    }
    out->steps = steps;
    out->sync_share = step_sum > 0 ? sync_sum / step_sum : 0;
    out->step_s = tool_percentile(t->step, steps, 0.5);
    out->sync_s = tool_percentile(t->sync, steps, 0.5);
}

static int run_steps(learner *l, const train_plan *plan, union_batch *u, int ranks, size_t steps,
                     const train_hooks *hooks, timings *t, train_figures *out)
{
    /* With `ranks` processes each gives a part whose mean over the ranks must be sum / global batch; alone, the sum. */
    float scale = (hooks->sync ? (float)ranks : 1.0f) / (float)plan->global_batch;
    size_t per_epoch = u->parts[0].steps_per_epoch, in_epoch = 0;
    double epoch_loss = 0;
    for (size_t step = 0; step < steps; step++) {
        double loss;
        union_at(u, step);
        int status = train_step(l, plan, u, scale, step, steps, hooks, t, &loss);
        if (status)
            return status;
        if (step % per_epoch == 0)
            epoch_loss = 0, in_epoch = 0;
        epoch_loss += loss;
        in_epoch++;
        if (hooks->progress)
            hooks->progress(hooks->ctx, step + 1, steps, epoch_loss / (double)in_epoch);
    }
    out->last_loss = in_epoch ? epoch_loss / (double)in_epoch : 0;
    summarise(t, steps, out);
    return hooks->mean ? hooks->mean(hooks->ctx, &out->last_loss) : 0;
}

int train_run(learner *l, const train_plan *plan, int first, int last, int ranks, const train_hooks *hooks,
              train_figures *out)
{
    union_batch u;
    int status = union_create(&u, l, plan, first, last, ranks);
    if (status)
        return status;
    size_t steps = plan->steps ? plan->steps : plan->epochs * u.parts[0].steps_per_epoch;
    timings t = {calloc(steps, sizeof(double)), calloc(steps, sizeof(double))};
    status = t.step && t.sync ? run_steps(l, plan, &u, ranks, steps, hooks, &t, out) : -1;
    free(t.step);
    free(t.sync);
    union_free(&u);
    return status;
}
