/* SPDX-License-Identifier: Apache-2.0 */
#include "train/average.h"

#include "command.h"
#include "common/buckets.h"
#include "common/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const averager *a, coset_status status, const char *what)
{
    if (status != COSET_ERR_ABORTED) /* else the rank that gave up has told why */
        fprintf(stderr, "%s: rank %d: %s: %s\n", a->rank->command, a->rank->rank, what, coset_ddp_why(a->ddp));
    return TOOL_FAILED;
}

static uint64_t id_of(int param)
{
    return (uint64_t)param + 1;
}

/* ---- bf16: the upper half of a float, rounded to nearest, ties to even ---- */

static uint16_t narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN, and quiet */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* ---- between the learner's memory and the buckets ---- */

static size_t count_of(const averager *a, int param)
{
    return a->learner->model->param[param].count;
}

static void put(averager *a, int param, const float *from)
{
    void *to = coset_ddp_grad(a->ddp, id_of(param));
    size_t n = count_of(a, param);
    if (!a->half)
        memcpy(to, from, n * sizeof *from);
    for (size_t i = 0; i < n && a->half; i++)
        ((uint16_t *)to)[i] = narrow(from[i]);
}

static void get(averager *a, int param, float *to)
{
    const void *from = coset_ddp_grad(a->ddp, id_of(param));
    size_t n = count_of(a, param);
    if (!a->half)
        memcpy(to, from, n * sizeof *to);
    for (size_t i = 0; i < n && a->half; i++)
        to[i] = widen(((const uint16_t *)from)[i]);
}

static void bind_gradients(averager *a)
{
    for (int p = 0; p < a->learner->model->params && !a->learner->grads; p++)
        a->learner->grad[p] = coset_ddp_grad(a->ddp, id_of(p));
}

/* ---- the reducer ---- */

bool averager_needs_own_gradients(const train_settings *s)
{
    return s->local_steps > 1 || !strcmp(s->codec, "bf16");
}

static int create_reducer(averager *a, const coset_param *params)
{
    const train_settings *s = a->settings;
    const coset_mean_options mean = settings_mean(s);
    coset_ddp_options options = COSET_DDP_OPTIONS_INIT;
    options.mean = a->half || !strcmp(s->codec, "none") ? NULL : &mean;
    tool_bucket_sizes(s->bucket_mb, &options);
    if (coset_ddp_create(a->rank->comm, &options, params, (size_t)a->learner->model->params, &a->ddp))
        return tool_rank_failed(a->rank, "making the reducer");
    return TOOL_OK;
}

int averager_create(averager *a, const train_settings *s, tool_rank *rank, learner *l)
{
    *a = (averager){.settings = s, .rank = rank, .learner = l, .half = !strcmp(s->codec, "bf16"), .norm = NAN};
    coset_param *params = calloc((size_t)l->model->params, sizeof *params);
    if (!params) {
        fprintf(stderr, "%s: out of memory\n", rank->command);
        return TOOL_FAILED;
    }
    for (int p = 0; p < l->model->params; p++) {
        const model_param *m = &l->model->param[p];
        params[p] = (coset_param){id_of(p), m->count, a->half ? COSET_BF16 : COSET_F32,
                                  m->ndim,  m->name,  s->local_steps > 1 ? COSET_PARAM_COMPRESS : 0};
    }
    int status = create_reducer(a, params);
    free(params);
    if (!status)
        bind_gradients(a);
    return status;
}

void averager_destroy(averager *a)
{
    coset_ddp_destroy(a->ddp);
    a->ddp = NULL;
}

int averager_backward(averager *a, bool last)
{
    if (a->settings->local_steps > 1)
        return TOOL_OK;
    coset_status status = coset_ddp_no_sync(a->ddp, !last);
    return status ? failed(a, status, "coset_ddp_no_sync") : TOOL_OK;
}

static void tell(averager *a, int param)
{
    if (!a->told++)
        a->first_ready = tool_now();
    coset_status status = coset_ddp_ready(a->ddp, id_of(param));
    if (!a->failed)
        a->failed = status;
}

void averager_ready(averager *a, int param)
{
    if (a->settings->local_steps > 1)
        return;
    if (a->half)
        put(a, param, a->learner->grad[param]);
    tell(a, param);
}

static int finish(averager *a, int *moved)
{
    const coset_ddp_report none = COSET_DDP_REPORT_INIT;
    coset_status status = coset_ddp_finish(a->ddp, moved);
    if (status || a->failed)
        return failed(a, status ? status : a->failed, "averaging");
    a->report = none;
    coset_ddp_last_report(a->ddp, &a->report);
    a->sent_bytes += (double)a->report.sent_bytes;
    a->repaired += (double)a->report.repaired;
    a->averagings++;
    a->told = 0;
    return TOOL_OK;
}

static int clip(averager *a, bool *skip)
{
    int not_finite = 0;
    coset_status status = coset_ddp_clip(a->ddp, a->settings->clip, &a->norm, &not_finite);
    if (status)
        return failed(a, status, "coset_ddp_clip");
    if (not_finite && a->rank->rank == 0 && !a->warned) {
        fprintf(stderr, "%s: step left out: %s (further ones are only counted)\n", a->rank->command,
                coset_ddp_why(a->ddp));
        a->warned = true;
    }
    *skip = not_finite;
    return TOOL_OK;
}

int averager_gradients(averager *a, bool *skip)
{
    int moved = 0, status = finish(a, &moved);
    if (!status && a->settings->clip > 0)
        status = clip(a, skip);
    for (int p = 0; p < a->learner->model->params && !status && a->half; p++)
        get(a, p, a->learner->grad[p]);
    if (moved)
        bind_gradients(a);
    return status;
}

int averager_models(averager *a)
{
    for (int p = a->learner->model->params - 1; p >= 0; p--) {
        put(a, p, a->learner->weight[p]);
        tell(a, p);
    }
    int moved, status = finish(a, &moved);
    for (int p = 0; p < a->learner->model->params && !status; p++)
        get(a, p, a->learner->weight[p]);
    return status;
}
