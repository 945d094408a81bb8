/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/socket.h"
#include "transport/notices.h"
#include "transport/tcp/frame.h"

#include <errno.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Heartbeats per dead_ms; several may be lost to one retransmission. */
#define BEATS           5
#define FASTEST_BEAT_MS 20
#define SLOWEST_BEAT_MS 2000
/* A peer whose data connection has ended has this long to be heard of on its control connection. */
#define DATA_END_MS 1000
/* Records that wait for a peer which does not read; more than this are of no use to it. */
#define OUT_ROOM (64 * (CST_RECORD_BYTES + CST_NOTICE_BYTES))
/* A peer that floods us with notices fills the inbox, not the memory. */
#define NOTICES_PER_RANK 64
#define MS               1000000ull

typedef struct {
    int fd;         /* -1: self */
    bool ended;     /* nothing is read any more; the thread's own */
    uint64_t heard; /* the thread's own: when something last came */
    size_t got;
    uint8_t in[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    _Atomic int fate;            /* cst_fate; written under the lock */
    _Atomic int status;          /* of a lost peer */
    _Atomic uint64_t data_ended; /* when, 0: not */
    uint64_t departed;           /* when; under the lock */
    size_t waiting;              /* bytes in out; under the lock */
    uint8_t *out;
} peer;

struct cst_watch {
    int rank, size, dead_ms, beat_ms;
    void (*wake)(void *ctx);
    void *ctx;
    int epoll, nudge; /* nudge: an event fd that makes the thread look around */
    bool running;
    pthread_t thread;
    pthread_mutex_t lock; /* inbox, out buffers, changes of fate */
    cst_notices inbox;
    _Atomic size_t unread; /* notices in the inbox, so that looking costs nothing when there are none */
    _Atomic bool stop;
    peer peer[];
};

static void nudge(cst_watch *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->nudge, &one, sizeof one);
    (void)n; /* full means that it is nudged already */
}

/* -------- sending (with the lock) -------- */

static void listen_for_room(cst_watch *w, int r, bool wanted)
{
    struct epoll_event e = {EPOLLIN | (wanted ? EPOLLOUT : 0u), {.u32 = (uint32_t)r}};
    epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->peer[r].fd, &e);
}

/* Errors are not looked at here: the end of a connection is noticed where it is read. */
static void flush(cst_watch *w, int r)
{
    peer *p = &w->peer[r];
    size_t before = p->waiting;
    while (p->waiting) {
        ssize_t n = send(p->fd, p->out, p->waiting, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            p->waiting = 0;
        if (n <= 0)
            break;
        p->waiting -= (size_t)n;
        memmove(p->out, p->out + n, p->waiting);
    }
    if ((before != 0) != (p->waiting != 0))
        listen_for_room(w, r, p->waiting != 0);
}

static void queue(cst_watch *w, int r, const uint8_t *record, size_t bytes)
{
    peer *p = &w->peer[r];
    if (p->fd < 0 || atomic_load(&p->fate) != CST_LIVES || bytes > OUT_ROOM - p->waiting)
        return;
    memcpy(p->out + p->waiting, record, bytes);
    p->waiting += bytes;
    if (p->waiting == bytes) { /* else the thread is waiting for room */
        flush(w, r);
        if (p->waiting)
            listen_for_room(w, r, true);
    }
}

static void tell_all(cst_watch *w, const coset_notice *notice, int but)
{
    uint8_t record[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    size_t bytes = cst_notice_write(notice, record);
    for (int r = 0; r < w->size; r++)
        if (r != w->rank && r != but)
            queue(w, r, record, bytes);
}

static void deliver(cst_watch *w, const coset_notice *notice)
{
    if (cst_notices_push(&w->inbox, notice))
        atomic_fetch_add(&w->unread, 1);
}

/* -------- fates (with the lock) -------- */

static void lose(cst_watch *w, int r, coset_status status)
{
    atomic_store(&w->peer[r].status, (int)status);
    atomic_store(&w->peer[r].fate, CST_LOST);
    w->peer[r].waiting = 0;
}

/* This rank has seen it itself: the others are told. */
static void declare_dead(cst_watch *w, int r, coset_status status, const char *text)
{
    if (atomic_load(&w->peer[r].fate) != CST_LIVES)
        return;
    coset_notice n = cst_notice_make(COSET_NOTICE_DEATH, r, status, r, "%s", text);
    cst_log(CST_LOG_INFO, "tcp: rank %d has lost rank %d: %s", w->rank, r, text);
    lose(w, r, status);
    deliver(w, &n);
    tell_all(w, &n, r);
}

static void take_notice(cst_watch *w, int from, const coset_notice *n)
{
    if (n->kind == COSET_NOTICE_GOODBYE) {
        if (atomic_load(&w->peer[from].fate) != CST_LIVES)
            return;
        w->peer[from].departed = cst_now_ns();
        w->peer[from].waiting = 0;
        atomic_store(&w->peer[from].fate, CST_DEPARTED);
    } else if (n->kind == COSET_NOTICE_DEATH && n->about != w->rank) {
        if (atomic_load(&w->peer[n->about].fate) != CST_LIVES)
            return; /* known */
        lose(w, n->about, n->status);
    }
    deliver(w, n);
}

/* Everything but the news of a third rank's death is about the sender itself, and statuses are failures. */
static bool makes_sense(const cst_watch *w, int from, const coset_notice *n)
{
    bool fails = n->status == COSET_ERR_PEER || n->status == COSET_ERR_LATE || n->status == COSET_ERR_MISMATCH ||
                 n->status == COSET_ERR_ABORTED || n->status == COSET_ERR_CORRUPT || n->status == COSET_ERR_ARGUMENT ||
                 n->status == COSET_ERR_UNSUPPORTED || n->status == COSET_ERR_MEMORY || n->status == COSET_ERR_SYSTEM;
    return cst_notice_valid(n, w->size) && (n->kind == COSET_NOTICE_GOODBYE ? n->status == COSET_OK : fails) &&
           (n->kind == COSET_NOTICE_DEATH ? n->about != from : n->about == from);
}

/* -------- the thread -------- */

static void stop_reading(cst_watch *w, int r)
{
    w->peer[r].ended = true;
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->peer[r].fd, NULL);
}

static void condemn(cst_watch *w, int r, coset_status status, const char *text)
{
    pthread_mutex_lock(&w->lock);
    declare_dead(w, r, status, text);
    pthread_mutex_unlock(&w->lock);
    w->wake(w->ctx);
}

/* Takes whole records out of what has come. False if they make no sense. */
static bool take_records(cst_watch *w, int r)
{
    peer *p = &w->peer[r];
    coset_notice notice;
    bool is_notice;
    int bytes;
    while ((bytes = cst_record_read(p->in, p->got, &is_notice, &notice)) > 0) {
        p->got -= (size_t)bytes;
        memmove(p->in, p->in + bytes, p->got);
        if (!is_notice)
            continue;
        if (!makes_sense(w, r, &notice))
            return false;
        pthread_mutex_lock(&w->lock);
        take_notice(w, r, &notice);
        pthread_mutex_unlock(&w->lock);
        w->wake(w->ctx);
    }
    return bytes == 0;
}

static void hear(cst_watch *w, int r)
{
    peer *p = &w->peer[r];
    while (!p->ended) {
        ssize_t n = recv(p->fd, p->in + p->got, sizeof p->in - p->got, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            stop_reading(w, r);
            condemn(w, r, COSET_ERR_PEER, "its connection has ended without a goodbye: the process has died");
            return;
        }
        p->heard = cst_now_ns();
        p->got += (size_t)n;
        if (!take_records(w, r)) {
            stop_reading(w, r);
            condemn(w, r, COSET_ERR_CORRUPT, "it has sent bytes on its control connection that are no record");
        }
    }
}

/* `then` may be later than `now`: it is taken while others move on. */
static bool is_past(uint64_t now, uint64_t then, int ms)
{
    return now > then && now - then > (uint64_t)ms * MS;
}

static void judge_silence(cst_watch *w, int r, uint64_t now)
{
    peer *p = &w->peer[r];
    uint64_t data_ended = atomic_load(&p->data_ended);
    int fate = atomic_load(&p->fate);
    char text[128];
    if (fate == CST_DEPARTED && is_past(now, p->departed, w->dead_ms)) {
        pthread_mutex_lock(&w->lock);
        lose(w, r, COSET_ERR_PEER); /* no death: its last bytes have been lost on the way */
        pthread_mutex_unlock(&w->lock);
        w->wake(w->ctx);
    } else if (fate == CST_LIVES && data_ended && is_past(now, data_ended, DATA_END_MS)) {
        condemn(w, r, COSET_ERR_PEER, "its data connection has been broken");
    } else if (fate == CST_LIVES && is_past(now, p->heard, w->dead_ms)) {
        snprintf(text, sizeof text, "nothing has been heard from it for %d ms: host or link down", w->dead_ms);
        condemn(w, r, COSET_ERR_PEER, text);
    }
}

/* A process that has been stopped, or a host that has slept, must not take its own absence for the others'. */
static void forgive(cst_watch *w, uint64_t absence)
{
    cst_log(CST_LOG_INFO, "this rank has not run for %llu ms", (unsigned long long)(absence / MS));
    for (int r = 0; r < w->size; r++)
        w->peer[r].heard += absence;
}

static void beat(cst_watch *w)
{
    uint8_t record[CST_RECORD_BYTES];
    size_t bytes = cst_beat_write(record);
    pthread_mutex_lock(&w->lock);
    for (int r = 0; r < w->size; r++)
        if (r != w->rank && !w->peer[r].waiting)
            queue(w, r, record, bytes);
    pthread_mutex_unlock(&w->lock);
}

static void serve(cst_watch *w, const struct epoll_event *e)
{
    uint64_t count;
    int r = (int)e->data.u32;
    if (r == w->size) {
        ssize_t n = read(w->nudge, &count, sizeof count);
        (void)n;
        return;
    }
    if (e->events & ~(uint32_t)EPOLLOUT)
        hear(w, r);
    if (e->events & EPOLLOUT) {
        pthread_mutex_lock(&w->lock);
        flush(w, r);
        pthread_mutex_unlock(&w->lock);
    }
}

static void *watch_main(void *ctx)
{
    cst_watch *w = ctx;
    struct epoll_event event[32];
    uint64_t beat_ns = (uint64_t)w->beat_ms * MS, last = cst_now_ns(), next = last;
    while (!atomic_load(&w->stop)) {
        uint64_t now = cst_now_ns();
        int wait_ms = next > now ? (int)((next - now + MS - 1) / MS) : 0;
        int n = epoll_wait(w->epoll, event, 32, wait_ms);
        now = cst_now_ns();
        if (now - last > 2 * beat_ns)
            forgive(w, now - last - beat_ns);
        last = now;
        for (int i = 0; i < n; i++)
            serve(w, &event[i]);
        if (now < next)
            continue;
        next = now + beat_ns;
        beat(w);
        for (int r = 0; r < w->size; r++)
            if (r != w->rank)
                judge_silence(w, r, now);
    }
    return NULL;
}

/* -------- from outside -------- */

coset_status cst_watch_announce(cst_watch *w, const coset_notice *notice)
{
    pthread_mutex_lock(&w->lock);
    tell_all(w, notice, -1);
    pthread_mutex_unlock(&w->lock);
    return COSET_OK;
}

int cst_watch_poll_notice(cst_watch *w, coset_notice *out)
{
    if (!atomic_load(&w->unread))
        return 0;
    pthread_mutex_lock(&w->lock);
    bool got = cst_notices_pop(&w->inbox, out);
    if (got)
        atomic_fetch_sub(&w->unread, 1);
    pthread_mutex_unlock(&w->lock);
    return got;
}

cst_fate cst_watch_fate(const cst_watch *w, int r)
{
    return (cst_fate)atomic_load_explicit(&w->peer[r].fate, memory_order_acquire);
}

coset_status cst_watch_fate_status(const cst_watch *w, int r)
{
    return (coset_status)atomic_load(&w->peer[r].status);
}

void cst_watch_data_ended(cst_watch *w, int r)
{
    uint64_t never = 0;
    atomic_compare_exchange_strong(&w->peer[r].data_ended, &never, cst_now_ns());
}

void cst_watch_condemn(cst_watch *w, int r, coset_status status, const char *text)
{
    condemn(w, r, status, text);
}

static void free_watch(cst_watch *w)
{
    for (int r = 0; r < w->size; r++) {
        cst_close(w->peer[r].fd);
        free(w->peer[r].out);
    }
    cst_close(w->epoll);
    cst_close(w->nudge);
    cst_notices_free(&w->inbox);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static coset_status open_descriptors(cst_watch *w, coset_error *why)
{
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0 || cst_adopt(w->epoll, why)) {
        w->epoll = -1;
        return cst_fail_errno(why, "epoll_create1");
    }
    w->nudge = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->nudge < 0 || cst_adopt(w->nudge, why)) {
        w->nudge = -1;
        return cst_fail_errno(why, "eventfd");
    }
    for (int r = 0; r <= w->size; r++) {
        int fd = r == w->size ? w->nudge : w->peer[r].fd;
        struct epoll_event e = {EPOLLIN, {.u32 = (uint32_t)r}};
        if (fd >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e))
            return cst_fail_errno(why, "epoll_ctl");
    }
    return COSET_OK;
}

/* The thread takes no signals: they belong to the program. */
static int start_thread(cst_watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, watch_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int beat_for(int dead_ms)
{
    int ms = dead_ms / BEATS;
    return ms < FASTEST_BEAT_MS ? FASTEST_BEAT_MS : ms > SLOWEST_BEAT_MS ? SLOWEST_BEAT_MS : ms;
}

coset_status cst_watch_start(int rank, int size, const int *fds, int dead_ms, void (*wake)(void *ctx), void *ctx,
                             cst_watch **out, coset_error *why)
{
    cst_watch *w = calloc(1, sizeof *w + (size_t)size * sizeof w->peer[0]);
    if (!w) {
        for (int r = 0; r < size; r++)
            if (r != rank)
                cst_close(fds[r]);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    }
    w->rank = rank;
    w->size = size;
    w->dead_ms = dead_ms;
    w->beat_ms = beat_for(dead_ms);
    w->wake = wake;
    w->ctx = ctx;
    w->epoll = w->nudge = -1;
    pthread_mutex_init(&w->lock, NULL);
    cst_notices_init(&w->inbox, NOTICES_PER_RANK * (size_t)size);
    bool memory = true;
    for (int r = 0; r < size; r++) {
        w->peer[r].fd = r == rank ? -1 : fds[r];
        w->peer[r].heard = cst_now_ns();
        w->peer[r].out = r == rank ? NULL : malloc(OUT_ROOM);
        memory = memory && (r == rank || w->peer[r].out);
    }
    coset_status status = memory ? open_descriptors(w, why) : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    if (!status && size > 1) {
        errno = start_thread(w);
        w->running = errno == 0;
        if (!w->running)
            status = cst_fail_errno(why, "cannot start the heartbeat thread");
    }
    if (status) {
        free_watch(w);
        return status;
    }
    *out = w;
    return COSET_OK;
}

/* Bytes of ours that the peer's kernel has not confirmed. */
static bool all_taken(cst_watch *w)
{
    bool taken = true;
    pthread_mutex_lock(&w->lock);
    for (int r = 0; r < w->size && taken; r++) {
        int unconfirmed = 0;
        peer *p = &w->peer[r];
        taken = p->fd < 0 || atomic_load(&p->fate) != CST_LIVES ||
                (!p->waiting && !ioctl(p->fd, SIOCOUTQ, &unconfirmed) && unconfirmed == 0);
    }
    pthread_mutex_unlock(&w->lock);
    return taken;
}

void cst_watch_stop(cst_watch *w, int limit_ms)
{
    cst_deadline limit = cst_deadline_in(limit_ms);
    coset_notice goodbye = cst_notice_make(COSET_NOTICE_GOODBYE, w->rank, COSET_OK, -1, "goodbye");
    cst_watch_announce(w, &goodbye);
    while (!all_taken(w) && !cst_deadline_passed(limit))
        nanosleep(&(struct timespec){0, 200000}, NULL);
    atomic_store(&w->stop, true);
    nudge(w);
    if (w->running)
        pthread_join(w->thread, NULL);
    free_watch(w);
}
