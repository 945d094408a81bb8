/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving half of a channel: taking cells, matching, keeping what is early. */
#include "transport/channel/internal.h"

#include <stdlib.h>
#include <string.h>

static bool fits(const coset_msg *msg, const cst_head *head)
{
    return msg->op == head->op && msg->tag == head->tag;
}

static coset_msg *find_posted(const cst_peer *p, const cst_head *head)
{
    coset_msg *m = p->posted.first;
    while (m && !fits(m, head))
        m = m->next;
    return m;
}

/* NULL if there is no memory. */
static cst_arrival *new_arrival(int peer, const cst_head *head, const unsigned char *payload)
{
    size_t bytes = head->kind == CST_CELL_EAGER   ? head->length
                   : head->kind == CST_CELL_OFFER ? head->pieces * sizeof(cst_piece)
                                                  : 0;
    cst_arrival *a = malloc(sizeof *a + bytes);
    if (!a)
        return NULL;
    *a = (cst_arrival){.peer = peer, .head = *head};
    memcpy(a->payload, payload, bytes);
    return a;
}

static void start_stream(cst_channel *ch, cst_arrival *a, coset_msg *msg)
{
    cst_peer *p = &ch->peers[a->peer];
    a->msg = msg;
    a->received = 0;
    a->next = p->inbound;
    p->inbound = a;
    msg->priv[STAGE] = CST_MSG_INBOUND;
}

static const char *nonsense(const cst_channel *ch, const cst_head *h)
{
    const cst_layout *l = &ch->layout;
    switch (h->kind) {
    case CST_CELL_EAGER: return h->length > CST_CELL_PAYLOAD || h->total != h->length ? "an eager length" : NULL;
    case CST_CELL_BLOCK:
        return h->index >= l->blocks || h->length > l->block_bytes || h->total != h->length ? "a block message" : NULL;
    case CST_CELL_OFFER: return h->index >= CST_SLOTS || h->pieces > CST_PIECES ? "an offer" : NULL;
    case CST_CELL_DATA:
        return h->op >= l->blocks || h->length > l->block_bytes || h->index >= CST_SLOTS ? "a stream block" : NULL;
    default: return "a cell kind";
    }
}

/* A stream's block arrives. A stream that nobody waits for any more was cancelled here: its blocks go back unread. */
static void take_data(cst_channel *ch, int peer, const cst_head *h)
{
    cst_arrival **at = &ch->peers[peer].inbound;
    while (*at && ((*at)->head.index != h->index || (*at)->head.length != h->tag))
        at = &(*at)->next;
    cst_arrival *a = *at;
    uint32_t block = (uint32_t)h->op;
    if (a && h->length > a->head.total - a->received) {
        cst_peer_broken(ch, peer, "a stream that is too long");
        return;
    }
    if (a) {
        cst_cursor to = cst_cursor_at(a->msg->iov, a->msg->iovcnt, a->received);
        cst_cursor_put(&to, cst_block(&ch->layout, ch->areas[peer], block), h->length);
        a->received += h->length;
        ch->count.received_bytes += h->length;
        ch->count.wire_received_bytes += h->length;
    }
    cst_block_free(ch, peer, block); /* its sender is woken after the last cell: once, not for every block */
    if (a && a->received == a->head.total) {
        *at = a->next;
        cst_msg_end(a->msg, COSET_OK);
        free(a);
    }
}

/* The message of head has met the posted receive m; `a` keeps it if its data has still to come, else it is freed. */
static void take_posted(cst_channel *ch, int peer, const cst_head *head, const unsigned char *payload, coset_msg *m,
                        cst_arrival *a)
{
    coset_status status;
    cst_delivery d = cst_deliver(ch, peer, head, payload, m, &status);
    if (d != CST_WITHDRAWN) {
        cst_msg_list_remove(&ch->peers[peer].posted, m);
        if (d == CST_STREAMS) {
            start_stream(ch, a, m);
            return;
        }
        cst_msg_end(m, status);
    }
    free(a);
}

static void keep_early(cst_peer *p, cst_arrival *a)
{
    *p->early_last = a;
    p->early_last = &a->next;
    p->early_count++;
}

static bool take_message(cst_channel *ch, int peer, const cst_head *head, const unsigned char *payload)
{
    cst_peer *p = &ch->peers[peer];
    coset_msg *m = find_posted(p, head);
    cst_arrival *a = NULL;
    if (!m && p->early_count >= CST_EARLY_LIMIT)
        return false;
    if ((!m || head->kind == CST_CELL_OFFER) && !(a = new_arrival(peer, head, payload)))
        return false;
    if (ch->be.on_entry)
        ch->be.on_entry(ch->be.on_entry_ctx, peer, head->op, &head->entry);
    if (m)
        take_posted(ch, peer, head, payload, m, a);
    else
        keep_early(p, a);
    return true;
}

/* False if the cell has to stay: there is no room for an early message. */
static bool take_cell(cst_channel *ch, int peer, const cst_cell *cell)
{
    cst_head head = cell->head;
    const char *wrong = nonsense(ch, &head);
    if (wrong) {
        cst_peer_broken(ch, peer, wrong);
        return true;
    }
    if (head.kind == CST_CELL_DATA)
        take_data(ch, peer, &head);
    else if (!take_message(ch, peer, &head, cell->payload))
        return false;
    ch->count.wire_received_bytes += sizeof head;
    return true;
}

static const cst_cell *next_cell(const cst_channel *ch, const cst_peer *p)
{
    const cst_cell *cell = &p->in->cells[p->consumed & (ch->layout.cells - 1)];
    return atomic_load(&cell->sequence) == p->consumed + 1 ? cell : NULL;
}

bool cst_receive_from(cst_channel *ch, int peer)
{
    cst_peer *p = &ch->peers[peer];
    const cst_cell *cell;
    uint32_t before = p->consumed;
    if (peer == ch->rank || p->broken)
        return false;
    /* one lap at most, so that one busy peer does not keep the others waiting */
    while (p->consumed - before < ch->layout.cells && (cell = next_cell(ch, p)) && take_cell(ch, peer, cell))
        p->consumed++;
    if (p->consumed == before)
        return false;
    atomic_store(&p->in->consumed, p->consumed);
    cst_wake_peer(ch, peer); /* it may wait for a cell */
    return true;
}

static cst_arrival *take_early(cst_peer *p, const coset_msg *msg)
{
    cst_arrival **at = &p->early;
    while (*at && !fits(msg, &(*at)->head))
        at = &(*at)->next;
    cst_arrival *a = *at;
    if (!a)
        return NULL;
    *at = a->next;
    if (!*at)
        p->early_last = at;
    p->early_count--;
    a->next = NULL;
    return a;
}

coset_status cst_channel_irecv(cst_channel *ch, coset_msg *msg)
{
    size_t total;
    msg->next = NULL;
    msg->priv[STAGE] = CST_MSG_ENDED;
    if (msg->peer < 0 || msg->peer >= ch->layout.size || msg->peer == ch->rank ||
        !cst_iov_bytes(msg->iov, msg->iovcnt, &total))
        return msg->status = COSET_ERR_ARGUMENT;
    cst_peer *p = &ch->peers[msg->peer];
    cst_arrival *a = p->early ? take_early(p, msg) : NULL;
    if (!a && p->gone)
        return msg->status = p->gone;
    msg->status = COSET_IN_PROGRESS;
    msg->priv[TOTAL] = total;
    if (a) {
        a->msg = msg;
        msg->priv[STAGE] = CST_MSG_MATCHED;
        *ch->matched_last = a;
        ch->matched_last = &a->next;
    } else {
        msg->priv[STAGE] = CST_MSG_POSTED;
        cst_msg_list_add(&p->posted, msg);
    }
    return COSET_OK;
}

/* An early message that has found its receive. */
static void deliver_early(cst_channel *ch, cst_arrival *a)
{
    cst_peer *p = &ch->peers[a->peer];
    coset_msg *m = a->msg;
    coset_status status;
    switch (cst_deliver(ch, a->peer, &a->head, a->payload, m, &status)) {
    case CST_DELIVERED: cst_msg_end(m, status); break;
    case CST_STREAMS:
        if (p->gone)
            break;
        start_stream(ch, a, m);
        return;
    case CST_WITHDRAWN:
        if (p->gone)
            break;
        m->priv[STAGE] = CST_MSG_POSTED;
        cst_msg_list_add(&p->posted, m);
        break;
    }
    if (m->priv[STAGE] == CST_MSG_MATCHED)
        cst_msg_end(m, p->gone);
    free(a);
}

bool cst_receive_matched(cst_channel *ch)
{
    bool moved = false;
    cst_arrival *a;
    while ((a = ch->matched)) {
        ch->matched = a->next;
        if (!ch->matched)
            ch->matched_last = &ch->matched;
        deliver_early(ch, a);
        moved = true;
    }
    return moved;
}

void cst_receive_cancel(cst_channel *ch, coset_msg *msg)
{
    cst_peer *p = &ch->peers[msg->peer];
    if (msg->priv[STAGE] == CST_MSG_POSTED) {
        cst_msg_list_remove(&p->posted, msg);
        return;
    }
    bool inbound = msg->priv[STAGE] == CST_MSG_INBOUND;
    cst_arrival **at = inbound ? &p->inbound : &ch->matched;
    while (*at && (*at)->msg != msg)
        at = &(*at)->next;
    cst_arrival *a = *at;
    if (!a)
        return;
    *at = a->next;
    if (!inbound) {
        if (!*at)
            ch->matched_last = at;
        cst_discard(ch, a->peer, &a->head);
    }
    free(a);
}

void cst_receive_gone(cst_channel *ch, int peer, coset_status status)
{
    cst_peer *p = &ch->peers[peer];
    coset_msg *m;
    cst_arrival *a;
    while ((m = cst_msg_list_take(&p->posted)))
        cst_msg_finish(ch, m, status);
    while ((a = p->inbound)) {
        p->inbound = a->next;
        cst_msg_finish(ch, a->msg, status);
        free(a);
    }
}

bool cst_receive_pending(const cst_channel *ch)
{
    for (int i = 0; i < ch->layout.size; i++) {
        const cst_peer *p = &ch->peers[i];
        if (i != ch->rank && !p->broken && p->early_count < CST_EARLY_LIMIT && next_cell(ch, p))
            return true;
    }
    return false;
}
