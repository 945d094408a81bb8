/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/engine.h"

#include "base/error.h"
#include "net/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* Most that is read from a peer that is lost, so that a flood from it cannot hold the others up. */
#define DRAIN_BYTES (64u << 20)

/* With so few links, and messages this short, it costs less to try those that are waited for than to ask epoll which
 * have something. */
#define TRY_LINKS 4
#define TRY_BYTES (32u << 10)

/* -------- lists -------- */

void cst_tcp_append(coset_msg **last[], coset_msg *msg)
{
    msg->next = NULL;
    **last = msg;
    *last = &msg->next;
}

void cst_tcp_remove(coset_msg **first, coset_msg **last[], coset_msg *msg)
{
    while (*first != msg)
        first = &(*first)->next;
    *first = msg->next;
    if (!msg->next)
        *last = first;
    msg->next = NULL;
}

void cst_link_list_in(cst_engine *e, cst_link *l)
{
    if (l->in_listed || l->ended)
        return;
    l->in_listed = true;
    l->next_in = NULL;
    *e->in_last = l;
    e->in_last = &l->next_in;
}

void cst_link_list_out(cst_engine *e, cst_link *l)
{
    if (l->out_listed || l->fd < 0)
        return;
    l->out_listed = true;
    l->next_out = NULL;
    *e->out_last = l;
    e->out_last = &l->next_out;
}

static cst_link *next_to_read(cst_engine *e)
{
    cst_link *l = e->in_list;
    e->in_list = l->next_in;
    if (!e->in_list)
        e->in_last = &e->in_list;
    l->in_listed = false;
    return l;
}

static cst_link *next_to_write(cst_engine *e)
{
    cst_link *l = e->out_list;
    e->out_list = l->next_out;
    if (!e->out_list)
        e->out_last = &e->out_list;
    l->out_listed = false;
    return l;
}

void cst_tcp_finish(coset_msg *msg, coset_status status)
{
    cst_msg_at(msg, CST_AT_NOWHERE, 0);
    msg->status = status;
}

/* Its outcome is known outside progress, and told inside. */
static void done_later(cst_engine *e, coset_msg *msg, coset_status status)
{
    cst_msg_at(msg, CST_AT_DONE, 0);
    msg->priv[1] = (uint64_t)status;
    cst_tcp_append(&e->done_last, msg);
}

/* -------- life -------- */

static void init_link(cst_link *l, int fd, int peer)
{
    l->fd = fd;
    l->peer = peer;
    l->writable = true;
    l->out.last = &l->out.first;
}

static coset_status listen_to(const cst_engine *e, cst_link *l)
{
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.ptr = l}};
    return epoll_ctl(e->epoll, EPOLL_CTL_ADD, l->fd, &event) ? COSET_ERR_SYSTEM : COSET_OK;
}

static void free_memory(cst_engine *e)
{
    free(e->peers);
    free(e->links);
    free(e->scrap);
}

static bool allocate(cst_engine *e)
{
    size_t size = (size_t)e->size;
    e->peers = calloc(size, sizeof *e->peers);
    e->links = calloc(size * (size_t)e->sockets, sizeof *e->links);
    e->scrap = malloc(CST_SCRAP_BYTES);
    return e->peers && e->links && e->scrap;
}

coset_status cst_engine_open(cst_engine *e, int *fds, coset_error *why)
{
    e->in_last = &e->in_list;
    e->out_last = &e->out_list;
    e->done_last = &e->done;
    if (!allocate(e)) {
        free_memory(e);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for %d ranks", e->size);
    }
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    coset_status status = e->epoll < 0 ? cst_fail_errno(why, "epoll_create1") : cst_adopt(e->epoll, why);
    if (status) {
        free_memory(e);
        return status;
    }
    for (int r = 0; r < e->size; r++) {
        cst_tcp_peer *p = &e->peers[r];
        p->links = &e->links[r * e->sockets];
        p->posted_last = &p->posted;
        p->early_last = &p->early;
        p->closed = r == e->rank;
        p->open = r == e->rank ? 0 : e->sockets;
    }
    for (int i = 0; i < e->size * e->sockets; i++) {
        init_link(&e->links[i], i / e->sockets == e->rank ? -1 : fds[i], i / e->sockets);
        if (e->links[i].fd >= 0 && listen_to(e, &e->links[i])) {
            cst_fail_errno(why, "epoll_ctl");
            cst_close(e->epoll);
            free_memory(e);
            return COSET_ERR_SYSTEM;
        }
    }
    for (int i = 0; i < e->size * e->sockets; i++)
        fds[i] = -1;
    return COSET_OK;
}

void cst_engine_close(cst_engine *e)
{
    for (int r = 0; r < e->size; r++) {
        if (!e->peers[r].closed)
            cst_engine_end_peer(e, r, COSET_ERR_ABORTED);
        while (e->peers[r].early)
            cst_early_drop(e, &e->peers[r], e->peers[r].early);
    }
    cst_early_free_spares(e);
    cst_close(e->epoll);
    free_memory(e);
}

/* -------- messages -------- */

static uint64_t sum_of(const coset_msg *msg)
{
    cst_hash h;
    cst_hash_begin(&h, 0);
    for (int i = 0; i < msg->iovcnt; i++)
        cst_hash_add(&h, msg->iov[i].iov_base, msg->iov[i].iov_len);
    return cst_hash_end(&h);
}

void cst_engine_send(cst_engine *e, coset_msg *msg, size_t bytes)
{
    cst_tcp_peer *p = &e->peers[msg->peer];
    cst_link *l = &p->links[p->turn++ % (unsigned)e->sockets];
    msg->status = COSET_IN_PROGRESS;
    cst_msg_at(msg, CST_AT_LINK_OUT, (int)(l - e->links));
    msg->priv[1] = 0;
    msg->priv[2] = bytes;
    msg->priv[3] = e->checksum ? sum_of(msg) : 0;
    cst_tcp_append(&l->out.last, msg);
    if (l->writable)
        cst_link_list_out(e, l);
}

void cst_engine_receive(cst_engine *e, coset_msg *msg, size_t bytes)
{
    cst_tcp_peer *p = &e->peers[msg->peer];
    cst_early *early = cst_early_find(p, msg->op, msg->tag);
    msg->status = COSET_IN_PROGRESS;
    msg->priv[2] = bytes;
    if (early) {
        coset_status status = cst_head_suits(&early->head, msg) ? early->status : COSET_ERR_MISMATCH;
        if (status == COSET_OK && early->link) {
            cst_early_claim(e, early, msg);
            return;
        }
        cst_cursor at = cst_cursor_at(msg->iov, msg->iovcnt, 0);
        if (status == COSET_OK)
            cst_cursor_put(&at, early->data, early->head.bytes);
        cst_early_drop(e, p, early);
        done_later(e, msg, status);
        return;
    }
    cst_msg_at(msg, CST_AT_POSTED, 0);
    cst_tcp_append(&p->posted_last, msg);
    for (int i = 0; i < e->sockets; i++)
        if (p->links[i].in.state == CST_IN_HELD)
            cst_link_list_in(e, &p->links[i]);
}

/* The send has been cancelled with `sent` bytes of it on the way: what is owed. */
static void owe(cst_link *l, const coset_msg *msg, uint64_t sent)
{
    cst_debt *d = &l->out.debt;
    uint64_t payload_end = CST_HEAD_BYTES + msg->priv[2];
    cst_head_write(msg->tag, msg->op, msg->priv[2], msg->entry, d->head);
    /* a tail of which a part has gone has to go as it was */
    cst_tail_write(sent <= payload_end, sent <= payload_end ? 0 : msg->priv[3], d->tail);
    d->head_left = sent < CST_HEAD_BYTES ? CST_HEAD_BYTES - (size_t)sent : 0;
    d->filling = sent < payload_end ? payload_end - sent - d->head_left : 0;
    d->tail_left = sent > payload_end ? CST_TAIL_BYTES - (size_t)(sent - payload_end) : CST_TAIL_BYTES;
}

void cst_engine_cancel(cst_engine *e, coset_msg *msg)
{
    if (msg->status != COSET_IN_PROGRESS)
        return;
    cst_tcp_peer *p = &e->peers[msg->peer];
    cst_link *l = &e->links[cst_msg_link(msg)];
    switch (cst_msg_where(msg)) {
    case CST_AT_POSTED: cst_tcp_remove(&p->posted, &p->posted_last, msg); break;
    case CST_AT_DONE: cst_tcp_remove(&e->done, &e->done_last, msg); break;
    case CST_AT_LINK_IN: cst_link_forget_msg(l); break;
    case CST_AT_LINK_OUT:
        cst_tcp_remove(&l->out.first, &l->out.last, msg);
        if (msg->priv[1]) {
            owe(l, msg, msg->priv[1]);
            if (l->writable)
                cst_link_list_out(e, l);
        }
        break;
    default: break;
    }
    cst_tcp_finish(msg, COSET_ERR_ABORTED);
}

bool cst_engine_may_arrive(const cst_engine *e, int peer, uint64_t op, uint32_t tag)
{
    return e->peers[peer].open > 0 || cst_early_find(&e->peers[peer], op, tag);
}

/* -------- moving -------- */

int cst_engine_poll(cst_engine *e, int timeout_ms, bool *other)
{
    struct epoll_event event[64];
    *other = false;
    int n = epoll_wait(e->epoll, event, 64, timeout_ms);
    for (int i = 0; i < n; i++) {
        cst_link *l = event[i].data.ptr;
        if (!l) {
            *other = true;
            continue;
        }
        if (event[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            l->hung_up = true;
        if (event[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
            l->readable = true;
            cst_link_list_in(e, l);
        }
        if (event[i].events & (EPOLLOUT | EPOLLERR)) {
            l->writable = true;
            if (l->out.first || l->out.debt.tail_left)
                cst_link_list_out(e, l);
        }
    }
    return n > 0 ? n : 0;
}

bool cst_engine_try_links(cst_engine *e)
{
    if (e->size * e->sockets > TRY_LINKS)
        return false;
    bool any = false;
    for (int i = 0; i < e->size * e->sockets; i++) {
        cst_link *l = &e->links[i];
        if (!l->writable && l->out.first && l->fd >= 0)
            return false; /* only epoll tells when there is room again */
        const coset_msg *next = e->peers[l->peer].posted;
        if (l->in.state != CST_IN_HEAD || (next && next->priv[2] > TRY_BYTES))
            return false; /* a read locks the connection against what is arriving on it: for short messages only */
        if (l->fd >= 0 && next) {
            l->readable = true;
            cst_link_list_in(e, l);
            any = true;
        }
    }
    return any;
}

/* Each listed link once: what becomes ready meanwhile waits for the next call, so that none starves the others. */
void cst_engine_move(cst_engine *e)
{
    while (e->done) {
        coset_msg *msg = e->done;
        cst_tcp_remove(&e->done, &e->done_last, msg);
        cst_tcp_finish(msg, (coset_status)msg->priv[1]);
        e->moved = true;
    }
    cst_link **end = e->out_last;
    for (bool last = !e->out_list; !last;) {
        cst_link *l = next_to_write(e);
        last = &l->next_out == end;
        cst_link_write(e, l);
    }
    end = e->in_last;
    for (bool last = !e->in_list; !last;) {
        cst_link *l = next_to_read(e);
        last = &l->next_in == end;
        cst_link_read(e, l);
    }
    e->quiet = e->moved ? 0 : e->quiet < CST_QUIET_TURNS ? e->quiet + 1 : CST_QUIET_TURNS;
    if (e->quiet == CST_QUIET_TURNS)
        cst_engine_release_held(e);
}

bool cst_engine_release_held(cst_engine *e)
{
    bool any = false;
    if (e->held == 0)
        return false;
    for (int i = 0; i < e->size * e->sockets; i++) {
        cst_link *l = &e->links[i];
        if (l->fd >= 0 && l->in.state == CST_IN_HELD && e->peers[l->peer].posted) {
            cst_link_list_in(e, l);
            any = true;
        }
    }
    if (any)
        e->quiet = CST_QUIET_TURNS;
    return any;
}

bool cst_engine_has_work(const cst_engine *e)
{
    return e->in_list || e->out_list || e->done;
}

/* -------- ends -------- */

void cst_link_end(cst_engine *e, cst_link *l)
{
    if (l->ended)
        return;
    l->ended = true;
    l->readable = false;
    e->peers[l->peer].open--;
    e->events.link_ended(e->events.ctx, l->peer);
}

bool cst_engine_drain(cst_engine *e, int peer)
{
    cst_tcp_peer *p = &e->peers[peer];
    uint64_t before = e->counters.wire_received_bytes, limit = before + DRAIN_BYTES;
    bool held = false;
    for (int i = 0; i < e->sockets; i++) {
        cst_link *l = &p->links[i];
        if (l->fd < 0)
            continue;
        l->readable = l->hung_up = true;
        while (l->readable && !l->ended && e->counters.wire_received_bytes < limit) {
            cst_link_read(e, l);
            if (l->in.state == CST_IN_HELD)
                break;
        }
        held = held || l->in.state == CST_IN_HELD;
    }
    return held || e->counters.wire_received_bytes != before;
}

void cst_engine_end_sends(cst_engine *e, int peer, coset_status status)
{
    for (int i = 0; i < e->sockets; i++) {
        cst_outgoing *out = &e->peers[peer].links[i].out;
        while (out->first) {
            coset_msg *msg = out->first;
            cst_tcp_remove(&out->first, &out->last, msg);
            cst_tcp_finish(msg, status);
            e->moved = true;
        }
        out->debt = (cst_debt){0};
    }
}

static void close_link(cst_engine *e, cst_link *l)
{
    if (l->in_listed) {
        cst_link **at = &e->in_list;
        while (*at != l)
            at = &(*at)->next_in;
        *at = l->next_in;
        if (!l->next_in)
            e->in_last = at;
        l->in_listed = false;
    }
    if (l->out_listed) {
        cst_link **at = &e->out_list;
        while (*at != l)
            at = &(*at)->next_out;
        *at = l->next_out;
        if (!l->next_out)
            e->out_last = at;
        l->out_listed = false;
    }
    cst_close(l->fd); /* which takes it out of the epoll set */
    l->fd = -1;
    l->ended = true;
    l->readable = l->writable = false;
    e->held -= l->in.state == CST_IN_HELD;
    l->in.state = CST_IN_HEAD;
}

void cst_engine_end_peer(cst_engine *e, int peer, coset_status status)
{
    cst_tcp_peer *p = &e->peers[peer];
    cst_engine_end_sends(e, peer, status);
    for (int i = 0; i < e->sockets; i++) {
        if (p->links[i].in.msg) {
            cst_tcp_finish(p->links[i].in.msg, status);
            p->links[i].in.msg = NULL;
        }
        p->links[i].in.early = NULL;
        close_link(e, &p->links[i]);
    }
    while (p->posted) {
        coset_msg *msg = p->posted;
        cst_tcp_remove(&p->posted, &p->posted_last, msg);
        cst_tcp_finish(msg, status);
    }
    /* whole messages stay: they may still be asked for */
    for (cst_early *early = p->early, *next; early; early = next) {
        next = early->next;
        if (early->link)
            cst_early_drop(e, p, early);
    }
    p->open = 0;
    p->closed = true;
    e->moved = true;
}
