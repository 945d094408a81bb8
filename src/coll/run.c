/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/run.h"

#include "coll/compute.h"
#include <stdlib.h>

enum step_state { WAITING, UNDER_WAY, DONE };

/* A call of cst_schedule_step stops computing after this many bytes written, so that the caller looks at aborts and
 * other operations at least every millisecond or so. */
static const size_t WORK_PER_CALL = (size_t)4 << 20;

typedef struct {
    coset_msg msg;
    struct iovec iov;
    int step; /* -1: free */
} slot;

struct cst_run {
    coset_transport *t;
    uint64_t op;
    const coset_entry *entry;
    unsigned char *state; /* enum step_state of each step */
    slot *slots;          /* messages under way; as many as the window */
    int *free_slots;
    cst_operand *operands; /* room for the sources of any one step, */
    const void **pointers; /* and for pointers to them */
    char *scratch;
    size_t scratch_bytes;
    int state_room, slot_room, free_room, operand_room, pointer_room;
    int free_count, used_slots; /* used_slots: slots [0, used_slots) have been used in this run */
    int first;                  /* the first step that is not done */
    int done, failed;
    bool running, moved;
    coset_status status;
};

static void free_memory(struct cst_run *r)
{
    free(r->state);
    free(r->slots);
    free(r->free_slots);
    free(r->operands);
    free(r->pointers);
    free(r->scratch);
    free(r);
}

void cst_run_free(cst_schedule *s)
{
    if (!s->run)
        return;
    cst_schedule_cancel(s);
    free_memory(s->run);
    s->run = NULL;
}

/* ---- Memory for a run; kept from one to the next. ---- */

/* An array of at least `wanted`, contents undefined: `array` itself if it is long enough. NULL: no memory, array freed. */
static void *at_least(void *array, int wanted, int *room, size_t each)
{
    if (wanted <= *room)
        return array;
    free(array);
    void *larger = malloc((size_t)wanted * each);
    *room = larger ? wanted : 0;
    return larger;
}

static bool grow_scratch(struct cst_run *r, size_t wanted)
{
    if (wanted <= r->scratch_bytes)
        return true;
    free(r->scratch);
    r->scratch_bytes = 0;
    r->scratch = aligned_alloc(64, wanted);
    if (r->scratch)
        r->scratch_bytes = wanted;
    return r->scratch != NULL;
}

static int most_operands(const cst_schedule *s)
{
    int most = 1;
    for (int i = 0; i < s->steps; i++)
        most = s->step[i].sources > most ? s->step[i].sources : most;
    return most;
}

static bool prepare(cst_schedule *s)
{
    if (!s->run)
        s->run = calloc(1, sizeof *s->run);
    struct cst_run *r = s->run;
    if (!r)
        return false;
    int steps = s->steps > 0 ? s->steps : 1, slots = s->window < steps ? s->window : steps;
    r->state = at_least(r->state, steps, &r->state_room, sizeof *r->state);
    r->slots = at_least(r->slots, slots, &r->slot_room, sizeof *r->slots);
    r->free_slots = at_least(r->free_slots, slots, &r->free_room, sizeof *r->free_slots);
    r->operands = at_least(r->operands, most_operands(s), &r->operand_room, sizeof *r->operands);
    r->pointers = at_least(r->pointers, r->operand_room, &r->pointer_room, sizeof *r->pointers);
    return r->state && r->slots && r->free_slots && r->operands && r->pointers && grow_scratch(r, s->scratch_bytes);
}

coset_status cst_schedule_start(cst_schedule *s, coset_transport *t, uint64_t op, const coset_entry *entry)
{
    if (s->status != COSET_OK || !prepare(s))
        return COSET_ERR_MEMORY;
    struct cst_run *r = s->run;
    r->t = t;
    r->op = op;
    r->entry = entry;
    for (int i = 0; i < s->steps; i++)
        r->state[i] = WAITING;
    r->free_count = r->used_slots = r->first = r->done = 0;
    r->failed = -1;
    r->running = true;
    r->status = COSET_IN_PROGRESS;
    return COSET_OK;
}

/* ---- Steps. ---- */

static void *address(const cst_schedule *s, cst_place at)
{
    switch (at.buffer) {
    case CST_IN_SEND: return (char *)(uintptr_t)s->plan.call.send + at.offset;
    case CST_IN_RECV: return (char *)s->plan.call.recv + at.offset;
    case CST_IN_SCRATCH: break;
    }
    return s->run->scratch + at.offset;
}

static bool is_ready(const cst_schedule *s, const cst_step *step)
{
    for (int d = 0; d < step->deps; d++)
        if (s->run->state[s->deps[step->dep + d]] != DONE)
            return false;
    return true;
}

static void finish(cst_schedule *s, int step)
{
    struct cst_run *r = s->run;
    r->state[step] = DONE;
    r->done++;
    r->moved = true;
    while (r->first < s->steps && r->state[r->first] == DONE)
        r->first++;
}

static void compute(cst_schedule *s, const cst_step *step)
{
    cst_operand to = {address(s, step->at), step->at.wide}, *from = s->run->operands;
    if (step->count == 0)
        return;
    for (int i = 0; i < step->sources; i++) {
        cst_place place = s->sources[step->source + i];
        from[i] = (cst_operand){address(s, place), place.wide};
    }
    if (step->kind == CST_STEP_COPY)
        cst_copy(s->plan.call.dtype, to, from[0], step->count);
    else
        cst_combine(s->plan.call.dtype, s->plan.call.op, to, from, step->sources, step->count,
                    step->divide ? (unsigned)s->plan.size : 1, s->run->pointers);
}

static slot *take_slot(struct cst_run *r)
{
    int i = r->free_count > 0 ? r->free_slots[--r->free_count] : r->used_slots++;
    return &r->slots[i];
}

static void give_slot(struct cst_run *r, slot *m)
{
    m->step = -1;
    r->free_slots[r->free_count++] = (int)(m - r->slots);
}

static coset_status start_message(cst_schedule *s, int index)
{
    struct cst_run *r = s->run;
    const cst_step *step = &s->step[index];
    size_t bytes = cst_step_bytes(s, step);
    slot *m = take_slot(r);
    m->step = index;
    m->iov = (struct iovec){bytes ? address(s, step->at) : NULL, bytes};
    m->msg = (coset_msg){.peer = step->peer,
                         .tag = step->tag,
                         .op = r->op,
                         .entry = r->entry,
                         .iov = &m->iov,
                         .iovcnt = bytes > 0,
                         .status = COSET_IN_PROGRESS};
    r->state[index] = UNDER_WAY;
    r->moved = true;
    coset_status status =
        step->kind == CST_STEP_SEND ? r->t->ops->isend(r->t, &m->msg) : r->t->ops->irecv(r->t, &m->msg);
    if (status == COSET_OK || status == COSET_IN_PROGRESS)
        return COSET_OK;
    give_slot(r, m);
    r->failed = index;
    return status;
}

/* ---- The machine. ---- */

/* Looks for messages that have ended. */
static coset_status collect(cst_schedule *s)
{
    struct cst_run *r = s->run;
    for (int i = 0; i < r->used_slots; i++) {
        slot *m = &r->slots[i];
        if (m->step < 0 || m->msg.status == COSET_IN_PROGRESS)
            continue;
        int step = m->step;
        coset_status status = m->msg.status;
        give_slot(r, m);
        if (status != COSET_OK) {
            r->failed = step;
            return status;
        }
        finish(s, step);
    }
    return COSET_OK;
}

/* Starts what is ready in the window, in order. COSET_IN_PROGRESS after a step that computed: look again. */
static coset_status start_ready(cst_schedule *s, size_t *work)
{
    struct cst_run *r = s->run;
    int end = s->steps - r->first > s->window ? r->first + s->window : s->steps;
    for (int i = r->first; i < end; i++) {
        const cst_step *step = &s->step[i];
        if (r->state[i] != WAITING || !is_ready(s, step))
            continue;
        if (step->kind == CST_STEP_SEND || step->kind == CST_STEP_RECV) {
            coset_status status = start_message(s, i);
            if (status != COSET_OK)
                return status;
            continue;
        }
        if (*work == 0)
            continue;
        size_t bytes = cst_step_bytes(s, step);
        *work -= bytes < *work ? bytes : *work;
        compute(s, step);
        finish(s, i);
        /* What has been computed may be sent: look from the front again, and let the transport move meanwhile. */
        return COSET_IN_PROGRESS;
    }
    return COSET_OK;
}

static void stop(struct cst_run *r, coset_status status)
{
    for (int i = 0; i < r->used_slots; i++) {
        if (r->slots[i].step >= 0 && r->slots[i].msg.status == COSET_IN_PROGRESS)
            r->t->ops->cancel(r->t, &r->slots[i].msg);
        r->slots[i].step = -1;
    }
    r->used_slots = r->free_count = 0;
    r->running = false;
    r->status = status;
}

coset_status cst_schedule_step(cst_schedule *s)
{
    struct cst_run *r = s->run;
    if (!r->running)
        return r->status;
    size_t work = WORK_PER_CALL;
    coset_status status;
    r->moved = false;
    do {
        r->moved |= r->t->ops->progress(r->t) == COSET_OK;
        status = collect(s);
        if (status == COSET_OK)
            status = start_ready(s, &work);
    } while (status == COSET_IN_PROGRESS);
    if (status != COSET_OK)
        stop(r, status);
    else if (r->done == s->steps)
        stop(r, COSET_OK);
    return r->status;
}

bool cst_schedule_moved(const cst_schedule *s)
{
    return s->run && s->run->moved;
}

void cst_schedule_cancel(cst_schedule *s)
{
    if (s->run && s->run->running)
        stop(s->run, COSET_ERR_ABORTED);
}

int cst_schedule_failed(const cst_schedule *s)
{
    return s->run ? s->run->failed : -1;
}

int cst_schedule_done(const cst_schedule *s)
{
    return s->run ? s->run->done : 0;
}

int cst_schedule_current(const cst_schedule *s)
{
    return s->run && s->run->first < s->steps ? s->run->first : -1;
}
