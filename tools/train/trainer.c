/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include "common/stats.h"

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

int learner_create(learner *l, model *m, const train_plan *plan, bool own_grads)
{
    const adamw_powers fresh = ADAMW_POWERS_INIT;
    size_t total = model_total(m), params = (size_t)m->params;
    bool adamw = plan->optimizer == OPTIMIZER_ADAMW;
    *l = (learner){.model = m, .total = total, .powers = fresh};
    l->weights = calloc(total, sizeof(float));
    l->first = calloc(total, sizeof(float));
    l->second = adamw ? calloc(total, sizeof(float)) : NULL;
    l->grads = own_grads ? calloc(total, sizeof(float)) : NULL;
    l->weight = calloc(params, sizeof *l->weight);
    l->grad = calloc(params, sizeof *l->grad);
    if (!l->weights || !l->first || (adamw && !l->second) || (own_grads && !l->grads) || !l->weight || !l->grad) {
        learner_free(l);
        return -1;
    }
    point(m, l->weights, l->weight);
    if (own_grads)
        point(m, l->grads, l->grad);
    m->ops->init(m, plan->seed, l->weight);
    return 0;
}

void learner_free(learner *l)
{
    free(l->weights);
    free(l->first);
    free(l->second);
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

static size_t accumulated(const train_plan *plan)
{
    return plan->accumulate ? plan->accumulate : 1;
}

/* The passes of a step: their gradients add up. *loss = the mean over this process's samples. */
static int passes(learner *l, const train_plan *plan, union_batch *u, float scale, size_t step,
                  const train_hooks *hooks, double *loss)
{
    size_t count = accumulated(plan);
    for (int p = 0; p < l->model->params; p++)
        memset(l->grad[p], 0, l->model->param[p].count * sizeof(float));
    *loss = 0;
    for (size_t i = 0; i < count; i++) {
        double losses;
        bool last = i + 1 == count;
        union_at(u, step * count + i);
        int status = hooks->backward ? hooks->backward(hooks->ctx, last) : 0;
        if (!status)
            status = l->model->ops->gradient(l->model, l->weight, u->samples, u->batch, scale, l->grad,
                                             last ? hooks->ready : NULL, hooks->ctx, &losses);
        if (status)
            return status;
        *loss += losses / (double)(u->batch * count);
    }
    return 0;
}

static void optimize(learner *l, const train_plan *plan, float rate)
{
    size_t at = 0;
    adamw_advance(&l->powers);
    for (int p = 0; p < l->model->params; p++) {
        const model_param *param = &l->model->param[p];
        if (plan->optimizer == OPTIMIZER_ADAMW)
            adamw_step(l->weight[p], l->first + at, l->second + at, l->grad[p], param->count, rate,
                       param->ndim > 1 ? plan->decay : 0, &l->powers);
        else
            sgd_step(l->weight[p], l->first + at, l->grad[p], param->count, rate, plan->momentum);
        at += param->count;
    }
}

static bool models_are_due(const train_plan *plan, const train_step *t)
{
    return plan->local_steps > 1 && ((t->step + 1) % plan->local_steps == 0 || t->step + 1 == t->steps);
}

static int one_step(learner *l, const train_plan *plan, union_batch *u, float scale, const train_hooks *hooks,
                    train_step *t)
{
    t->start = tool_now();
    t->samples = u->batch * accumulated(plan);
    int status = passes(l, plan, u, scale, t->step, hooks, &t->loss);
    t->computed = tool_now();
    if (!status && plan->local_steps <= 1 && hooks->gradients)
        status = hooks->gradients(hooks->ctx, l, &t->skipped);
    t->averaged = tool_now();
    t->exposed = t->averaged - t->computed;
    if (!status && !t->skipped)
        optimize(l, plan, planned_rate(plan->rate, t->step, t->steps, plan->warm_up));
    if (!status && models_are_due(plan, t) && hooks->models) {
        double before = tool_now();
        status = hooks->models(hooks->ctx, l);
        t->exposed = tool_now() - before;
    }
    t->end = tool_now();
    return status;
}

size_t train_steps(const model *m, const train_plan *plan, int ranks, size_t *per_epoch)
{
    batches b;
    if (batches_create(&b, plan->seed, 0, ranks, m->train_samples, plan->global_batch))
        return 0;
    *per_epoch = b.steps_per_epoch / accumulated(plan);
    batches_free(&b);
    return !*per_epoch ? 0 : plan->steps ? plan->steps : plan->epochs * *per_epoch;
}

int train_run(learner *l, const train_plan *plan, int first, int last, int ranks, const train_hooks *hooks)
{
    union_batch u;
    size_t per_epoch, steps = train_steps(l->model, plan, ranks, &per_epoch);
    int status = steps ? union_create(&u, l, plan, first, last, ranks) : -2;
    if (status)
        return status;
    /* With `ranks` processes each gives a part whose mean over the ranks must be sum / global batch; alone, the sum. */
    float share = first == last ? (float)ranks : 1.0f;
    float scale = share / (float)(plan->global_batch * accumulated(plan));
    for (size_t step = 0; step < steps && !status; step++) {
        train_step t = {.step = step, .steps = steps};
        status = one_step(l, plan, &u, scale, hooks, &t);
        if (!status && hooks->stepped)
            status = hooks->stepped(hooks->ctx, l, &t);
    }
    union_free(&u);
    return status;
}
