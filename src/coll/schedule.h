/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule: what one rank does in one collective operation, as a list of steps, and the machine that runs it.
 *
 * A builder (build.h) turns a plan into steps. A step may depend on earlier steps of the same list, never on later
 * ones. Nothing else orders them: the executor starts whatever is ready. The flight recorder names its steps.
 *
 * Why the list cannot deadlock: builders number messages by (wave, round), emit their steps in that order on all ranks,
 * and a step depends, directly or through a message, only on steps of smaller or equal number; the window holds at
 * least all steps of one such number.
 *
 * Life: create, build, start, step until it is not COSET_IN_PROGRESS; then either start again (the same plan), or
 * build anew, or destroy. One thread at a time.
 */
#ifndef CST_COLL_SCHEDULE_H
#define CST_COLL_SCHEDULE_H
#include "coll/plan.h"
#include <coset_transport.h>

typedef enum {
    CST_STEP_SEND,  /* `at`, to peer */
    CST_STEP_RECV,  /* from peer, into `at` */
    CST_STEP_COPY,  /* `at` = source */
    CST_STEP_REDUCE /* `at` = source 0 op source 1 op ..., then / size if `divide` */
} cst_step_kind;
/* COPY and REDUCE convert where some of their places are wide and others not; a sum is rounded to 16 bits once. */

typedef struct {
    cst_step_kind kind;
    int peer;     /* SEND, RECV */
    uint32_t tag; /* SEND, RECV: unique between two ranks, within the operation */
    bool divide;
    int round, segment; /* which step of the algorithm, and which segment of the vector: for people */
    size_t count;       /* elements, possibly 0 */
    cst_place at;
    int source, sources; /* COPY, REDUCE: schedule->sources[source .. source + sources) */
    int dep, deps;       /* schedule->deps[dep .. dep + deps): steps that must be done before */
} cst_step;

struct cst_run;
typedef struct {
    cst_plan plan;
    cst_step *step;
    cst_place *sources;
    int *deps;
    int steps, nsources, ndeps;
    size_t scratch_bytes;
    int window;          /* the executor looks this many steps ahead of the first that is not done */
    coset_status status; /* of building: OK, or MEMORY */
    int round, segment;  /* labels for the steps added next */
    int step_room, source_room, dep_room;
    struct cst_run *run; /* execute.c */
} cst_schedule;

/* NULL: no memory. */
cst_schedule *cst_schedule_create(void);
/* Cancels what is under way and frees everything; NULL is a no-op. */
void cst_schedule_destroy(cst_schedule *s);

/* ---- For builders. ---- */

/* Empties the list for a new plan, keeping its memory. Not while it runs. */
void cst_schedule_reset(cst_schedule *s, const cst_plan *plan);
/* The functions below return the index of the step, or -1 when there is no memory (s->status says so). */
int cst_add_send(cst_schedule *s, int peer, uint32_t tag, cst_place from, size_t count);
int cst_add_recv(cst_schedule *s, int peer, uint32_t tag, cst_place to, size_t count);
int cst_add_copy(cst_schedule *s, cst_place to, cst_place from, size_t count);
int cst_add_reduce(cst_schedule *s, cst_place to, size_t count, bool divide);
/* Adds an operand to the REDUCE just added. In the order of the calls. */
void cst_reads(cst_schedule *s, cst_place from);
/* The step just added waits for `step`; -1 is a no-op. */
void cst_after(cst_schedule *s, int step);
/* Reserves scratch memory, 64-byte aligned; returns its first place. */
cst_place cst_scratch(cst_schedule *s, size_t bytes);

/* ---- For the communicator. ---- */

/* Begins to run. `entry` must stay in place until the end. MEMORY: nothing has been started. */
coset_status cst_schedule_start(cst_schedule *s, coset_transport *t, uint64_t op, const coset_entry *entry);
/* Drives the transport and every step that is ready; never blocks, and returns after a bounded amount of work. OK when
 * all steps are done; COSET_IN_PROGRESS; or the first error, after cancelling every message under way. Calls after the
 * end return the same again. */
coset_status cst_schedule_step(cst_schedule *s);
/* Did the last cst_schedule_step start, finish or move anything? If not, only the transport can have news: arm, sleep. */
bool cst_schedule_moved(const cst_schedule *s);
/* Ends the run with COSET_ERR_ABORTED: afterwards the transport touches none of its memory. A no-op if it has ended. */
void cst_schedule_cancel(cst_schedule *s);
/* The step whose message failed, for error texts; -1 if none has. Its peer is the cause. */
int cst_schedule_failed(const cst_schedule *s);
/* Steps done, of s->steps: for "where is this rank". */
int cst_schedule_done(const cst_schedule *s);
/* The first step that is not done, -1 if all are: what this rank waits for. */
int cst_schedule_current(const cst_schedule *s);

/* ---- For people. ---- */

/* Bytes that a SEND or RECV moves, or that a COPY or REDUCE writes. */
size_t cst_step_bytes(const cst_schedule *s, const cst_step *step);
/* "recv 4096 B from 3 into scratch+0 (round 2, segment 1, tag 9)". Returns the length, as snprintf. */
int cst_schedule_describe(const cst_schedule *s, int step, char *text, size_t bytes);
#endif
