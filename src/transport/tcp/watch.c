/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/error.h"
#include "net/socket.h"
#include "transport/tcp/watch_internal.h"

#include <errno.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Heartbeats per dead_ms; several may be lost to one retransmission. */
#define BEATS           5
#define FASTEST_BEAT_MS 20
#define SLOWEST_BEAT_MS 2000
/* A peer that floods us with notices fills the inbox, not the memory. */
#define NOTICES_PER_RANK 64

static void nudge(cst_watch *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->nudge, &one, sizeof one);
    (void)n; /* full means that it is nudged already */
}

coset_status cst_watch_announce(cst_watch *w, const coset_notice *notice)
{
    pthread_mutex_lock(&w->lock);
    cst_watch_tell_all(w, notice, -1);
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

void cst_watch_still_arrives(cst_watch *w, int r)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->peer[r].departed, cst_now_ns());
    atomic_store(&w->peer[r].fate, CST_DEPARTED);
    pthread_mutex_unlock(&w->lock);
}

void cst_watch_data_ended(cst_watch *w, int r)
{
    uint64_t never = 0;
    atomic_compare_exchange_strong(&w->peer[r].data_ended, &never, cst_now_ns());
}

void cst_watch_condemn(cst_watch *w, int r, coset_status status, const char *text)
{
    pthread_mutex_lock(&w->lock);
    cst_watch_declare_dead(w, r, status, text);
    pthread_mutex_unlock(&w->lock);
    w->wake(w->ctx);
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

static coset_status adopt_into(int *place, int fd, const char *call, coset_error *why)
{
    coset_status status = fd < 0 ? cst_fail_errno(why, "%s", call) : cst_adopt(fd, why);
    *place = status ? -1 : fd;
    return status;
}

static coset_status open_descriptors(cst_watch *w, coset_error *why)
{
    coset_status status = adopt_into(&w->epoll, epoll_create1(EPOLL_CLOEXEC), "epoll_create1", why);
    if (!status)
        status = adopt_into(&w->nudge, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd", why);
    if (status)
        return status;
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
    int error = pthread_create(&w->thread, NULL, cst_watch_main, w);
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
        w->peer[r].out = r == rank ? NULL : malloc(CST_WATCH_OUT);
        memory = memory && (r == rank || w->peer[r].out);
    }
    coset_status status = memory ? open_descriptors(w, why) : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    if (!status && size > 1) {
        errno = start_thread(w);
        w->running = errno == 0;
        if (!w->running)
            status = cst_fail_errno(why, "cannot start the heartbeat thread (ulimit -u, ulimit -v)");
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
        cst_watched *p = &w->peer[r];
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
    pthread_mutex_lock(&w->lock);
    w->leaving = true;
    cst_watch_tell_all(w, &goodbye, -1);
    pthread_mutex_unlock(&w->lock);
    while (!all_taken(w) && !cst_deadline_passed(limit))
        nanosleep(&(struct timespec){0, 200000}, NULL);
    atomic_store(&w->stop, true);
    nudge(w);
    if (w->running)
        pthread_join(w->thread, NULL);
    free_watch(w);
}
