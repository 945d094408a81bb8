/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trainer.h"

#include "common/stats.h"

#include <math.h>
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

double learner_difference(const learner *a, const learner *b, double *largest)
{
    double difference = 0;
    *largest = 0;
    for (size_t i = 0; i < a->total; i++) {
        double x = (double)a->weights[i], y = (double)b->weights[i];
        if (isfinite(x))
            *largest = fmax(*largest, fabs(x));
        if (isfinite(x) && isfinite(y))
            difference = fmax(difference, fabs(x - y));
        else if (x != y && !(isnan(x) && isnan(y)))
            difference = INFINITY;
    }
    return difference;
}

/* Several ranks' parts of the data; `sum` where there is more than one: their gradients, added up. */
typedef struct {
    batches *parts;
    int count;
    float *sum;
} union_batch;

static void union_free(union_batch *u)
{
    for (int i = 0; i < u->count; i++)
        batches_free(&u->parts[i]);
    free(u->parts);
    free(u->sum);
}

static int union_create(union_batch *u, const learner *l, const train_plan *plan, int first, int last, int ranks)
{
    *u = (union_batch){.parts = calloc((size_t)(last - first + 1), sizeof *u->parts)};
    int status = u->parts ? 0 : -1;
    for (int r = first; r <= last && !status; r++)
        status =
            batches_create(&u->parts[u->count++], plan->seed, r, ranks, l->model->train_samples, plan->global_batch);
    if (!status && first < last && !(u->sum = malloc(l->total * sizeof *u->sum)))
        status = -1;
    if (status)
        union_free(u);
    return status;
}

static size_t accumulated(const train_plan *plan)
{
    return plan->accumulate ? plan->accumulate : 1;
}

/* The passes of a step over one part: their gradients add up. *loss += the mean over its samples. */
static int passes(learner *l, const train_plan *plan, batches *part, float scale, size_t step, const train_hooks *hooks,
                  double *loss)
{
    size_t count = accumulated(plan);
    for (int p = 0; p < l->model->params; p++)
        memset(l->grad[p], 0, l->model->param[p].count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        double losses;
        bool last = i + 1 == count;
        int status = hooks->backward ? hooks->backward(hooks->ctx, last) : 0;
        if (!status)
            status = l->model->ops->gradient(l->model, l->weight, batches_at(part, step * count + i), part->batch,
                                             scale, l->grad, last ? hooks->ready : NULL, hooks->ctx, &losses);
        if (status)
            return status;
        *loss += losses / (double)(part->batch * count);
    }
    return 0;
}

/* sum = (or +=) the gradients; or back, divided by the number of parts. */
static void gather_gradients(const learner *l, float *sum, bool first)
{
    for (int p = 0; p < l->model->params; sum += l->model->param[p++].count)
        for (size_t i = 0; i < l->model->param[p].count; i++)
            sum[i] = first ? l->grad[p][i] : sum[i] + l->grad[p][i];
}

static void mean_gradients(learner *l, const float *sum, int parts)
{
    for (int p = 0; p < l->model->params; sum += l->model->param[p++].count)
        for (size_t i = 0; i < l->model->param[p].count; i++)
            l->grad[p][i] = sum[i] / (float)parts;
}

/* The mean of the parts' gradients, as an all-reduce in rank order makes it: the same rounding, so that training alone does
 * not drift from training together, which after some hundred steps a single flipped rectifier lets it do. */
static int gradients(learner *l, const train_plan *plan, union_batch *u, float scale, size_t step,
                     const train_hooks *hooks, double *loss)
{
    *loss = 0;
    for (int i = 0; i < u->count; i++) {
        int status = passes(l, plan, &u->parts[i], scale, step, hooks, loss);
        if (status)
            return status;
        if (u->sum)
            gather_gradients(l, u->sum, i == 0);
    }
    *loss /= u->count;
    if (u->sum)
        mean_gradients(l, u->sum, u->count);
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
    t->samples = 0;
    for (int i = 0; i < u->count; i++)
        t->samples += u->parts[i].batch * accumulated(plan);
    int status = gradients(l, plan, u, scale, t->step, hooks, &t->loss);
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
    /* each rank gives a part whose mean over the ranks must be sum / global batch */
    float scale = (float)ranks / (float)(plan->global_batch * accumulated(plan));
    for (size_t step = 0; step < steps && !status; step++) {
        train_step t = {.step = step, .steps = steps};
        status = one_step(l, plan, &u, scale, hooks, &t);
        if (!status && hooks->stepped)
            status = hooks->stepped(hooks->ctx, l, &t);
    }
    union_free(&u);
    return status;
}
