/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/mesh.h"

#include "base/error.h"
#include "base/fork.h"
#include "net/descriptors.h"
#include "transport/agree.h"
#include "transport/shm/meet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static coset_status watch(cst_mesh *m, int fd, int rank, coset_error *why)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = rank};
    if (epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e))
        return cst_fail_errno(why, "transport shm: epoll_ctl");
    return COSET_OK;
}

static coset_status open_own(cst_mesh *m, coset_error *why)
{
    m->epoll = epoll_create1(EPOLL_CLOEXEC);
    m->event = m->epoll < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->event < 0)
        return cst_fail_errno(why, "transport shm: no descriptor (ulimit -n)");
    cst_fork_guard(m->epoll);
    cst_fork_guard(m->event);
    return watch(m, m->event, m->rank, why);
}

/* Found out while all ranks still hear of it: later one rank would fail alone and the others would wait for it. */
static coset_status check_descriptors(int size, coset_error *why)
{
    const int own = 3;   /* epoll, event, listener */
    const int spare = 4; /* the memory that rank 0 hands out, and strangers that come in between */
    cst_descriptors needed;
    coset_status status = cst_descriptors_hold(&needed, size - 1 + own + spare, "transport shm", why);
    if (!status)
        cst_descriptors_free(&needed);
    return status;
}

coset_status cst_mesh_open(const coset_oob *oob, uint64_t job, int timeout_ms, cst_mesh *m, coset_error *why)
{
    *m = (cst_mesh){.rank = oob->rank, .size = oob->size, .epoll = -1, .event = -1, .pages = -1};
    m->links = calloc((size_t)oob->size, sizeof *m->links);
    if (!m->links) {
        coset_status mine = cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory");
        return cst_meet(oob, job, timeout_ms, NULL, &mine, why);
    }
    for (int r = 0; r < oob->size; r++)
        m->links[r].fd = -1;
    coset_status mine = check_descriptors(oob->size, why);
    if (!mine)
        mine = open_own(m, why);
    coset_status status = cst_meet(oob, job, timeout_ms, m->links, &mine, why);
    for (int r = 0; r < oob->size && !status && !mine; r++)
        if (m->links[r].fd >= 0)
            mine = watch(m, m->links[r].fd, r, why);
    if (!status)
        status = cst_agree(oob, "transport shm: sockets", mine, 0, timeout_ms, why);
    if (status)
        cst_mesh_close(m);
    return status;
}

static void close_guarded(int fd)
{
    if (fd < 0)
        return;
    cst_fork_unguard(fd);
    close(fd);
}

void cst_mesh_close(cst_mesh *m)
{
    for (int r = 0; m->links && r < m->size; r++)
        close_guarded(m->links[r].fd);
    close_guarded(m->event);
    close_guarded(m->epoll);
    if (m->pages >= 0)
        close(m->pages);
    free(m->links);
    m->links = NULL;
    m->event = m->epoll = m->pages = -1;
}

void cst_mesh_tell(const cst_mesh *m, int peer, const cst_packet *p)
{
    if (m->links[peer].fd >= 0)
        cst_packet_send(m->links[peer].fd, p, -1);
}

void cst_mesh_wake(cst_mesh *m)
{
    uint64_t one = 1;
    if (!atomic_exchange(&m->woken, true) && write(m->event, &one, sizeof one) < 0)
        atomic_store(&m->woken, false);
}

static void drain_event(cst_mesh *m)
{
    uint64_t count;
    m->called = true;
    (void)!read(m->event, &count, sizeof count); /* it may have been drained before */
    /* After the read: a ring in between would be read with this one, and `woken` stay set with nothing to read. It is an
     * exchange so that who rang and found `woken` set is seen by what this rank looks at next. */
    atomic_exchange(&m->woken, false);
}

/* Memory is handed out by rank 0, one segment at a time. */
static void take_pages(cst_mesh *m, int peer, const cst_packet *p, int fd)
{
    int drop = fd;
    if (!peer) {
        drop = m->pages;
        m->pages = fd;
        m->pages_number = p->number;
    }
    if (drop >= 0)
        close(drop);
}

static void note_trouble(cst_mesh *m, int about, coset_status status)
{
    if (m->trouble)
        return;
    m->trouble = status ? status : COSET_ERR_PEER;
    m->troubled = about;
}

static void drain_link(cst_mesh *m, int peer, const cst_mesh_handler *h)
{
    cst_packet p;
    int fd;
    cst_got got;
    while ((got = cst_packet_receive(m->links[peer].fd, &p, &fd)) == CST_GOT_PACKET) {
        if (p.type == CST_PACKET_PAGES)
            take_pages(m, peer, &p, fd);
        if (p.type != CST_PACKET_NOTICE)
            continue;
        if (p.u.notice.kind != COSET_NOTICE_GOODBYE)
            note_trouble(m, peer, p.u.notice.status);
        h->notice(h->self, peer, &p.u.notice);
    }
    if (got == CST_GOT_NOTHING)
        return;
    epoll_ctl(m->epoll, EPOLL_CTL_DEL, m->links[peer].fd, NULL);
    m->links[peer].ended = true;
    note_trouble(m, peer, COSET_ERR_PEER);
    h->ended(h->self, peer, got == CST_GOT_NONSENSE);
}

bool cst_mesh_poll(cst_mesh *m, int timeout_ms, const cst_mesh_handler *h)
{
    enum { BATCH = 32 };
    struct epoll_event events[BATCH];
    int n = epoll_wait(m->epoll, events, BATCH, timeout_ms);
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == m->rank)
            drain_event(m);
        else
            drain_link(m, events[i].data.fd, h);
    }
    return n > 0;
}
