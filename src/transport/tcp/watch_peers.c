/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "transport/tcp/watch_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* -------- sending -------- */

static void listen_for_room(cst_watch *w, int r, bool wanted)
{
    struct epoll_event e = {EPOLLIN | (wanted ? EPOLLOUT : 0u), {.u32 = (uint32_t)r}};
    epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->peer[r].fd, &e);
}

/* Errors are not looked at here: the end of a connection is noticed where it is read. */
void cst_watch_flush(cst_watch *w, int r)
{
    cst_watched *p = &w->peer[r];
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

void cst_watch_say(cst_watch *w, int r, const uint8_t *record, size_t bytes)
{
    cst_watched *p = &w->peer[r];
    if (p->fd < 0 || atomic_load(&p->fate) != CST_LIVES || bytes > CST_WATCH_OUT - p->waiting)
        return;
    memcpy(p->out + p->waiting, record, bytes);
    p->waiting += bytes;
    if (p->waiting == bytes) { /* else the thread is waiting for room */
        cst_watch_flush(w, r);
        if (p->waiting)
            listen_for_room(w, r, true);
    }
}

void cst_watch_tell_all(cst_watch *w, const coset_notice *notice, int but)
{
    uint8_t record[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    size_t bytes = cst_notice_write(notice, record);
    for (int r = 0; r < w->size; r++)
        if (r != w->rank && r != but)
            cst_watch_say(w, r, record, bytes);
}

static void deliver(cst_watch *w, const coset_notice *notice)
{
    if (cst_notices_push(&w->inbox, notice))
        atomic_fetch_add(&w->unread, 1);
}

/* -------- fates -------- */

void cst_watch_lose(cst_watch *w, int r, coset_status status)
{
    atomic_store(&w->peer[r].status, (int)status);
    atomic_store(&w->peer[r].fate, CST_LOST);
    w->peer[r].waiting = 0;
}

void cst_watch_declare_dead(cst_watch *w, int r, coset_status status, const char *text)
{
    if (atomic_load(&w->peer[r].fate) != CST_LIVES)
        return;
    if (w->leaving) { /* a peer that leaves at the same time owes this rank no goodbye */
        cst_watch_lose(w, r, status);
        return;
    }
    coset_notice n = cst_notice_make(COSET_NOTICE_DEATH, r, status, r, "%s", text);
    cst_log(CST_LOG_INFO, "tcp: rank %d has lost rank %d: %s", w->rank, r, text);
    cst_watch_lose(w, r, status);
    deliver(w, &n);
    cst_watch_tell_all(w, &n, r);
}

void cst_watch_take(cst_watch *w, int from, const coset_notice *n)
{
    if (n->kind == COSET_NOTICE_GOODBYE) {
        if (atomic_load(&w->peer[from].fate) != CST_LIVES)
            return;
        atomic_store(&w->peer[from].departed, cst_now_ns());
        w->peer[from].waiting = 0;
        atomic_store(&w->peer[from].fate, CST_DEPARTED);
    } else if (n->kind == COSET_NOTICE_DEATH && n->about != w->rank) {
        int fate = atomic_load(&w->peer[n->about].fate);
        if (fate == CST_LOST)
            return; /* known */
        if (fate == CST_LIVES)
            cst_watch_lose(w, n->about, n->status);
        /* of a rank that has said goodbye it is news, too: the sender has still needed it */
    }
    deliver(w, n);
}

/* Everything but the news of a third rank's death is about the sender itself, and statuses are failures. */
bool cst_watch_makes_sense(const cst_watch *w, int from, const coset_notice *n)
{
    bool fails = n->status == COSET_ERR_PEER || n->status == COSET_ERR_LATE || n->status == COSET_ERR_MISMATCH ||
                 n->status == COSET_ERR_ABORTED || n->status == COSET_ERR_CORRUPT || n->status == COSET_ERR_ARGUMENT ||
                 n->status == COSET_ERR_UNSUPPORTED || n->status == COSET_ERR_MEMORY || n->status == COSET_ERR_SYSTEM;
    return cst_notice_valid(n, w->size) && (n->kind == COSET_NOTICE_GOODBYE ? n->status == COSET_OK : fails) &&
           (n->kind == COSET_NOTICE_DEATH ? n->about != from : n->about == from);
}
