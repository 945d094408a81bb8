/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who lives: the control connections of one rank, and the small thread that serves them.
 *
 * The thread sends a heartbeat to every peer a few times per dead_ms and decides who is dead: a peer whose control
 * connection ends without a goodbye, and one from which nothing has come for dead_ms. Data connections decide nothing:
 * an outage of seconds leaves them stuck and well. Whoever sees a death tells all others. The thread runs also where
 * operations advance only inside calls, since others judge this rank by its heartbeats.
 *
 * Notices and fates may be asked for from any thread. Texts and numbers from peers are checked.
 */
#ifndef CST_TRANSPORT_TCP_WATCH_H
#define CST_TRANSPORT_TCP_WATCH_H
#include <coset_transport.h>
#include <stdbool.h>

typedef struct cst_watch cst_watch;

typedef enum {
    CST_LIVES = 0,
    CST_DEPARTED, /* it has said goodbye; what it had sent before may still arrive */
    CST_OVERDUE,  /* departed dead_ms ago: what has not reached this host by now is not waited for */
    CST_LOST      /* dead */
} cst_fate;

/* fds[r]: connected control sockets, taken over (also on failure); fds[rank] is ignored. wake(ctx) is called, from the
 * thread and from announcing threads, when there is a new notice or fate. MEMORY, SYSTEM. */
coset_status cst_watch_start(int rank, int size, const int *fds, int dead_ms, void (*wake)(void *ctx), void *ctx,
                             cst_watch **out, coset_error *why);
/* Says goodbye, waits until the peers' kernels have it (at most until `limit_ms` have passed), ends the thread. */
void cst_watch_stop(cst_watch *w, int limit_ms);

/* As in the contract. */
coset_status cst_watch_announce(cst_watch *w, const coset_notice *notice);
int cst_watch_poll_notice(cst_watch *w, coset_notice *out);

cst_fate cst_watch_fate(const cst_watch *w, int peer);
/* The status that messages with a lost peer end with. */
coset_status cst_watch_fate_status(const cst_watch *w, int peer);
/* Something of an overdue peer has come all the same: it has dead_ms more. */
void cst_watch_still_arrives(cst_watch *w, int peer);
/* A data connection of the peer has ended or is broken: if it has not said goodbye within some seconds it is dead. */
void cst_watch_data_ended(cst_watch *w, int peer);
/* The peer has sent bytes that make no sense: it is dead to us. */
void cst_watch_condemn(cst_watch *w, int peer, coset_status status, const char *text);
#endif
