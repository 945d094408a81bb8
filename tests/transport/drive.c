/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/drive.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

coset_entry entry_of(uint64_t op)
{
    coset_entry e;
    memset(&e, (int)(op % 251 + 1), sizeof e);
    memcpy(e.bytes, &op, sizeof op);
    return e;
}

void parcel_init(parcel *p, int peer, uint64_t op, uint32_t tag, size_t bytes, void *memory)
{
    *p = (parcel){.entry = entry_of(op), .bytes = bytes};
    p->data = memory ? memory : malloc(bytes ? bytes : 1);
    CHECK(p->data);
    p->iov = (struct iovec){p->data, bytes};
    p->msg = (coset_msg){.peer = peer, .op = op, .tag = tag, .iovcnt = 1};
}

void parcel_free(parcel *p)
{
    free(p->data);
    p->data = NULL;
}

static unsigned char value_at(const parcel *p, int sender, int receiver, size_t i)
{
    return (unsigned char)(i * 7 + i / 256 + (size_t)sender * 31 + (size_t)receiver * 17 + p->msg.op * 13 + p->msg.tag);
}

void parcel_fill(parcel *p, int sender, int receiver)
{
    for (size_t i = 0; i < p->bytes; i++)
        p->data[i] = value_at(p, sender, receiver, i);
}

void parcel_check(const parcel *p, int sender, int receiver)
{
    for (size_t i = 0; i < p->bytes; i++)
        if (p->data[i] != value_at(p, sender, receiver, i))
            rank_fail(__FILE__, __LINE__, "byte %zu of %zu from rank %d, op %llu tag %u: %d instead of %d", i, p->bytes,
                      sender, (unsigned long long)p->msg.op, p->msg.tag, p->data[i], value_at(p, sender, receiver, i));
}

/* A parcel may have been moved since it was made. */
static void aim(parcel *p)
{
    if (!p->msg.iov)
        p->msg.iov = &p->iov;
    p->msg.entry = &p->entry;
}

void send_parcel(rank_env *e, parcel *p)
{
    aim(p);
    CHECK_INT(e->ops->isend(e->t, &p->msg), COSET_OK);
}

void receive_parcel(rank_env *e, parcel *p)
{
    aim(p);
    CHECK_INT(e->ops->irecv(e->t, &p->msg), COSET_OK);
}

void drive(rank_env *e)
{
    enum { TURNS = 20 };
    for (int i = 0; i < TURNS; i++)
        if (e->ops->progress(e->t) == COSET_OK)
            return;
    e->ops->idle(e->t, 50);
}

coset_status wait_msg(rank_env *e, coset_msg *msg)
{
    /* Turns are counted too: on a busy machine a rank may get no processor for long. A turn sleeps 50 ms at most. */
    enum { FEW_TURNS = STEP_MS / 50 };
    cst_deadline end = cst_deadline_in(STEP_MS);
    for (int turns = 0; msg->status == COSET_IN_PROGRESS; turns++) {
        drive(e);
        if (cst_deadline_passed(end) && turns > FEW_TURNS)
            rank_fail(__FILE__, __LINE__, "no outcome: peer %d, op %llu, tag %u", msg->peer,
                      (unsigned long long)msg->op, msg->tag);
    }
    return msg->status;
}

void wait_both(rank_env *e, parcel *a, parcel *b)
{
    CHECK_INT(wait_msg(e, &a->msg), COSET_OK);
    CHECK_INT(wait_msg(e, &b->msg), COSET_OK);
}

coset_notice wait_notice(rank_env *e, int timeout_ms)
{
    coset_notice n;
    cst_deadline end = cst_deadline_in(timeout_ms);
    while (!e->ops->poll_notice(e->t, &n)) {
        drive(e);
        if (cst_deadline_passed(end))
            rank_fail(__FILE__, __LINE__, "no notice within %d ms", timeout_ms);
    }
    return n;
}

coset_notice wait_notice_of(rank_env *e, coset_notice_kind kind, int about, int timeout_ms)
{
    cst_deadline end = cst_deadline_in(timeout_ms);
    for (;;) {
        coset_notice n = wait_notice(e, cst_deadline_left(end, timeout_ms) + 1);
        if (n.kind == kind && n.about == about)
            return n;
    }
}

void sync_by_messages(rank_env *e, uint64_t op)
{
    parcel out[RANKS_MAX], in[RANKS_MAX];
    for (int r = 0; r < e->size; r++)
        if (r != e->rank) {
            parcel_init(&in[r], r, op, 0xffff, 0, NULL);
            receive_parcel(e, &in[r]);
            parcel_init(&out[r], r, op, 0xffff, 0, NULL);
            send_parcel(e, &out[r]);
        }
    for (int r = 0; r < e->size; r++)
        if (r != e->rank) {
            wait_both(e, &out[r], &in[r]);
            parcel_free(&out[r]);
            parcel_free(&in[r]);
        }
}
