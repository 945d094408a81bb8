/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/schedule.h"

#include "coll/run.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { WINDOW = 256 }; /* a few waves of messages among a handful of ranks; builders with more peers ask for more */

cst_schedule *cst_schedule_create(void)
{
    return calloc(1, sizeof(cst_schedule));
}

void cst_schedule_destroy(cst_schedule *s)
{
    if (!s)
        return;
    cst_run_free(s);
    free(s->step);
    free(s->sources);
    free(s->deps);
    free(s);
}

void cst_schedule_reset(cst_schedule *s, const cst_plan *plan)
{
    s->plan = *plan;
    s->steps = s->nsources = s->ndeps = 0;
    s->scratch_bytes = 0;
    s->window = WINDOW;
    s->status = COSET_OK;
    s->round = s->segment = 0;
}

/* Makes room for one more in a growing array. False, with the array as it was and s->status set, if there is no memory,
 * or was none for an earlier step: a list with a hole is good for nothing. */
static bool room_for_one(cst_schedule *s, void **array, int used, int *room, size_t each)
{
    if (s->status != COSET_OK)
        return false;
    if (used < *room)
        return true;
    int more = *room ? *room * 2 : 32;
    void *grown = realloc(*array, (size_t)more * each);
    if (!grown) {
        s->status = COSET_ERR_MEMORY;
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

static int add(cst_schedule *s, cst_step step)
{
    void *array = s->step;
    if (!room_for_one(s, &array, s->steps, &s->step_room, sizeof step))
        return -1;
    s->step = array;
    step.round = s->round;
    step.segment = s->segment;
    step.source = s->nsources;
    step.dep = s->ndeps;
    s->step[s->steps] = step;
    return s->steps++;
}

int cst_add_send(cst_schedule *s, int peer, uint32_t tag, cst_place from, size_t count)
{
    return add(s, (cst_step){.kind = CST_STEP_SEND, .peer = peer, .tag = tag, .at = from, .count = count});
}

int cst_add_recv(cst_schedule *s, int peer, uint32_t tag, cst_place to, size_t count)
{
    return add(s, (cst_step){.kind = CST_STEP_RECV, .peer = peer, .tag = tag, .at = to, .count = count});
}

int cst_add_copy(cst_schedule *s, cst_place to, cst_place from, size_t count)
{
    int step = add(s, (cst_step){.kind = CST_STEP_COPY, .peer = -1, .at = to, .count = count});
    cst_reads(s, from);
    return step;
}

int cst_add_reduce(cst_schedule *s, cst_place to, size_t count, bool divide)
{
    return add(s, (cst_step){.kind = CST_STEP_REDUCE, .peer = -1, .at = to, .count = count, .divide = divide});
}

void cst_reads(cst_schedule *s, cst_place from)
{
    void *array = s->sources;
    if (!room_for_one(s, &array, s->nsources, &s->source_room, sizeof from))
        return;
    s->sources = array;
    s->sources[s->nsources++] = from;
    s->step[s->steps - 1].sources++;
}

void cst_after(cst_schedule *s, int step)
{
    void *array = s->deps;
    if (step < 0 || !room_for_one(s, &array, s->ndeps, &s->dep_room, sizeof step))
        return;
    s->deps = array;
    s->deps[s->ndeps++] = step;
    s->step[s->steps - 1].deps++;
}

cst_place cst_scratch(cst_schedule *s, size_t bytes)
{
    size_t at = s->scratch_bytes;
    if (!cst_size_add(at, cst_round_up(bytes, 64), &s->scratch_bytes))
        s->status = COSET_ERR_MEMORY;
    return (cst_place){at, CST_IN_SCRATCH, false};
}

static size_t element_bytes(const cst_schedule *s, cst_place at)
{
    return at.wide ? sizeof(float) : coset_dtype_size(s->plan.call.dtype);
}

size_t cst_step_bytes(const cst_schedule *s, const cst_step *step)
{
    return step->count * element_bytes(s, step->at);
}

static int describe_place(cst_place at, char *text, size_t bytes)
{
    static const char *const name[] = {"send", "recv", "scratch"};
    return snprintf(text, bytes, "%s%s+%zu", at.wide ? "wide " : "", name[at.buffer], at.offset);
}

int cst_schedule_describe(const cst_schedule *s, int step, char *text, size_t bytes)
{
    const cst_step *p = &s->step[step];
    size_t size = cst_step_bytes(s, p);
    char at[48];
    describe_place(p->at, at, sizeof at);
    switch (p->kind) {
    case CST_STEP_SEND:
        return snprintf(text, bytes, "send %zu B to %d from %s (round %d, segment %d, tag %" PRIu32 ")", size, p->peer,
                        at, p->round, p->segment, p->tag);
    case CST_STEP_RECV:
        return snprintf(text, bytes, "recv %zu B from %d into %s (round %d, segment %d, tag %" PRIu32 ")", size,
                        p->peer, at, p->round, p->segment, p->tag);
    case CST_STEP_COPY:
        return snprintf(text, bytes, "copy %zu B into %s (round %d, segment %d)", size, at, p->round, p->segment);
    case CST_STEP_REDUCE:
        return snprintf(text, bytes, "reduce %d operands into %s, %zu B%s (round %d, segment %d)", p->sources, at, size,
                        p->divide ? ", divide" : "", p->round, p->segment);
    }
    return snprintf(text, bytes, "?");
}
