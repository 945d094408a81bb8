/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a watch: watch.c what others call, watch_peers.c what is said to peers and known of them,
 * watch_thread.c the thread. */
#ifndef CST_TRANSPORT_TCP_WATCH_INTERNAL_H
#define CST_TRANSPORT_TCP_WATCH_INTERNAL_H
#include "transport/notices.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/watch.h"

#include <pthread.h>
#include <stdatomic.h>

/* Records that wait for a peer which does not read; more than this are of no use to it. */
#define CST_WATCH_OUT (64 * (CST_RECORD_BYTES + CST_NOTICE_BYTES))
#define CST_NS_PER_MS 1000000ull

typedef struct {
    int fd;         /* -1: self */
    bool ended;     /* nothing is read any more; the thread's own */
    uint64_t heard; /* the thread's own: when something last came */
    size_t got;
    uint8_t in[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    _Atomic int fate;            /* cst_fate; written under the lock */
    _Atomic int status;          /* of a lost peer */
    _Atomic uint64_t data_ended; /* when, 0: not */
    _Atomic uint64_t departed;   /* when, or when something last came after it; written under the lock */
    size_t waiting;              /* bytes in out; under the lock */
    uint8_t *out;
} cst_watched;

struct cst_watch {
    int rank, size, dead_ms, beat_ms;
    void (*wake)(void *ctx);
    void *ctx;
    int epoll, nudge; /* nudge: an event fd that makes the thread look around */
    bool running;
    bool leaving; /* it has said goodbye, or is about to; under the lock */
    pthread_t thread;
    pthread_mutex_t lock; /* inbox, out buffers, changes of fate */
    cst_notices inbox;
    _Atomic size_t unread; /* notices in the inbox, so that looking costs nothing when there are none */
    _Atomic bool stop;
    cst_watched peer[];
};

/* -------- watch_peers.c; all with the lock held -------- */

/* Sends what waits for peer r, as far as it goes. */
void cst_watch_flush(cst_watch *w, int r);
/* Sends a record to peer r, or keeps it until there is room; drops it if too much waits already. */
void cst_watch_say(cst_watch *w, int r, const uint8_t *record, size_t bytes);
/* To every peer that lives, `but` excepted (-1: none). */
void cst_watch_tell_all(cst_watch *w, const coset_notice *notice, int but);
/* Nothing more is said to or expected from peer r. */
void cst_watch_lose(cst_watch *w, int r, coset_status status);
/* This rank has seen the death itself: the owner and the other ranks are told. Nothing if it is known already. */
void cst_watch_declare_dead(cst_watch *w, int r, coset_status status, const char *text);
/* A notice that peer `from` has sent, and that makes sense. */
void cst_watch_take(cst_watch *w, int from, const coset_notice *n);
/* May peer `from` say so? Needs no lock. */
bool cst_watch_makes_sense(const cst_watch *w, int from, const coset_notice *n);

/* -------- watch_thread.c -------- */
void *cst_watch_main(void *watch);
#endif
