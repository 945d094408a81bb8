/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: a link is read in pieces of whatever size the network gives; payload goes straight to its place. */
#include "transport/tcp/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Of one turn of a link. */
#define TURN_BYTES (2u << 20)
#define PIECES     64
/* What a kept message costs besides its payload. */
#define EARLY_OVERHEAD (sizeof(cst_early) + 32)

/* -------- kept messages -------- */

cst_early *cst_early_find(const cst_tcp_peer *p, uint64_t op, uint32_t tag)
{
    for (cst_early *early = p->early; early; early = early->next)
        if (early->head.op == op && early->head.tag == tag)
            return early;
    return NULL;
}

void cst_early_drop(cst_engine *e, cst_tcp_peer *p, cst_early *early)
{
    cst_early **at = &p->early;
    while (*at != early)
        at = &(*at)->next;
    *at = early->next;
    if (!early->next)
        p->early_last = at;
    p->early_bytes -= (size_t)early->head.bytes + EARLY_OVERHEAD;
    if (early->link)
        early->link->in.early = NULL;
    if (early->reusable && e->spares < CST_SPARES) {
        early->next = e->spare;
        e->spare = early;
        e->spares++;
    } else {
        free(early);
    }
}

void cst_early_free_spares(cst_engine *e)
{
    while (e->spare) {
        cst_early *early = e->spare;
        e->spare = early->next;
        free(early);
    }
    e->spares = 0;
}

/* Memory for a message of `bytes`. Small ones are left to malloc. */
static cst_early *early_memory(cst_engine *e, size_t bytes)
{
    bool reusable = bytes > CST_EARLY_MESSAGE && bytes <= CST_SPARE_BYTES;
    cst_early *early = reusable ? e->spare : NULL;
    if (early) {
        e->spare = early->next;
        e->spares--;
    } else {
        early = malloc(sizeof *early + (reusable ? CST_SPARE_BYTES : bytes));
    }
    if (early)
        *early = (cst_early){.reusable = reusable};
    return early;
}

/* NULL: it has to wait (or there is no memory, which time may mend). */
static cst_early *keep(cst_engine *e, cst_tcp_peer *p, cst_link *l, const cst_head *head)
{
    bool fits = head->bytes <= CST_EARLY_MESSAGE && p->early_bytes + head->bytes + EARLY_OVERHEAD <= CST_EARLY_BYTES;
    if (!fits && !(p->posted && e->quiet >= CST_QUIET_TURNS))
        return NULL;
    cst_early *early = early_memory(e, (size_t)head->bytes);
    if (!early)
        return NULL;
    early->head = *head;
    early->link = l;
    p->early_bytes += (size_t)head->bytes + EARLY_OVERHEAD;
    *p->early_last = early;
    p->early_last = &early->next;
    return early;
}

bool cst_head_suits(const cst_head *head, const coset_msg *msg)
{
    static const coset_entry none;
    const coset_entry *entry = msg->entry ? msg->entry : &none;
    return head->bytes == msg->priv[2] && !memcmp(head->entry.bytes, entry->bytes, sizeof entry->bytes);
}

void cst_early_claim(cst_engine *e, cst_early *early, coset_msg *msg)
{
    cst_link *l = early->link;
    l->in.msg = msg;
    l->in.cursor = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    cst_cursor_put(&l->in.cursor, early->data, (size_t)early->got);
    cst_msg_at(msg, CST_AT_LINK_IN, (int)(l - e->links));
    cst_early_drop(e, &e->peers[l->peer], early);
}

void cst_link_forget_msg(cst_link *l)
{
    l->in.msg = NULL;
}

/* -------- a message on its way in -------- */

static coset_msg *take_posted(cst_tcp_peer *p, uint64_t op, uint32_t tag)
{
    for (coset_msg *m = p->posted; m; m = m->next)
        if (m->op == op && m->tag == tag) {
            cst_tcp_remove(&p->posted, &p->posted_last, m);
            return m;
        }
    return NULL;
}

/* Finds a place for the payload of the head that has been read; false: HELD. */
static bool place(cst_engine *e, cst_link *l)
{
    cst_incoming *in = &l->in;
    cst_tcp_peer *p = &e->peers[l->peer];
    coset_msg *msg = take_posted(p, in->head.op, in->head.tag);
    if (in->state == CST_IN_HELD)
        e->held--;
    in->msg = NULL;
    in->early = NULL;
    if (msg && cst_head_suits(&in->head, msg)) {
        in->msg = msg;
        in->cursor = cst_cursor_at(msg->iov, msg->iovcnt, 0);
        cst_msg_at(msg, CST_AT_LINK_IN, (int)(l - e->links));
    } else if (msg) {
        cst_tcp_finish(msg, COSET_ERR_MISMATCH); /* its payload is thrown away */
    } else if (!(in->early = keep(e, p, l, &in->head))) {
        in->state = CST_IN_HELD;
        e->held++;
        return false;
    }
    in->left = in->head.bytes;
    in->state = in->left ? CST_IN_BODY : CST_IN_TAIL;
    in->got = 0;
    cst_hash_begin(&in->hash, 0);
    return true;
}

static void nonsense(cst_engine *e, cst_link *l, const char *text)
{
    cst_link_end(e, l);
    e->events.nonsense(e->events.ctx, l->peer, text);
}

static void head_done(cst_engine *e, cst_link *l)
{
    if (!cst_head_read(l->in.part, &l->in.head)) {
        nonsense(e, l, "it has sent bytes that are no head of a message");
        return;
    }
    if (l->in.head.bytes > CST_MESSAGE_BYTES) {
        nonsense(e, l, "it has announced a message longer than any may be");
        return;
    }
    if (e->on_entry)
        e->on_entry(e->on_entry_ctx, l->peer, l->in.head.op, &l->in.head.entry);
    place(e, l);
}

static void tail_done(cst_engine *e, cst_link *l)
{
    cst_incoming *in = &l->in;
    bool cancelled;
    uint64_t sum;
    if (!cst_tail_read(in->part, &cancelled, &sum)) {
        nonsense(e, l, "it has sent bytes that are no tail of a message");
        return;
    }
    coset_status status = COSET_OK;
    if (cancelled)
        status = COSET_ERR_ABORTED;
    else if (e->checksum && sum != cst_hash_end(&in->hash))
        status = COSET_ERR_CORRUPT;
    if (in->early) {
        in->early->status = status;
        in->early->link = NULL;
    }
    if (in->msg)
        cst_tcp_finish(in->msg, status);
    if (status == COSET_OK && (in->msg || in->early))
        e->counters.received_bytes += in->head.bytes;
    in->msg = NULL;
    in->early = NULL;
    in->state = CST_IN_HEAD;
    in->got = 0;
}

/* `bytes` of payload have come to lie at `data`: is a part of the message. */
static void note_payload(cst_engine *e, cst_incoming *in, const void *data, size_t bytes)
{
    if (e->checksum)
        cst_hash_add(&in->hash, data, bytes);
    in->left -= bytes;
    if (in->left == 0)
        in->state = CST_IN_TAIL;
}

static void copy_payload(cst_engine *e, cst_incoming *in, const uint8_t *data, size_t bytes)
{
    if (in->msg)
        cst_cursor_put(&in->cursor, data, bytes);
    if (in->early) {
        memcpy(in->early->data + in->early->got, data, bytes);
        in->early->got += bytes;
    }
    note_payload(e, in, data, bytes);
}

static size_t take_part(cst_incoming *in, size_t whole, const uint8_t *data, size_t bytes)
{
    size_t n = whole - in->got < bytes ? whole - in->got : bytes;
    memcpy(in->part + in->got, data, n);
    in->got += n;
    return n;
}

/* Takes in what lies in the stage, as far as it has a place. */
static void use_stage(cst_engine *e, cst_link *l)
{
    cst_incoming *in = &l->in;
    while (in->stage_from < in->stage_to && in->state != CST_IN_HELD && !l->ended) {
        const uint8_t *at = in->stage + in->stage_from;
        size_t there = in->stage_to - in->stage_from, n;
        switch (in->state) {
        case CST_IN_HEAD:
            n = take_part(in, CST_HEAD_BYTES, at, there);
            if (in->got == CST_HEAD_BYTES)
                head_done(e, l);
            break;
        case CST_IN_BODY:
            n = in->left < there ? (size_t)in->left : there;
            copy_payload(e, in, at, n);
            break;
        case CST_IN_TAIL:
            n = take_part(in, CST_TAIL_BYTES, at, there);
            if (in->got == CST_TAIL_BYTES)
                tail_done(e, l);
            break;
        default: return;
        }
        in->stage_from += n;
    }
}

/* Where the next bytes of payload go: pieces of memory, *bytes in all. The message is not moved on. */
static int payload_pieces(const cst_engine *e, const cst_incoming *in, struct iovec *piece, size_t *bytes)
{
    size_t left = (size_t)in->left;
    if (in->msg) {
        cst_cursor at = in->cursor;
        return cst_cursor_slice(&at, left, piece, PIECES - 1, bytes);
    }
    if (in->early) {
        *piece = (struct iovec){in->early->data + in->early->got, left};
        *bytes = left;
    } else {
        *bytes = left < CST_SCRAP_BYTES ? left : CST_SCRAP_BYTES;
        *piece = (struct iovec){e->scrap, *bytes};
    }
    return 1;
}

/* `bytes` have been read into the pieces that payload_pieces gave. */
static void moved_payload(cst_engine *e, cst_incoming *in, const struct iovec *piece, size_t bytes)
{
    struct iovec passed[PIECES];
    size_t taken;
    if (in->msg)
        cst_cursor_slice(&in->cursor, bytes, passed, PIECES, &taken);
    if (in->early)
        in->early->got += bytes;
    while (bytes) {
        size_t n = piece->iov_len < bytes ? piece->iov_len : bytes;
        note_payload(e, in, piece->iov_base, n);
        piece++;
        bytes -= n;
    }
}

/* One system call. False when there is no more to read now. */
static bool read_some(cst_engine *e, cst_link *l, size_t *turn)
{
    cst_incoming *in = &l->in;
    struct iovec piece[PIECES];
    int pieces = 0;
    size_t payload = 0, ahead = CST_STAGE_BYTES;
    if (in->state == CST_IN_BODY) {
        pieces = payload_pieces(e, in, piece, &payload);
        /* the tail and the next head; what follows that can go straight to its place */
        ahead = CST_TAIL_BYTES + CST_HEAD_BYTES;
    }
    bool whole = payload == (in->state == CST_IN_BODY ? in->left : 0);
    if (whole)
        piece[pieces++] = (struct iovec){in->stage, ahead};
    size_t asked = payload + (whole ? ahead : 0);
    ssize_t n = pieces == 1 ? recv(l->fd, piece->iov_base, piece->iov_len, 0) : readv(l->fd, piece, pieces);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN) {
        l->readable = false;
        return false;
    }
    if (n <= 0) {
        cst_link_end(e, l);
        return false;
    }
    e->moved = true;
    e->counters.wire_received_bytes += (uint64_t)n;
    *turn += (size_t)n;
    size_t direct = (size_t)n < payload ? (size_t)n : payload;
    if (direct)
        moved_payload(e, in, piece, direct);
    in->stage_from = 0;
    in->stage_to = (size_t)n - direct;
    use_stage(e, l);
    if ((size_t)n < asked && !l->hung_up) {
        l->readable = false; /* it is empty; epoll tells when it is not */
        return false;
    }
    return !l->ended;
}

void cst_link_read(cst_engine *e, cst_link *l)
{
    size_t turn = 0;
    if (l->in.state == CST_IN_HELD && !place(e, l))
        return;
    use_stage(e, l);
    while (l->readable && !l->ended && l->in.state != CST_IN_HELD && turn < TURN_BYTES)
        if (!read_some(e, l, &turn))
            break;
    if (l->readable && !l->ended && l->in.state != CST_IN_HELD)
        cst_link_list_in(e, l);
}
