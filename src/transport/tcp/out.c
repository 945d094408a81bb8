/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: as many heads, payloads and tails of the waiting messages as fit go into one system call. */
#include "transport/tcp/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Of one system call: so much that its cost does not count, so little that what arrives meanwhile does not wait long.
 * */
#define BATCH_BYTES    (512u << 10)
#define BATCH_MESSAGES 8
#define BATCH_PIECES   64
#define SHORT_BYTES    1024
/* Of one turn of a link. */
#define TURN_BYTES (2u << 20)

typedef struct {
    struct iovec piece[BATCH_PIECES];
    int pieces, messages;
    size_t bytes;
    struct {
        uint8_t head[CST_HEAD_BYTES], tail[CST_TAIL_BYTES];
    } envelope[BATCH_MESSAGES];
} batch;

static void add(batch *b, void *data, size_t bytes)
{
    b->piece[b->pieces++] = (struct iovec){data, bytes};
    b->bytes += bytes;
}

/* Adds the rest of one message. False if not all of it fits. */
static bool add_message(batch *b, const coset_msg *msg)
{
    uint64_t sent = msg->priv[1], bytes = msg->priv[2];
    uint8_t *head = b->envelope[b->messages].head, *tail = b->envelope[b->messages].tail;
    b->messages++;
    if (sent < CST_HEAD_BYTES) {
        cst_head_write(msg->tag, msg->op, bytes, msg->entry, head);
        add(b, head + sent, CST_HEAD_BYTES - (size_t)sent);
    }
    uint64_t from = sent > CST_HEAD_BYTES ? sent - CST_HEAD_BYTES : 0;
    if (from < bytes) {
        size_t taken, room = b->bytes < BATCH_BYTES ? BATCH_BYTES - b->bytes : 0;
        cst_cursor at = cst_cursor_at(msg->iov, msg->iovcnt, (size_t)from);
        b->pieces += cst_cursor_slice(&at, room, b->piece + b->pieces, BATCH_PIECES - 1 - b->pieces, &taken);
        b->bytes += taken;
        if (from + taken < bytes)
            return false;
        from = bytes;
    }
    size_t tail_sent = (size_t)(sent > CST_HEAD_BYTES + bytes ? sent - CST_HEAD_BYTES - bytes : 0);
    cst_tail_write(false, msg->priv[3], tail);
    add(b, tail + tail_sent, CST_TAIL_BYTES - tail_sent);
    return true;
}

/* What a cancelled message is owed goes first, alone. */
static void add_debt(batch *b, cst_debt *d, uint8_t *filling)
{
    if (d->head_left)
        add(b, d->head + CST_HEAD_BYTES - d->head_left, d->head_left);
    uint64_t left = d->filling;
    while (left && b->pieces < BATCH_PIECES - 1 && b->bytes < BATCH_BYTES) {
        size_t n = left < CST_SCRAP_BYTES ? (size_t)left : CST_SCRAP_BYTES;
        add(b, filling, n);
        left -= n;
    }
    if (!left)
        add(b, d->tail + CST_TAIL_BYTES - d->tail_left, d->tail_left);
}

static void pay_debt(cst_debt *d, size_t sent)
{
    size_t head = sent < d->head_left ? sent : d->head_left;
    d->head_left -= head;
    sent -= head;
    size_t filling = sent < d->filling ? sent : (size_t)d->filling;
    d->filling -= filling;
    sent -= filling;
    d->tail_left -= sent;
}

static void fill(batch *b, cst_engine *e, cst_link *l)
{
    b->pieces = b->messages = 0;
    b->bytes = 0;
    if (l->out.debt.tail_left) {
        memset(e->scrap, 0, CST_SCRAP_BYTES);
        add_debt(b, &l->out.debt, e->scrap);
        return;
    }
    /* two pieces at least for the next message: its head and its tail; its payload may have to wait */
    for (const coset_msg *m = l->out.first; m && b->messages < BATCH_MESSAGES && b->pieces < BATCH_PIECES - 3;
         m = m->next)
        if (!add_message(b, m) || b->bytes >= BATCH_BYTES)
            break;
}

/* `sent` bytes have gone: ends the messages that are whole. */
static void account(cst_engine *e, cst_link *l, size_t sent)
{
    e->counters.wire_sent_bytes += sent;
    if (l->out.debt.tail_left) {
        pay_debt(&l->out.debt, sent);
        return;
    }
    while (sent) {
        coset_msg *msg = l->out.first;
        uint64_t left = CST_HEAD_BYTES + msg->priv[2] + CST_TAIL_BYTES - msg->priv[1];
        uint64_t part = sent < left ? sent : left;
        msg->priv[1] += part;
        sent -= (size_t)part;
        if (part < left)
            return;
        cst_tcp_remove(&l->out.first, &l->out.last, msg);
        e->counters.sent_bytes += msg->priv[2];
        cst_tcp_finish(msg, COSET_OK);
    }
}

/* A short batch goes as one piece: copying it here costs less than handing over a list. */
static ssize_t give(const cst_link *l, const batch *b)
{
    if (b->bytes <= SHORT_BYTES) {
        uint8_t all[SHORT_BYTES], *end = all;
        for (int i = 0; i < b->pieces; i++) {
            memcpy(end, b->piece[i].iov_base, b->piece[i].iov_len);
            end += b->piece[i].iov_len;
        }
        return send(l->fd, all, b->bytes, MSG_NOSIGNAL);
    }
    struct msghdr h = {.msg_iov = (struct iovec *)(uintptr_t)b->piece, .msg_iovlen = (size_t)b->pieces};
    return sendmsg(l->fd, &h, MSG_NOSIGNAL);
}

void cst_link_write(cst_engine *e, cst_link *l)
{
    batch b;
    size_t turn = 0;
    while (l->writable && (l->out.first || l->out.debt.tail_left)) {
        if (turn >= TURN_BYTES) {
            cst_link_list_out(e, l);
            return;
        }
        fill(&b, e, l);
        ssize_t n = give(l, &b);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            l->writable = false;
            if (errno != EAGAIN && errno != ENOBUFS) {
                /* broken: whoever reads finds its end, and the watch decides what it means */
                l->hung_up = l->readable = true;
                cst_link_list_in(e, l);
            }
            return;
        }
        e->moved = true;
        turn += (size_t)n;
        account(e, l, (size_t)n);
        if ((size_t)n < b.bytes)
            l->writable = false; /* the socket is full; epoll tells when it is not */
    }
}
