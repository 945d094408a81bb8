/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicator: one rank's end of a group. It is put together from parts that know nothing of each other: a
 * transport, a queue of operations with its driver, the first error (poison), the flight recorder.
 */
#ifndef CST_COMM_COMM_H
#define CST_COMM_COMM_H
#include "base/clock.h"
#include "base/flag.h"
#include "comm/nodes.h"
#include "comm/operation.h"
#include "comm/poison.h"
#include "comm/recorder.h"
#include "comm/shared.h"

#include <coset_transport.h>
#include <pthread.h>

/* What the user chose, defaults and environment filled in. */
typedef struct {
    char transport[32];
    int algorithm; /* enum cst_algo */
    int progress, rank_order, late_ms, dead_ms, checksum;
    char address[80]; /* this rank's on the way to rank 0, if the bootstrap knew it: what tcp offers to the others */
} cst_settings;

/* Operations in call order, and who drives them. */
typedef struct {
    /* Low 16 bits: operations queued and not ended; then a bit, set while a thread drives; above: the next sequence
     * number. One word, so that a caller who finds nothing queued and nobody driving takes both in one step. */
    _Atomic uint64_t ticket;
    _Atomic uint32_t turn;      /* bell: an operation ended or the driver left */
    _Atomic int sleepers;       /* threads that sleep on `turn` */
    pthread_mutex_t lock;       /* of the fields below */
    cst_operation *head, *tail; /* collectives; the head is under way */
    cst_operation *pairwise;    /* sends and receives, all under way at once */
    coset_request *requests;    /* all that have not been freed */
    int uncollected;            /* requests ended and not waited for */
    int event_fd;               /* readable while uncollected > 0; -1 until asked for */
} cst_queue;

/* A rank that is ahead (the root of a broadcast, say) may hear of a disagreement this many operations late, no later. */
#define CST_RECENT 16

/* Own calls with wrong arguments that are remembered. A notice of a peer's may come many operations late. */
#define CST_WRONG_CALLS 64

/* What a peer has last said over messages about the operation it is in. */
typedef struct {
    int known;
    uint64_t op;
    coset_entry entry;
} cst_heard;

typedef struct {
    pthread_t thread;
    int running;
    _Atomic int stop;
    _Atomic uint32_t bell; /* rung when there is something to drive */
} cst_progress_thread;

/* Memory through which ranks pass vectors that are in nobody else's reach (coll/bulk_stage.c). Made when first needed. */
typedef struct {
    void *scratch; /* private: a block of every rank, for copying between processes */
    void *mine;
    coset_location where; /* of it; the same in every rank's own */
    size_t block;         /* bytes of a vector's piece */
    uint32_t epoch;       /* pieces passed so far: the same on all ranks */
} cst_staging;

/* Memory that coset_alloc gave. */
typedef struct cst_allocation {
    struct cst_allocation *next;
    void *ptr;
    size_t bytes;
    enum { CST_MEMORY_OWN, CST_MEMORY_MAPPED, CST_MEMORY_OF_NODE } kind; /* free(), the transport's, the node group's */
} cst_allocation;

struct coset_comm {
    int rank, size;
    uint64_t job; /* a random number, the same on all ranks, that no other communicator has */
    unsigned fork_generation;
    coset_transport *transport;
    const coset_transport_ops *plugin; /* the user's own, or NULL */
    coset_transport_caps caps;
    cst_settings settings;
    char (*hosts)[64];     /* host name of each rank, for messages */
    cst_nodes nodes;       /* ranks by host */
    cst_control **control; /* each rank's control area, or NULL where ranks share no memory */
    bool core_each;        /* every rank of the own host can have a core of its own; the same on all of them */
    cst_patience patience;
    cst_queue queue;
    cst_progress_thread progress;
    cst_poison poison;
    coset_error last; /* last error of a call that did not poison; under poison.lock */
    cst_recorder recorder;
    uint64_t *pair_sent, *pair_received; /* numbers of the next send to and receive from each rank; under queue.lock */
    int *pair_sending;                   /* sends to each rank that are under way; driver only */
    cst_heard *heard;                    /* messages: the newest entry of each peer (watch.c) */
    coset_entry recent[CST_RECENT]; /* own entries of the last collectives, that of operation s at s % CST_RECENT */
    coset_entry current;            /* the newest of them */
    unsigned char *departed;        /* ranks that said goodbye, or died */
    uint64_t *wrong_call;           /* messages: 1 + the operation that a rank called with wrong arguments; 0 */
    uint64_t own_wrong[CST_WRONG_CALLS]; /* the last own calls with wrong arguments: 1 + the operation; 0: none */
    unsigned own_wrongs;                 /* how many there have been */
    uint32_t exits;                      /* exit barriers that this rank has come to (cst_shared_done); driver only */
    _Atomic bool polled; /* the caller drives and sleeps on the transport's descriptor: readable means work */
    _Atomic uint64_t operations;
    _Atomic uint64_t wait_ns;
    uint64_t direct_sent, direct_received; /* bytes moved through mapped memory; driver only */
    cst_allocation *allocations;           /* what coset_alloc gave; driver only */
    cst_staging staging;                   /* driver only */
};

/* ---- create.c ---- */
/* Collective over the oob. `settings` decides everything; the oob is used only until return. */
coset_status cst_comm_create(const coset_oob *oob, const cst_settings *settings, const coset_transport_ops *plugin,
                             coset_comm **out, coset_error *why);
void cst_comm_destroy(coset_comm *c);
/* Until no peer can be writing into this rank's private memory any more (bounded): a peer that has begun finishes, one
 * that has not sees `leaving` and does not begin. */
void cst_comm_wait_for_writers(coset_comm *c);

/* ---- drive.c: running operations ---- */
/* Runs `op` (on the caller's stack) to its end. */
coset_status cst_comm_run(coset_comm *c, cst_operation *op);
/* Queues a copy of `op` and returns at once. */
coset_status cst_comm_start(coset_comm *c, const cst_operation *op, coset_request **request);
/* The same, for a caller who promises to drive (cst_comm_drive_once, or waiting): no progress thread is woken. */
coset_status cst_comm_queue(coset_comm *c, const cst_operation *op, coset_request **request);
/* One pass over all that is under way; returns how many operations are left. Does nothing if another thread drives. */
int cst_comm_drive_once(coset_comm *c);
/* On a poisoned communicator: ends everything queued, and keeps other threads from driving, until cst_comm_release. */
void cst_comm_hold(coset_comm *c);
void cst_comm_release(coset_comm *c);
/* Ends everything queued with `status`; for destroy. Returns whether there was anything. */
int cst_comm_cancel_all(coset_comm *c, coset_status status);
/* Inside step functions that must block (alloc, split): waits a little for anything to change. COSET_OK, or the
 * poison's status. */
coset_status cst_comm_breathe(coset_comm *c);

/* ---- enter.c: entry flags and records where ranks share memory (c->control) ---- */
static inline cst_entry_slot *cst_slot_of(const coset_comm *c, const cst_operation *op, int rank)
{
    return &c->control[rank]->slot[op->sequence & 1];
}
/* Fills in and raises the own slot. The send buffer travels in it if it has at most publish_always bytes, or if it is
 * not mapped and has at most publish_unmapped (neither above cst_slot_room). IN_PROGRESS with op->wait set, nothing done:
 * the slot may still be read; to be called again. */
coset_status cst_shared_enter(coset_comm *c, cst_operation *op, size_t publish_always, size_t publish_unmapped);
/* IN_PROGRESS with op->wait set while a rank is missing; MISMATCH if one has entered something else. *published: every
 * rank's data is in its slot. */
coset_status cst_shared_entered(coset_comm *c, cst_operation *op, int *published);
/* After an operation has failed here: marks the own record, so that a rank which comes later does not take it for valid. */
void cst_shared_withdraw(coset_comm *c, const cst_operation *op);
/* The exit barrier: raised when this rank has left the others' memory; IN_PROGRESS with op->wait set until all have. */
void cst_shared_done(coset_comm *c);
coset_status cst_shared_all_done(coset_comm *c, cst_operation *op);
/* The send buffer of `rank` as this process can read it (slot or mapped memory), and its receive buffer; NULL if out of reach. */
const void *cst_shared_source(const coset_comm *c, const cst_operation *op, int rank);
void *cst_shared_target(const coset_comm *c, const cst_operation *op, int rank);

/* ---- memory.c ---- */
coset_status cst_comm_alloc(coset_comm *c, size_t bytes, void **ptr);
coset_status cst_comm_free(coset_comm *c, void *ptr);

/* ---- watch.c: what can go wrong while waiting ---- */
/* Reads the notices that the transport's progress has found, and poisons if one says so. Returns the poison's status. */
coset_status cst_comm_watch(coset_comm *c);
/* Poisons with this error (text and peer filled in), tells the others. Returns the status. */
coset_status cst_comm_fail(coset_comm *c, coset_status status, int peer, uint64_t op, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Two ranks disagree about the operation under way: poisons everywhere. */
coset_status cst_comm_mismatch(coset_comm *c, int peer, const coset_entry *mine, const coset_entry *theirs);
/* For an operation that could not move: COSET_IN_PROGRESS, after a warning when it waits long; LATE when too long;
 * PEER if the rank it waits for has left in good order. */
coset_status cst_comm_check_wait(coset_comm *c, cst_operation *op);
/* An operation that this rank has begun, kept for the judgement of others' wrong calls. */
static inline void cst_comm_remember(coset_comm *c, const cst_operation *op)
{
    c->recent[op->sequence % CST_RECENT] = c->current = op->entry;
    if (op->call.kind == CST_BAD_CALL)
        c->own_wrong[c->own_wrongs++ % CST_WRONG_CALLS] = op->sequence + 1;
}
/* The transport's on_entry. */
void cst_comm_heard(void *comm, int peer, uint64_t op, const coset_entry *entry);
/* Before an operation over messages begins: has a peer already said something else about it? */
coset_status cst_comm_check_heard(coset_comm *c, const cst_operation *op);
void cst_comm_write_flight(coset_comm *c);
/* The last error of a call that lost nothing (ARGUMENT, UNSUPPORTED, MEMORY). Returns `status`. */
coset_status cst_comm_note(coset_comm *c, coset_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- members.c: a small all-gather among some of the ranks, over messages ---- */
typedef struct {
    coset_comm *comm;
    const int *members; /* ranks of comm, in the order of the group; NULL: all of them */
    int size, rank;     /* of the group; rank is the own index */
    uint64_t op;        /* message namespace: equal on all members, used by nobody else */
    uint32_t round;
    cst_deadline deadline;
    const unsigned char *dead; /* not NULL: an exchange among survivors of a poisoned communicator (shrink) */
    bool all_who_live;         /* an exchange with a dead member fails when the others have had their part in it */
} cst_members;
coset_oob cst_members_oob(cst_members *m);
/* Among all ranks, for the operation under way. */
cst_members cst_members_all(coset_comm *c, uint64_t op);
/* As part of operation `sequence`: a communicator per color, with other settings and maybe another transport. `tag_space`
 * tells several splits of one operation apart. color < 0: *sub = NULL. */
coset_status cst_comm_split_as(coset_comm *c, uint64_t sequence, uint32_t tag_space, int color, int key,
                               const cst_settings *settings, const coset_transport_ops *plugin, coset_comm **sub);
coset_status cst_comm_split(coset_comm *c, int color, int key, coset_comm **sub);
coset_status cst_comm_shrink(coset_comm *c, coset_comm **survivors);
#endif
