/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "transport/tcp/watch_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A peer whose data connection has ended has dead_ms to say goodbye, and no less than this: one that leaves ends its data
 * first, and may wait a second until slow readers have taken them (tcp.c, LEAVE_MS). */
#define DATA_END_MS 3000

static void stop_reading(cst_watch *w, int r)
{
    w->peer[r].ended = true;
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->peer[r].fd, NULL);
}

/* Takes whole records out of what has come. False if they make no sense. */
static bool take_records(cst_watch *w, int r)
{
    cst_watched *p = &w->peer[r];
    coset_notice notice;
    bool is_notice;
    int bytes;
    while ((bytes = cst_record_read(p->in, p->got, &is_notice, &notice)) > 0) {
        p->got -= (size_t)bytes;
        memmove(p->in, p->in + bytes, p->got);
        if (!is_notice)
            continue;
        if (!cst_watch_makes_sense(w, r, &notice))
            return false;
        pthread_mutex_lock(&w->lock);
        cst_watch_take(w, r, &notice);
        pthread_mutex_unlock(&w->lock);
        w->wake(w->ctx);
    }
    return bytes == 0;
}

static void hear(cst_watch *w, int r)
{
    cst_watched *p = &w->peer[r];
    while (!p->ended) {
        ssize_t n = recv(p->fd, p->in + p->got, sizeof p->in - p->got, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            stop_reading(w, r);
            cst_watch_condemn(w, r, COSET_ERR_PEER, "its connection has ended without a goodbye: the process has died");
            return;
        }
        p->heard = cst_now_ns();
        p->got += (size_t)n;
        if (!take_records(w, r)) {
            stop_reading(w, r);
            cst_watch_condemn(w, r, COSET_ERR_CORRUPT,
                              "it has sent bytes on its control connection that are no record");
        }
    }
}

/* `then` may be later than `now`: it is taken while others move on. */
static bool is_past(uint64_t now, uint64_t then, int ms)
{
    return now > then && now - then > (uint64_t)ms * CST_NS_PER_MS;
}

static void judge_silence(cst_watch *w, int r, uint64_t now)
{
    cst_watched *p = &w->peer[r];
    uint64_t data_ended = atomic_load(&p->data_ended);
    int fate = atomic_load(&p->fate), data_end_ms = w->dead_ms > DATA_END_MS ? w->dead_ms : DATA_END_MS;
    char text[128];
    if (fate == CST_DEPARTED && is_past(now, atomic_load(&p->departed), w->dead_ms)) {
        pthread_mutex_lock(&w->lock);
        atomic_store(&p->fate, CST_OVERDUE); /* no death, but its last bytes may have been lost on the way */
        pthread_mutex_unlock(&w->lock);
        w->wake(w->ctx);
    } else if (fate == CST_LIVES && data_ended && is_past(now, data_ended, data_end_ms)) {
        cst_watch_condemn(w, r, COSET_ERR_PEER, "its data connection has been broken");
    } else if (fate == CST_LIVES && is_past(now, p->heard, w->dead_ms)) {
        snprintf(text, sizeof text, "nothing has been heard from it for %d ms: host or link down", w->dead_ms);
        cst_watch_condemn(w, r, COSET_ERR_PEER, text);
    }
}

/* A process that has been stopped, or a host that has slept, must not take its own absence for the others'. */
static void forgive(cst_watch *w, uint64_t absence)
{
    cst_log(CST_LOG_INFO, "this rank has not run for %llu ms", (unsigned long long)(absence / CST_NS_PER_MS));
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
            cst_watch_say(w, r, record, bytes);
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
        cst_watch_flush(w, r);
        pthread_mutex_unlock(&w->lock);
    }
}

void *cst_watch_main(void *ctx)
{
    cst_watch *w = ctx;
    struct epoll_event event[32];
    uint64_t beat_ns = (uint64_t)w->beat_ms * CST_NS_PER_MS, last = cst_now_ns(), next = last;
    while (!atomic_load(&w->stop)) {
        uint64_t now = cst_now_ns();
        int wait_ms = next > now ? (int)((next - now + CST_NS_PER_MS - 1) / CST_NS_PER_MS) : 0;
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
