/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trace.h"

#include "command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { BACKWARD, EXPOSED, OPTIMIZER, BUCKET, COMPRESSED_BUCKET, KINDS } kind;
static const char *const names[KINDS] = {"backward", "exposed", "optimizer", "bucket", "compressed bucket"};

static int add(trace *t, kind k, size_t number, double start, double end)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 256;
        trace_event *more = realloc(t->event, room * sizeof *more);
        if (!more)
            return -1;
        t->event = more;
        t->room = room;
    }
    t->event[t->count++] = (trace_event){(double)k, (double)number, start, end};
    return 0;
}

static int add_buckets(trace *t, const averager *a)
{
    coset_ddp_bucket b = {.struct_size = sizeof b};
    for (size_t i = 0; coset_ddp_bucket_report(a->ddp, i, &b) == COSET_OK; i++)
        if (add(t, b.compressed ? COMPRESSED_BUCKET : BUCKET, i, a->first_ready + b.start_s, a->first_ready + b.end_s))
            return -1;
    return 0;
}

int trace_add(trace *t, const averager *a, const train_step *s)
{
    if (s->step >= TRACED_STEPS)
        return 0;
    bool models = a->settings->local_steps > 1, averaged = !models || s->exposed > 0;
    double exposed = models ? s->end - s->exposed : s->computed; /* models are averaged after the optimizer */
    if (add(t, BACKWARD, s->step, s->start, s->computed) ||
        (averaged && add(t, EXPOSED, s->step, exposed, exposed + s->exposed)) ||
        add(t, OPTIMIZER, s->step, s->averaged, models ? exposed : s->end))
        return -1;
    return averaged ? add_buckets(t, a) : 0;
}

static void write_event(FILE *out, int rank, const trace_event *e, double origin)
{
    kind k = (kind)e->kind;
    bool moving = k == BUCKET || k == COMPRESSED_BUCKET;
    fprintf(out,
            ",\n{\"name\":\"%s%s %.0f\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
            names[k], moving ? "" : " of step", e->number, names[k], rank, moving ? 1 : 0, 1e6 * (e->start - origin),
            1e6 * (e->end - e->start));
}

static void write_name(FILE *out, const char *what, int rank, int line, const char *name, int number)
{
    fprintf(out, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s", what, rank, line, name);
    if (number >= 0)
        fprintf(out, " %d", number);
    fprintf(out, "\"}}");
}

/* `all`: size rows of `room` events, unused ones with a negative kind. */
static int write_file(const char *path, const trace_event *all, size_t room, int size)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return -1;
    double origin = INFINITY;
    for (size_t i = 0; i < room * (size_t)size; i++)
        if (all[i].kind >= 0)
            origin = fmin(origin, all[i].start);
    fprintf(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int r = 0; r < size; r++) {
        write_name(out, "process_name", r, 0, "rank", r);
        fprintf(out, ",\n");
        write_name(out, "thread_name", r, 0, "computes", -1);
        fprintf(out, ",\n");
        write_name(out, "thread_name", r, 1, "buckets move", -1);
        for (size_t i = 0; i < room; i++)
            if (all[(size_t)r * room + i].kind >= 0)
                write_event(out, r, &all[(size_t)r * room + i], origin);
        fprintf(out, r + 1 < size ? ",\n" : "\n");
    }
    fprintf(out, "]}\n");
    int bad = ferror(out);
    return fclose(out) || bad ? -1 : 0;
}

int trace_write(const trace *t, const tool_rank *rank, const char *path)
{
    double room = (double)t->count;
    if (tool_rank_max(rank, &room, 1))
        return TOOL_FAILED;
    size_t each = (size_t)room + 1, per_event = sizeof(trace_event) / sizeof(double);
    trace_event *mine = calloc(each, sizeof *mine), *all = calloc(each * (size_t)rank->size, sizeof *all);
    int status = TOOL_FAILED;
    if (!mine || !all) {
        fprintf(stderr, "%s: out of memory\n", rank->command);
        goto out;
    }
    for (size_t i = 0; i < each; i++)
        mine[i] = i < t->count ? t->event[i] : (trace_event){-1, 0, 0, 0};
    if (coset_allgather(mine, all, each * per_event, COSET_F64, rank->comm)) {
        tool_rank_failed(rank, "collecting the trace");
        goto out;
    }
    status = TOOL_OK;
    if (rank->rank == 0 && write_file(path, all, each, rank->size)) {
        fprintf(stderr, "%s: cannot write %s: %s\n", rank->command, path, strerror(errno));
        status = TOOL_FAILED;
    }
out:
    free(mine);
    free(all);
    return status;
}

void trace_free(trace *t)
{
    free(t->event);
    *t = (trace){0};
}
