/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation under way. Layers above comm (coll/, mean/) supply the functions that advance it; comm queues it, drives
 * it, waits on its behalf, notices deaths and lateness, and completes its request.
 */
#ifndef CST_COMM_OPERATION_H
#define CST_COMM_OPERATION_H
#include "base/flag.h"
#include "comm/entry.h"
#include "comm/recorder.h"

typedef struct cst_operation cst_operation;

/* How an operation advances. All are called by the driver of the communicator, never by two threads at once. */
typedef struct {
    /* Moves as far as it can without blocking. COSET_IN_PROGRESS: not finished; if it waits for flags of peers it has
     * set op->wait, else for messages. Anything else ends the operation. */
    coset_status (*step)(coset_comm *c, cst_operation *op);
    /* Frees what step has made, cancelling messages; called once, after the operation has ended in any way. May be NULL. */
    void (*finish)(coset_comm *c, cst_operation *op);
    /* What it is doing now, for warnings: one short line. Returns the rank that it waits for, -1 if none. May be NULL. */
    int (*describe)(const cst_operation *op, char *text, size_t size);
} cst_operation_class;

/* The flag of a peer that the operation waits for; peer < 0: it waits for messages. */
typedef struct {
    _Atomic uint32_t *word;
    uint32_t value;
    int peer;
    int working; /* the peer is known to be at work on it: worth spinning for longer than a peer that may not have come */
} cst_wait;

struct cst_operation {
    const cst_operation_class *class;
    cst_call call;
    uint64_t sequence;
    coset_entry entry;
    int phase;   /* of step's own state machine; 0 at the start */
    void *state; /* of the class */
    cst_wait wait;
    int moved;              /* set by step: it could do more at once, do not sleep */
    int published;          /* the own data travels in the slot (enter.c) */
    int began;              /* 1 once entry and record are made */
    uint64_t waiting_since; /* clock when it was first found waiting; 0: it has not been */
    uint64_t moved_bytes;   /* transport counter then: an operation that moves is not late */
    int warned;
    cst_record *record;     /* NULL before it begins, and for send and receive */
    cst_operation *next;    /* in the queue */
    coset_request *request; /* NULL for an operation on a blocked caller's stack */
};

/* Field by field: clearing the whole with one string instruction costs a tenth of a small all-reduce. `sequence` and
 * `entry` are set when it begins. */
static inline void cst_operation_init(cst_operation *op, const cst_operation_class *class, const cst_call *call)
{
    op->class = class;
    op->call = *call;
    op->phase = 0;
    op->state = NULL;
    op->wait = (cst_wait){NULL, 0, -1, 0};
    op->moved = op->began = op->warned = 0;
    op->waiting_since = op->moved_bytes = 0;
    op->record = NULL;
    op->next = NULL;
    op->request = NULL;
}
#endif
