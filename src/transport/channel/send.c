/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of a channel: cells, offers, streams. */
#include "transport/channel/internal.h"

#include "base/clock.h"
#include "base/flag.h"

#include <sched.h>
#include <string.h>

/* A cancel waits this long for a receiver that has begun to copy and stopped (SIGSTOP); then the slot is given up. */
enum { SETTLE_MS = 500 };

/* The next cell to fill, or NULL while the ring is full. */
static cst_cell *free_cell(cst_channel *ch, int peer)
{
    cst_peer *p = &ch->peers[peer];
    uint32_t cells = ch->layout.cells;
    if (p->produced - p->out_consumed >= cells) {
        uint32_t seen = atomic_load(&p->out->consumed);
        if (p->produced - seen > cells) {
            cst_peer_broken(ch, peer, "a ring position out of range");
            return NULL;
        }
        p->out_consumed = seen;
        if (p->produced - seen == cells)
            return NULL;
    }
    return &p->out->cells[p->produced & (cells - 1)];
}

static void publish(cst_channel *ch, int peer, cst_cell *cell, const cst_head *head)
{
    const size_t skip = sizeof cell->sequence; /* the receiver is polling that word */
    memcpy((char *)&cell->head + skip, (const char *)head + skip, sizeof *head - skip);
    atomic_store(&cell->sequence, ++ch->peers[peer].produced);
    ch->count.wire_sent_bytes += sizeof *head;
    cst_wake_peer(ch, peer);
}

static cst_head head_of(const coset_msg *msg, cst_cell_kind kind)
{
    cst_head h = {.kind = (uint8_t)kind, .tag = msg->tag, .op = msg->op, .total = msg->priv[TOTAL]};
    if (msg->entry)
        h.entry = *msg->entry;
    return h;
}

static void count_sent(cst_channel *ch, uint64_t bytes)
{
    ch->count.sent_bytes += bytes;
    ch->count.wire_sent_bytes += bytes;
}

static void send_eager(cst_channel *ch, coset_msg *msg, cst_cell *cell)
{
    cst_head h = head_of(msg, CST_CELL_EAGER);
    cst_cursor c = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    h.length = (uint32_t)h.total;
    cst_cursor_get(&c, cell->payload, h.length);
    publish(ch, msg->peer, cell, &h);
    count_sent(ch, h.total);
    cst_msg_finish(ch, msg, COSET_OK);
}

/* Stage blocks come in two halves: an eager message may hold its block until the receive is posted, perhaps after a
 * later operation, so streams, which always drain, have blocks of their own. */
static int free_block(const cst_channel *ch, bool stream)
{
    uint32_t half = ch->layout.blocks / 2, first = stream ? half : 0;
    for (uint32_t i = 0; i < half; i++) {
        uint32_t b = first + (ch->next_block + i) % half;
        if (!atomic_load(&cst_block_flag(&ch->layout, ch->areas[ch->rank], b)->word))
            return (int)b;
    }
    return -1;
}

/* Copies the next `bytes` bytes at c into block b, on its way to `peer`. */
static void fill_block(cst_channel *ch, int peer, int b, cst_cursor *c, size_t bytes)
{
    char *area = ch->areas[ch->rank];
    ch->next_block++;
    ch->block_reader[b] = peer;
    atomic_store_explicit(&cst_block_flag(&ch->layout, area, (uint32_t)b)->word, 1, memory_order_relaxed);
    cst_cursor_get(c, cst_block(&ch->layout, area, (uint32_t)b), bytes);
}

static void send_block(cst_channel *ch, coset_msg *msg, cst_cell *cell, int block)
{
    cst_head h = head_of(msg, CST_CELL_BLOCK);
    cst_cursor c = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    h.index = (uint16_t)block;
    h.length = (uint32_t)h.total;
    fill_block(ch, msg->peer, block, &c, h.length);
    publish(ch, msg->peer, cell, &h);
    count_sent(ch, h.total);
    cst_msg_finish(ch, msg, COSET_OK);
}

/* Says where the message lies; returns the number of pieces, 0 if the receiver cannot reach it. *private: not in
 * memory that the receiver maps. */
static int describe(const cst_channel *ch, const coset_msg *msg, cst_piece *pieces, bool *private)
{
    int n = 0;
    *private = false;
    if (ch->be.one_space && msg->iovcnt > CST_PIECES) {
        pieces[0] = (cst_piece){{CST_LOC_IOV, (uint32_t)msg->iovcnt, (uintptr_t)msg->iov}, msg->priv[TOTAL]};
        return 1;
    }
    for (int i = 0; i < msg->iovcnt; i++) {
        const struct iovec *v = &msg->iov[i];
        if (!v->iov_len)
            continue;
        coset_location at = ch->be.locate(ch->be.self, v->iov_base, v->iov_len);
        if (at.kind == COSET_LOC_NONE || at.kind == COSET_LOC_PRIVATE) {
            *private = true;
            at = (coset_location){COSET_LOC_PRIVATE, 0, (uintptr_t)v->iov_base};
        }
        if (n < CST_PIECES)
            pieces[n] = (cst_piece){at, v->iov_len};
        n++;
    }
    bool pulled = ch->be.pull && msg->priv[TOTAL] >= ch->be.pull_from;
    return n > CST_PIECES || (*private && !pulled) ? 0 : n;
}

static bool send_offer(cst_channel *ch, coset_msg *msg, cst_cell *cell, const cst_piece *pieces, int n)
{
    if (!ch->free_count)
        return false;
    uint16_t s = ch->free_slots[--ch->free_count];
    cst_offer *o = &ch->offers[s];
    ch->active[ch->active_count++] = s;
    o->msg = msg;
    o->generation = (o->generation + 1) & (UINT32_MAX >> 3);
    atomic_store(&cst_slot(&ch->layout, ch->areas[ch->rank], s)->word, cst_slot_word(o->generation, CST_SLOT_OFFERED));
    msg->priv[STAGE] = CST_MSG_OFFERED;
    msg->priv[AUX] = s;

    cst_head h = head_of(msg, CST_CELL_OFFER);
    h.index = s;
    h.length = o->generation;
    h.pieces = (uint8_t)n;
    memcpy(cell->payload, pieces, (size_t)n * sizeof *pieces);
    publish(ch, msg->peer, cell, &h);
    ch->count.wire_sent_bytes += (size_t)n * sizeof *pieces;
    return true;
}

/* False if the message has to wait. */
static bool try_send(cst_channel *ch, coset_msg *msg)
{
    cst_cell *cell = free_cell(ch, msg->peer);
    if (!cell)
        return false;
    if (msg->priv[TOTAL] <= CST_CELL_PAYLOAD) {
        send_eager(ch, msg, cell);
        return true;
    }
    cst_piece pieces[CST_PIECES];
    bool private;
    int n = describe(ch, msg, pieces, &private);
    bool stage =
        (private || !n) && msg->priv[TOTAL] <= ch->layout.block_bytes && (!n || msg->priv[TOTAL] < ch->be.pull_from);
    int block = stage ? free_block(ch, false) : -1;
    if (block < 0)
        return send_offer(ch, msg, cell, pieces, n);
    send_block(ch, msg, cell, block);
    return true;
}

coset_status cst_channel_isend(cst_channel *ch, coset_msg *msg)
{
    size_t total;
    msg->next = NULL;
    msg->priv[STAGE] = CST_MSG_ENDED;
    if (msg->peer < 0 || msg->peer >= ch->layout.size || msg->peer == ch->rank ||
        !cst_iov_bytes(msg->iov, msg->iovcnt, &total))
        return msg->status = COSET_ERR_ARGUMENT;
    cst_peer *p = &ch->peers[msg->peer];
    if (p->gone)
        return msg->status = p->gone;
    msg->status = COSET_IN_PROGRESS;
    msg->priv[TOTAL] = total;
    msg->priv[AUX] = msg->priv[OUTCOME] = 0;
    if (!p->queued.first && try_send(ch, msg))
        return COSET_OK;
    if (p->gone) /* found broken just now */
        return msg->status = p->gone;
    msg->priv[STAGE] = CST_MSG_QUEUED;
    cst_msg_list_add(&p->queued, msg);
    return COSET_OK;
}

bool cst_send_queued(cst_channel *ch, int peer)
{
    cst_peer *p = &ch->peers[peer];
    bool moved = false;
    coset_msg *m;
    while ((m = cst_msg_list_take(&p->queued))) {
        if (!try_send(ch, m)) {
            if (p->gone) /* found broken just now */
                cst_msg_finish(ch, m, p->gone);
            else
                cst_msg_list_put_back(&p->queued, m);
            return moved;
        }
        moved = true;
    }
    return moved;
}

static void release_slot(cst_channel *ch, int i)
{
    uint16_t s = ch->active[i];
    ch->active[i] = ch->active[--ch->active_count];
    ch->offers[s].msg = NULL;
    if (!ch->offers[s].retired)
        ch->free_slots[ch->free_count++] = s;
}

static cst_slot_state slot_state(const cst_channel *ch, uint16_t s)
{
    uint32_t word = atomic_load(&cst_slot(&ch->layout, ch->areas[ch->rank], s)->word);
    return word >> 3 == ch->offers[s].generation ? (cst_slot_state)(word & 7) : CST_SLOT_FREE;
}

/* Sends one block of a stream. False if it has to wait; *last: it was the last one. */
static bool stream_block(cst_channel *ch, coset_msg *msg, bool *last)
{
    cst_cell *cell = free_cell(ch, msg->peer);
    int block = cell ? free_block(ch, true) : -1;
    if (block < 0)
        return false;
    uint64_t sent = msg->priv[OUTCOME], left = msg->priv[TOTAL] - sent;
    uint32_t length = (uint32_t)(left < ch->layout.block_bytes ? left : ch->layout.block_bytes);
    cst_cursor c = cst_cursor_at(msg->iov, msg->iovcnt, sent);
    uint16_t s = (uint16_t)msg->priv[AUX];
    cst_head h = {.kind = CST_CELL_DATA,
                  .index = s,
                  .length = length,
                  .tag = ch->offers[s].generation,
                  .op = (uint64_t)block,
                  .total = msg->priv[TOTAL]};
    fill_block(ch, msg->peer, block, &c, length);
    publish(ch, msg->peer, cell, &h);
    msg->priv[OUTCOME] = sent + length;
    *last = left == length;
    return true;
}

/* Moves offer i of the active ones. True if it moved; *ended: its slot is free now. */
static bool move_offer(cst_channel *ch, int i, bool *ended)
{
    uint16_t s = ch->active[i];
    coset_msg *m = ch->offers[s].msg;
    *ended = false;
    if (m->priv[STAGE] == CST_MSG_OFFERED) {
        cst_slot_state state = slot_state(ch, s);
        *ended = state == CST_SLOT_DONE;
        if (state == CST_SLOT_STREAM)
            m->priv[STAGE] = CST_MSG_STREAM;
        else if (!*ended)
            return false;
    }
    if (m->priv[STAGE] == CST_MSG_STREAM && !stream_block(ch, m, ended))
        return false;
    if (*ended) {
        count_sent(ch, m->priv[TOTAL]);
        release_slot(ch, i);
        cst_msg_end(m, COSET_OK);
    }
    return true;
}

bool cst_send_offers(cst_channel *ch)
{
    bool moved = false;
    for (int i = 0; i < ch->active_count;) {
        bool ended;
        moved |= move_offer(ch, i, &ended);
        i += !ended;
    }
    return moved;
}

/* Waits until the receiver has ended a copy that it has begun. */
static void settle(cst_channel *ch, uint16_t s)
{
    cst_offer *o = &ch->offers[s];
    cst_deadline end = ch->be.peer_trusted ? CST_NEVER : cst_deadline_in(SETTLE_MS);
    for (int turns = 0; slot_state(ch, s) == CST_SLOT_CLAIMED; turns++) {
        if (turns < 100)
            cst_pause();
        else
            sched_yield();
        if (!ch->be.peer_trusted && (ch->peers[o->msg->peer].gone || cst_deadline_passed(end))) {
            uint32_t claimed = cst_slot_word(o->generation, CST_SLOT_CLAIMED);
            o->retired = atomic_compare_exchange_strong(&cst_slot(&ch->layout, ch->areas[ch->rank], s)->word, &claimed,
                                                        cst_slot_word(o->generation, CST_SLOT_CANCELLED));
            return;
        }
    }
}

/* Ends an offer. True if the receiver had taken the message before. */
static bool withdraw(cst_channel *ch, uint16_t s)
{
    uint32_t expected = cst_slot_word(ch->offers[s].generation, CST_SLOT_OFFERED);
    cst_word *word = cst_slot(&ch->layout, ch->areas[ch->rank], s);
    if (!atomic_compare_exchange_strong(&word->word, &expected,
                                        cst_slot_word(ch->offers[s].generation, CST_SLOT_CANCELLED)))
        settle(ch, s);
    bool taken = slot_state(ch, s) == CST_SLOT_DONE;
    for (int i = 0; i < ch->active_count; i++)
        if (ch->active[i] == s) {
            release_slot(ch, i);
            break;
        }
    return taken;
}

void cst_send_cancel(cst_channel *ch, coset_msg *msg)
{
    if (msg->priv[STAGE] == CST_MSG_QUEUED)
        cst_msg_list_remove(&ch->peers[msg->peer].queued, msg);
    else
        withdraw(ch, (uint16_t)msg->priv[AUX]);
}

void cst_send_gone(cst_channel *ch, int peer, coset_status status)
{
    coset_msg *m;
    while ((m = cst_msg_list_take(&ch->peers[peer].queued)))
        cst_msg_finish(ch, m, status);
    for (int i = 0; i < ch->active_count;) {
        uint16_t s = ch->active[i];
        m = ch->offers[s].msg;
        if (m->peer != peer) {
            i++;
            continue;
        }
        bool taken = withdraw(ch, s);
        if (taken)
            count_sent(ch, m->priv[TOTAL]);
        cst_msg_finish(ch, m, taken ? COSET_OK : status);
    }
    for (uint32_t b = 0; b < ch->layout.blocks; b++)
        if (ch->block_reader[b] == peer)
            atomic_store(&cst_block_flag(&ch->layout, ch->areas[ch->rank], b)->word, 0);
}

static bool queue_can_move(const cst_channel *ch, const cst_peer *p)
{
    const coset_msg *m = p->queued.first;
    if (!m)
        return false;
    bool cell = p->produced - atomic_load(&p->out->consumed) < ch->layout.cells;
    return cell && (m->priv[TOTAL] <= CST_CELL_PAYLOAD || ch->free_count);
}

static bool offer_can_move(const cst_channel *ch, uint16_t s)
{
    const coset_msg *m = ch->offers[s].msg;
    const cst_peer *p = &ch->peers[m->peer];
    if (m->priv[STAGE] == CST_MSG_STREAM)
        return p->produced - atomic_load(&p->out->consumed) < ch->layout.cells && free_block(ch, true) >= 0;
    cst_slot_state state = slot_state(ch, s);
    return state == CST_SLOT_DONE || state == CST_SLOT_STREAM;
}

bool cst_send_pending(const cst_channel *ch)
{
    for (int p = 0; p < ch->layout.size; p++)
        if (queue_can_move(ch, &ch->peers[p]))
            return true;
    for (int i = 0; i < ch->active_count; i++)
        if (offer_can_move(ch, ch->active[i]))
            return true;
    return false;
}
