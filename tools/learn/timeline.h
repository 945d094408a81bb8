/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the buckets of a DDP step are full, sent and done: a small model of backward and communication side by side.
 *
 * Backward visits the layers from the last to the first and takes the same time for each. A bucket is full when its
 * gradients are there; the next one is sent when it is full and the one before is done, by ring.
 */
#ifndef COSET_LEARN_TIMELINE_H
#define COSET_LEARN_TIMELINE_H
#include "learn/figures.h"

#include <stdio.h>

enum { LEARN_LAYERS = 8, LEARN_MAX_BUCKETS = LEARN_LAYERS };

typedef struct {
    int first, last; /* layers: filled from `last` down to `first` */
    size_t bytes;
    double full_s, start_s, done_s;
} learn_bucket;

typedef struct {
    int ranks;
    learn_link link;
    double layer_s;                       /* backward of one layer */
    size_t layer_bytes[LEARN_LAYERS];     /* gradients of layer 0 (the first) .. */
    int bucket_layers[LEARN_MAX_BUCKETS]; /* layers per bucket in the order of filling; 0 ends */
} learn_plan;

typedef struct {
    learn_bucket bucket[LEARN_MAX_BUCKETS];
    int buckets;
    double backward_s; /* end of backward */
    double done_s;     /* everything reduced */
    double exposed_s;  /* done - backward: what the user waits for */
    double comm_s;     /* all communication, hidden or not */
} learn_timeline;

void learn_run(const learn_plan *plan, learn_timeline *t);
/* The lessons' examples: 100 MiB of gradients on 4 ranks at 25 Gbit/s in one bucket, in four, and in five of which
 * the last holds only the small first layer. */
enum { LEARN_PLAN_ONE, LEARN_PLAN_FOUR, LEARN_PLAN_TAIL, LEARN_PLANS };
extern const learn_plan learn_plans[LEARN_PLANS];

/* The timeline as text of `columns` columns, backward first, then a line per bucket. */
void learn_timeline_draw(FILE *out, const learn_timeline *t, int columns);

/* Norm clipping of two-element gradients: factor = min(1, limit / norm). */
double learn_clip_factor(double a, double b, double limit);
#endif
