/* SPDX-License-Identifier: Apache-2.0 */
/* A message meets its receive: from the cell, from a stage block, or from where it lies. */
#include "transport/channel/internal.h"

#include <string.h>

void cst_block_free(cst_channel *ch, int peer, uint32_t block)
{
    atomic_store(&cst_block_flag(&ch->layout, ch->areas[peer], block)->word, 0);
}

static void block_done(cst_channel *ch, int peer, uint32_t block)
{
    cst_block_free(ch, peer, block);
    cst_wake_peer(ch, peer);
}

static cst_word *offer_word(cst_channel *ch, int peer, const cst_head *head)
{
    return cst_slot(&ch->layout, ch->areas[peer], head->index);
}

/* The receiver's step out of OFFERED; false if the sender has taken the message back. */
static bool step(cst_channel *ch, int peer, const cst_head *head, cst_slot_state to)
{
    uint32_t expected = cst_slot_word(head->length, CST_SLOT_OFFERED);
    return atomic_compare_exchange_strong(&offer_word(ch, peer, head)->word, &expected,
                                          cst_slot_word(head->length, to));
}

/* The receiver's step out of CLAIMED; false if the sender could not wait for it (a cancel), and what has been copied may
 * be anything. */
static bool leave_claim(cst_channel *ch, int peer, const cst_head *head, cst_slot_state to)
{
    uint32_t expected = cst_slot_word(head->length, CST_SLOT_CLAIMED);
    bool waited =
        atomic_compare_exchange_strong(&offer_word(ch, peer, head)->word, &expected, cst_slot_word(head->length, to));
    cst_wake_peer(ch, peer);
    return waited;
}

void cst_discard(cst_channel *ch, int peer, const cst_head *head)
{
    if (head->kind == CST_CELL_BLOCK)
        block_done(ch, peer, head->index);
    else if (head->kind == CST_CELL_OFFER && step(ch, peer, head, CST_SLOT_CLAIMED))
        leave_claim(ch, peer, head, CST_SLOT_DONE);
}

/* One address space: the sender's own iovecs are the description. */
static void copy_from_iov(const cst_piece *piece, cst_cursor *to)
{
    const struct iovec *from = (const struct iovec *)(uintptr_t)piece->at.offset;
    for (uint32_t i = 0; i < piece->at.segment; i++)
        cst_cursor_put(to, from[i].iov_base, from[i].iov_len);
}

/* Copies `bytes` bytes at `address` of the peer's private memory to the cursor. */
static coset_status pull(cst_channel *ch, int peer, uint64_t address, uint64_t bytes, cst_cursor *to)
{
    enum { PIECES = 64 };
    struct iovec pieces[PIECES];
    while (bytes) {
        size_t taken;
        int n = cst_cursor_slice(to, bytes, pieces, PIECES, &taken);
        struct iovec from = {(void *)(uintptr_t)address, taken};
        coset_status status = ch->be.pull(ch->be.self, peer, pieces, n, &from, 1);
        if (status)
            return status;
        address += taken;
        bytes -= taken;
    }
    return COSET_OK;
}

static coset_status copy_piece(cst_channel *ch, int peer, const cst_piece *piece, cst_cursor *to)
{
    if (piece->at.kind == CST_LOC_IOV && ch->be.one_space) {
        copy_from_iov(piece, to);
        return COSET_OK;
    }
    if (piece->at.kind == COSET_LOC_PRIVATE)
        return pull(ch, peer, piece->at.offset, piece->bytes, to);
    const void *from = ch->be.map(ch->be.self, peer, &piece->at, piece->bytes);
    if (!from)
        return COSET_ERR_CORRUPT;
    cst_cursor_put(to, from, piece->bytes);
    return COSET_OK;
}

/* Is the description of the offer sound: do its pieces add up, and can this rank reach them all? */
static bool reachable(const cst_channel *ch, const cst_head *head, const cst_piece *pieces, bool *sound)
{
    uint64_t sum = 0;
    bool private = false;
    for (int i = 0; i < head->pieces; i++) {
        private |= pieces[i].at.kind == COSET_LOC_PRIVATE;
        *sound = !__builtin_add_overflow(sum, pieces[i].bytes, &sum);
        if (!*sound)
            return false;
    }
    *sound = !head->pieces || sum == head->total;
    return head->pieces && (!private || ch->be.pull);
}

static cst_delivery take_offer(cst_channel *ch, int peer, const cst_head *head, const unsigned char *payload,
                               coset_msg *msg, coset_status *status)
{
    cst_piece pieces[CST_PIECES]; /* a copy: the peer could change the cell while it is checked */
    bool sound;
    memcpy(pieces, payload, head->pieces * sizeof *pieces);
    bool direct = reachable(ch, head, pieces, &sound);
    if (!sound) {
        *status = COSET_ERR_CORRUPT;
        return CST_DELIVERED;
    }
    if (!direct) {
        if (!step(ch, peer, head, CST_SLOT_STREAM))
            return CST_WITHDRAWN;
        cst_wake_peer(ch, peer);
        return CST_STREAMS;
    }
    if (!step(ch, peer, head, CST_SLOT_CLAIMED))
        return CST_WITHDRAWN;
    cst_cursor to = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    *status = COSET_OK;
    for (int i = 0; i < head->pieces && !*status; i++)
        *status = copy_piece(ch, peer, &pieces[i], &to);
    bool stream = *status == COSET_ERR_UNSUPPORTED; /* pulling does not work any more */
    if (!leave_claim(ch, peer, head, stream ? CST_SLOT_STREAM : CST_SLOT_DONE))
        *status = COSET_ERR_ABORTED;
    return *status == COSET_ERR_UNSUPPORTED ? CST_STREAMS : CST_DELIVERED;
}

static bool expected(const coset_msg *msg, const cst_head *head)
{
    static const coset_entry none;
    const coset_entry *entry = msg->entry ? msg->entry : &none;
    return head->total == msg->priv[TOTAL] && !memcmp(entry, &head->entry, sizeof *entry);
}

cst_delivery cst_deliver(cst_channel *ch, int peer, const cst_head *head, const unsigned char *payload, coset_msg *msg,
                         coset_status *status)
{
    if (!expected(msg, head)) {
        cst_discard(ch, peer, head);
        *status = COSET_ERR_MISMATCH;
        return CST_DELIVERED;
    }
    if (head->kind == CST_CELL_OFFER) {
        cst_delivery d = take_offer(ch, peer, head, payload, msg, status);
        if (d == CST_DELIVERED && !*status)
            ch->count.received_bytes += head->total, ch->count.wire_received_bytes += head->total;
        return d;
    }
    cst_cursor to = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    if (head->kind == CST_CELL_BLOCK) {
        cst_cursor_put(&to, cst_block(&ch->layout, ch->areas[peer], head->index), head->length);
        block_done(ch, peer, head->index);
    } else {
        cst_cursor_put(&to, payload, head->length);
    }
    ch->count.received_bytes += head->total;
    ch->count.wire_received_bytes += head->total;
    *status = COSET_OK;
    return CST_DELIVERED;
}
