/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <string.h>

/* Flags count from 1: a zeroed area has nobody in operation 0. */
static uint32_t flag_number(const cst_operation *op)
{
    return (uint32_t)op->sequence + 1;
}

/* Where the payload of a rank's slot lies. */
static void *payload_of(const coset_comm *c, const cst_operation *op, int rank, size_t bytes)
{
    cst_entry_slot *slot = cst_slot_of(c, op, rank);
    return bytes <= CST_SLOT_INLINE ? slot->inline_data
                                    : c->control[rank]->data + (op->sequence & 1) * cst_slot_room(c->size);
}

static void publish(const coset_comm *c, const cst_operation *op, const void *data, size_t bytes)
{
    cst_entry_slot *slot = cst_slot_of(c, op, c->rank);
    slot->payload_bytes = (uint32_t)bytes;
    if (bytes == sizeof(uint32_t))
        memcpy(slot->inline_data, data, sizeof(uint32_t)); /* one scalar: the commonest of the small ones */
    else if (bytes)
        memcpy(payload_of(c, op, c->rank, bytes), data, bytes);
}

/* A call with wrong arguments waits for nobody. What follows it here may come while others still read the slot that it
 * will be written to, that of two operations before: not until all have entered the wrong one. */
static coset_status after_wrong_call(coset_comm *c, cst_operation *op)
{
    unsigned wrongs = c->own_wrongs - (op->call.kind == CST_BAD_CALL); /* before this one */
    if (!wrongs || c->own_wrong[(wrongs - 1) % CST_WRONG_CALLS] != op->sequence)
        return COSET_OK;
    uint32_t before = flag_number(op) - 1;
    for (int peer = 0; peer < c->size; peer++) {
        _Atomic uint32_t *entered = &c->control[peer]->slot[(op->sequence - 1) & 1].entered;
        if (cst_flag_reached(entered, before))
            continue;
        op->wait = (cst_wait){entered, before, peer, 0};
        return COSET_IN_PROGRESS;
    }
    return COSET_OK;
}

coset_status cst_shared_enter(coset_comm *c, cst_operation *op, size_t publish_always, size_t publish_unmapped)
{
    coset_status early = after_wrong_call(c, op);
    if (early != COSET_OK)
        return early;
    const coset_transport_ops *t = c->transport->ops;
    cst_entry_slot *slot = cst_slot_of(c, op, c->rank);
    size_t send_bytes = cst_call_send_bytes(&op->call, c->rank, c->size);
    slot->entry = op->entry;
    op->published = 1;
    if (send_bytes <= publish_always) {
        publish(c, op, op->call.send, send_bytes);
        if (slot->send.kind | slot->recv.kind) /* leave the second line alone if it says so already */
            slot->send = slot->recv = (coset_location){0};
    } else {
        slot->send = t->locate(c->transport, op->call.send, send_bytes);
        slot->recv = t->locate(c->transport, op->call.recv, cst_call_recv_bytes(&op->call, c->rank, c->size));
        op->published = !cst_location_mapped(&slot->send) && send_bytes <= publish_unmapped;
        if (op->published)
            publish(c, op, op->call.send, send_bytes);
        else
            slot->payload_bytes = CST_NO_PAYLOAD;
    }
    cst_flag_post(&slot->entered, flag_number(op));
    return COSET_OK;
}

/* A peer's record differs: it disagrees, or it has given up and a notice says why, now or soon. */
static coset_status explain_difference(coset_comm *c, cst_operation *op, int peer, const coset_entry *theirs)
{
    coset_entry gave_up;
    memset(&gave_up, CST_GAVE_UP, sizeof gave_up);
    c->transport->ops->progress(c->transport);
    coset_status status = cst_comm_watch(c);
    if (status != COSET_OK)
        return status;
    if (!cst_entry_equal(theirs, &gave_up))
        return cst_comm_mismatch(c, peer, &op->entry, theirs);
    op->wait = (cst_wait){NULL, 0, peer, 0};
    return COSET_IN_PROGRESS;
}

coset_status cst_shared_entered(coset_comm *c, cst_operation *op, int *published)
{
    *published = op->published;
    for (int peer = 0; peer < c->size; peer++) {
        if (peer == c->rank)
            continue;
        cst_entry_slot *slot = cst_slot_of(c, op, peer);
        if (!cst_flag_reached(&slot->entered, flag_number(op))) {
            op->wait = (cst_wait){&slot->entered, flag_number(op), peer, 0};
            return COSET_IN_PROGRESS;
        }
        if (!cst_entry_equal(&slot->entry, &op->entry))
            return explain_difference(c, op, peer, &slot->entry);
        *published &= cst_slot_has_payload(slot, c->size);
    }
    return COSET_OK;
}

void cst_shared_withdraw(coset_comm *c, const cst_operation *op)
{
    cst_entry_slot *slot = cst_slot_of(c, op, c->rank);
    if (cst_flag_reached(&slot->entered, flag_number(op)))
        memset(&slot->entry, CST_GAVE_UP, sizeof slot->entry);
}

const void *cst_shared_source(const coset_comm *c, const cst_operation *op, int rank)
{
    cst_entry_slot *slot = cst_slot_of(c, op, rank);
    if (rank == c->rank)
        return op->call.send;
    if (cst_slot_has_payload(slot, c->size))
        return payload_of(c, op, rank, slot->payload_bytes);
    return c->transport->ops->map(c->transport, rank, &slot->send, cst_call_send_bytes(&op->call, rank, c->size));
}

void *cst_shared_target(const coset_comm *c, const cst_operation *op, int rank)
{
    if (rank == c->rank)
        return op->call.recv;
    return c->transport->ops->map(c->transport, rank, &cst_slot_of(c, op, rank)->recv,
                                  cst_call_recv_bytes(&op->call, rank, c->size));
}

void cst_shared_done(coset_comm *c)
{
    cst_flag_post(&c->control[c->rank]->done.word, ++c->exits);
}

coset_status cst_shared_all_done(coset_comm *c, cst_operation *op)
{
    for (int i = 1; i < c->size; i++) {
        int peer = (c->rank + i) % c->size;
        cst_flag *done = &c->control[peer]->done;
        if (!cst_flag_reached(&done->word, c->exits)) {
            op->wait = (cst_wait){&done->word, c->exits, peer, 1};
            return COSET_IN_PROGRESS;
        }
    }
    return COSET_OK;
}
