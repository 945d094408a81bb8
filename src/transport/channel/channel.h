/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between ranks that share memory: the message part of the transport contract (isend, irecv, cancel,
 * progress), on top of areas (layout.h) that a backend, `threads` or `shm`, has made reachable by all ranks.
 *
 * How a message travels is the sender's choice, by size and by where the memory is:
 *   up to one cell        eager: copied into the ring, complete at once
 *   reachable memory      offered: the receiver copies from it straight into the receive buffer
 *   private, up to a block     copied into a stage block, complete at once, if a block is free
 *   private, larger       offered; the receiver pulls it (process_vm_readv) if the backend can and finds it worth
 *                         while, else it asks for a stream of stage blocks
 * All copying of offered messages is done by the receiver inside progress().
 *
 * Not thread-safe: the driver of the instance calls it. No function blocks, but cancel, which may wait for a copy that
 * the receiver has begun.
 */
#ifndef CST_TRANSPORT_CHANNEL_H
#define CST_TRANSPORT_CHANNEL_H
#include "base/flag.h"
#include "transport/channel/layout.h"

#include <stdbool.h>

typedef struct cst_channel cst_channel;

/* What a backend provides; `self` is given to each function. */
typedef struct {
    void *self;
    /* Wakes `peer`, whose `sleeping` word this rank has just turned from 1 to 0. */
    void (*doorbell)(void *self, int peer);
    /* As in the contract. */
    coset_location (*locate)(void *self, const void *ptr, size_t bytes);
    void *(*map)(void *self, int peer, const coset_location *at, size_t bytes);
    /* Copies from the private memory of the peer; NULL if that cannot be done here. UNSUPPORTED: not any more. */
    coset_status (*pull)(void *self, int peer, const struct iovec *to, int to_count, const struct iovec *from,
                         int from_count);
    /* Private messages of this size and more are pulled, smaller ones staged. SIZE_MAX: none is pulled. */
    size_t pull_from;
    bool one_space;    /* all ranks in one address space */
    bool peer_trusted; /* a cancel may wait for a claimed copy without limit: the peer cannot be stopped alone */
    void (*on_entry)(void *ctx, int peer, uint64_t op, const coset_entry *entry);
    void *on_entry_ctx;
} cst_channel_backend;

/* areas[r]: the area of rank r, zeroed at first use by all ranks; the array is copied. MEMORY: NULL. */
cst_channel *cst_channel_new(int rank, const cst_layout *layout, char *const *areas,
                             const cst_channel_backend *backend);
/* Messages under way must have been cancelled. NULL is fine. */
void cst_channel_free(cst_channel *ch);

/* As in the contract. */
coset_status cst_channel_isend(cst_channel *ch, coset_msg *msg);
coset_status cst_channel_irecv(cst_channel *ch, coset_msg *msg);
void cst_channel_cancel(cst_channel *ch, coset_msg *msg);
coset_status cst_channel_progress(cst_channel *ch);
void cst_channel_counters(const cst_channel *ch, coset_transport_counters *out);

/* The peer has gone: what it had said is still taken in, all else that concerns it ends with `status`. Called inside
 * progress(). Idempotent. */
void cst_channel_gone(cst_channel *ch, int peer, coset_status status);
/* A peer that wrote nonsense into the shared memory, or -1; each is told once. */
int cst_channel_broken(cst_channel *ch);

/* Waits without sleeping: looks for work, and at ready(self) of the backend, `patience.spins` times with a pause in
 * between and then `patience.yields` times giving the core away. True if there was something. */
bool cst_channel_linger(const cst_channel *ch, cst_patience patience, bool (*ready)(void *self), void *self);
/* Sleeping. begin: declares that this rank is about to sleep; false if there is work already (then do not sleep).
 * end: after waking. */
bool cst_channel_sleep_begin(cst_channel *ch);
void cst_channel_sleep_end(cst_channel *ch);
/* Wakes the owner of `area` if it sleeps: returns true if the caller has to ring its bell. Any thread. */
bool cst_channel_rouse(char *area);

/* Leaving. `leave`: this rank touches the memory of `peer` no more. `left`: has `peer` left ours? */
void cst_channel_leave(cst_channel *ch, int peer);
bool cst_channel_left(const cst_channel *ch, int peer);
#endif
