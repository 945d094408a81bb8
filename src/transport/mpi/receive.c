/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving side of messages. */
#include "transport/mpi/internal.h"

#include <stdlib.h>
#include <string.h>

static bool suits(const cst_mpi_head *head, const coset_msg *msg)
{
    static const coset_entry none;
    const coset_entry *entry = msg->entry ? msg->entry : &none;
    return head->bytes == msg->priv[2] && !memcmp(head->entry.bytes, entry->bytes, sizeof entry->bytes);
}

static void say_ready(cst_mpi_engine *e, int peer, uint32_t id, uint32_t tag)
{
    cst_mpi_head head = {.kind = CST_FRAME_READY, .id = id, .tag = tag};
    cst_mpi_send_frame(e, peer, &head, NULL, 0);
}

static int data_tag(const cst_mpi_engine *e, uint64_t number)
{
    return 1 + (int)(number % (uint64_t)e->most_tag); /* 0 is that of frames */
}

static void ask_for_payload(cst_mpi_engine *e, coset_msg *msg, const cst_mpi_head *head)
{
    cst_mpi_peer *p = &e->peers[msg->peer];
    cst_flight flight = {.msg = msg,
                         .peer = msg->peer,
                         .incoming = true,
                         .number = p->asked,
                         .bytes = (size_t)head->bytes,
                         .tag = data_tag(e, p->asked)};
    int code = cst_flights_start(&e->flights, &flight, msg->iov, msg->iovcnt);
    if (code != MPI_SUCCESS) {
        cst_mpi_finish(e, msg, COSET_ERR_PEER);
        cst_mpi_failed(e, msg->peer, code);
        return;
    }
    p->asked++;
    msg->priv[0] = CST_MPI_FLYING;
    msg->priv[3] = head->sum;
    say_ready(e, msg->peer, head->id, (uint32_t)flight.tag);
}

coset_status cst_mpi_verified(const cst_mpi_engine *e, const coset_msg *msg, uint64_t sum)
{
    return e->checksum && cst_mpi_checksum(msg) != sum ? COSET_ERR_CORRUPT : COSET_OK;
}

/* The message and its receive have met. `data` is its payload if that rode along. */
static void meet(cst_mpi_engine *e, coset_msg *msg, const cst_mpi_head *head, const unsigned char *data)
{
    bool fits = suits(head, msg);
    if (head->kind == CST_FRAME_ASK) {
        if (fits && head->bytes) {
            ask_for_payload(e, msg, head);
            return;
        }
        cst_mpi_finish(e, msg, fits ? COSET_OK : COSET_ERR_MISMATCH);
        say_ready(e, msg->peer, head->id, 0);
        return;
    }
    if (!fits) {
        cst_mpi_finish(e, msg, COSET_ERR_MISMATCH);
        return;
    }
    cst_cursor to = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    cst_cursor_put(&to, data, (size_t)head->bytes);
    e->counters.received_bytes += head->bytes;
    cst_mpi_finish(e, msg, cst_mpi_verified(e, msg, head->sum));
}

static void note_taken(cst_mpi_engine *e, int peer, const cst_mpi_head *head)
{
    cst_mpi_peer *p = &e->peers[peer];
    if (head->kind != CST_FRAME_EAGER)
        return;
    p->untold += (uint32_t)(sizeof *head + head->bytes);
    if (p->untold >= CST_MPI_WINDOW / 2 && !p->gone) {
        cst_mpi_head credit = {.kind = CST_FRAME_CREDIT};
        cst_mpi_send_frame(e, peer, &credit, NULL, 0);
    }
}

coset_status cst_mpi_engine_receive(cst_mpi_engine *e, coset_msg *msg, size_t bytes)
{
    cst_mpi_peer *p = &e->peers[msg->peer];
    cst_mpi_early *early = p->early;
    while (early && (early->head.op != msg->op || early->head.tag != msg->tag))
        early = early->next;
    if (!early && p->gone)
        return msg->status = COSET_ERR_PEER;
    msg->priv[2] = bytes;
    msg->status = COSET_IN_PROGRESS;
    if (!early) {
        cst_mpi_append(&p->posted_last, msg, CST_MPI_POSTED);
        return COSET_OK;
    }
    cst_mpi_head head = early->head;
    meet(e, msg, &head, early->data);
    cst_mpi_drop_early(p, early);
    note_taken(e, msg->peer, &head);
    return COSET_OK;
}

static void keep(cst_mpi_engine *e, const cst_arrived *a)
{
    cst_mpi_peer *p = &e->peers[a->peer];
    cst_mpi_early *early = malloc(sizeof *early + a->bytes);
    if (!early) {
        cst_mpi_lose(e, a->peer, COSET_ERR_MEMORY, "no memory here for a message of its");
        return;
    }
    early->next = NULL;
    early->head = *a->head;
    memcpy(early->data, a->data, a->bytes);
    *p->early_last = early;
    p->early_last = &early->next;
}

void cst_mpi_message_came(cst_mpi_engine *e, const cst_arrived *a)
{
    cst_mpi_peer *p = &e->peers[a->peer];
    const cst_mpi_head *head = a->head;
    if (e->on_entry)
        e->on_entry(e->on_entry_ctx, a->peer, head->op, &head->entry);
    coset_msg *msg = p->posted;
    while (msg && (msg->op != head->op || msg->tag != head->tag))
        msg = msg->next;
    if (!msg) {
        keep(e, a);
        return;
    }
    cst_mpi_take_out(&p->posted, &p->posted_last, msg);
    meet(e, msg, head, a->data);
    note_taken(e, a->peer, head);
}

void cst_mpi_withdrawn(cst_mpi_engine *e, int peer, uint32_t id)
{
    cst_mpi_peer *p = &e->peers[peer];
    for (cst_mpi_early *early = p->early; early; early = early->next)
        if (early->head.kind == CST_FRAME_ASK && early->head.id == id) {
            cst_mpi_drop_early(p, early);
            return;
        }
}

void cst_mpi_drain(cst_mpi_engine *e, cst_flight flight)
{
    flight.msg = NULL;
    flight.scratch = malloc(flight.bytes);
    struct iovec iov = {flight.scratch, flight.bytes};
    if (!flight.scratch || cst_flights_start(&e->flights, &flight, &iov, 1) != MPI_SUCCESS)
        free(flight.scratch);
}
