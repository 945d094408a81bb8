/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/timeline.h"

#include <math.h>
#include <string.h>

#define MIB    ((size_t)1 << 20)
#define EIGHTH (100 * MIB / 8)

/* 4 ranks, 25 Gbit/s, 10 ms of backward per layer. */
const learn_plan learn_plans[LEARN_PLANS] = {
    [LEARN_PLAN_ONE] =
        {4, {20e-6, 3.125e9}, 10e-3, {EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH}, {8}},
    [LEARN_PLAN_FOUR] =
        {4, {20e-6, 3.125e9}, 10e-3, {EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH, EIGHTH}, {2, 2, 2, 2}},
    [LEARN_PLAN_TAIL] = {4,
                         {20e-6, 3.125e9},
                         10e-3,
                         {1 * MIB, 15 * MIB, 14 * MIB, 14 * MIB, 14 * MIB, 14 * MIB, 14 * MIB, 14 * MIB},
                         {2, 2, 2, 1, 1}},
};

void learn_run(const learn_plan *plan, learn_timeline *t)
{
    *t = (learn_timeline){0};
    int layer = LEARN_LAYERS;
    double free_s = 0;
    for (int b = 0; b < LEARN_MAX_BUCKETS && plan->bucket_layers[b] > 0; b++) {
        learn_bucket *k = &t->bucket[t->buckets++];
        k->last = layer - 1;
        for (int i = 0; i < plan->bucket_layers[b]; i++)
            k->bytes += plan->layer_bytes[--layer];
        k->first = layer;
        k->full_s = (LEARN_LAYERS - layer) * plan->layer_s;
        k->start_s = fmax(k->full_s, free_s);
        k->done_s = free_s = k->start_s + learn_time(LEARN_RING, plan->ranks, k->bytes, plan->link);
        t->comm_s += k->done_s - k->start_s;
    }
    t->backward_s = LEARN_LAYERS * plan->layer_s;
    t->done_s = free_s;
    t->exposed_s = t->done_s - t->backward_s;
}

/* A row of the drawing: `fill` over [from, to) of the time axis. */
static void fill(char *line, int columns, double total, double from, double to, char with)
{
    int begin = (int)lround(from / total * columns), end = (int)lround(to / total * columns);
    if (begin == columns)
        begin--;
    if (end <= begin)
        end = begin + 1; /* what takes time is seen */
    for (int i = begin; i < end && i < columns; i++)
        line[i] = with;
}

static void draw_backward(FILE *out, const learn_timeline *t, double total, int columns)
{
    char line[128];
    memset(line, ' ', sizeof line);
    for (int layer = LEARN_LAYERS; layer > 0; layer--) {
        int at = (int)lround((LEARN_LAYERS - layer) * t->backward_s / LEARN_LAYERS / total * columns);
        int next = (int)lround((LEARN_LAYERS - layer + 1) * t->backward_s / LEARN_LAYERS / total * columns);
        memset(line + at, '.', (size_t)(next - at));
        line[at] = 'L';
        line[at + 1] = (char)('0' + layer);
    }
    fprintf(out, "backward  %.*s\n", (int)lround(t->backward_s / total * columns), line);
}

void learn_timeline_draw(FILE *out, const learn_timeline *t, int columns)
{
    double total = fmax(t->done_s, t->backward_s);
    char line[128];
    draw_backward(out, t, total, columns);
    for (int b = 0; b < t->buckets; b++) {
        const learn_bucket *k = &t->bucket[b];
        memset(line, ' ', sizeof line);
        fill(line, columns, total, b > 0 ? t->bucket[b - 1].full_s : 0, k->full_s, '-');
        fill(line, columns, total, k->start_s, k->done_s, '#');
        int end = columns;
        while (end > 0 && line[end - 1] == ' ')
            end--;
        fprintf(out, "bucket %d  %.*s\n", b, end, line);
    }
}

double learn_clip_factor(double a, double b, double limit)
{
    return fmin(1, limit / hypot(a, b));
}
