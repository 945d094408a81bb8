/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first steps of a run as a Chrome trace (chrome://tracing, ui.perfetto.dev): a process per rank, a line for what the
 * rank computes (backward, exposed wait, optimizer) and one for the buckets that move meanwhile. Times are of the
 * monotonic clock; ranks of different hosts are not aligned.
 */
#ifndef COSET_TOOLS_TRAIN_TRACE_H
#define COSET_TOOLS_TRAIN_TRACE_H
#include "train/average.h"

enum { TRACED_STEPS = 50 };

typedef struct {
    double kind, number, start, end; /* all doubles, so that ranks can exchange them; `number`: of the bucket or step */
} trace_event;

typedef struct {
    trace_event *event;
    size_t count, room;
} trace;

/* Adds one step. Returns 0, or -1 if memory is short. */
int trace_add(trace *t, const averager *a, const train_step *step);
/* Collective: rank 0 writes the events of all ranks to `path`. Returns 0, or TOOL_FAILED after a line on standard error. */
int trace_write(const trace *t, const tool_rank *rank, const char *path);
void trace_free(trace *t);
#endif
