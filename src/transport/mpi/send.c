/* SPDX-License-Identifier: Apache-2.0 */
/* The sending side of messages. */
#include "base/hash.h"
#include "transport/mpi/internal.h"

void cst_mpi_send_frame(cst_mpi_engine *e, int peer, cst_mpi_head *head, cst_cursor *from, size_t bytes)
{
    cst_mpi_peer *p = &e->peers[peer];
    head->credit = p->untold;
    p->untold = 0;
    int code = cst_frames_send(&e->frames, peer, head, from, bytes);
    if (code != MPI_SUCCESS)
        cst_mpi_failed(e, peer, code);
}

uint64_t cst_mpi_checksum(const coset_msg *msg)
{
    cst_hash h;
    cst_hash_begin(&h, 0);
    for (int i = 0; i < msg->iovcnt; i++)
        cst_hash_add(&h, msg->iov[i].iov_base, msg->iov[i].iov_len);
    return cst_hash_end(&h);
}

coset_status cst_mpi_engine_send(cst_mpi_engine *e, coset_msg *msg, size_t bytes)
{
    cst_mpi_peer *p = &e->peers[msg->peer];
    cst_mpi_head head = {.tag = msg->tag, .op = msg->op, .bytes = bytes};
    uint32_t cost = (uint32_t)(sizeof head + bytes);
    if (msg->entry)
        head.entry = *msg->entry;
    if (e->checksum)
        head.sum = cst_mpi_checksum(msg);
    msg->priv[2] = bytes;
    msg->status = COSET_IN_PROGRESS;
    if (bytes <= CST_MPI_EAGER && p->credit >= cost) {
        cst_cursor from = cst_cursor_at(msg->iov, msg->iovcnt, 0);
        head.kind = CST_FRAME_EAGER;
        p->credit -= cost;
        cst_mpi_send_frame(e, msg->peer, &head, &from, bytes);
        e->counters.sent_bytes += bytes;
        cst_mpi_finish(e, msg, p->gone ? COSET_ERR_PEER : COSET_OK);
        return COSET_OK;
    }
    head.kind = CST_FRAME_ASK;
    head.id = p->next_id++;
    msg->priv[1] = head.id;
    cst_mpi_append(&p->asking_last, msg, CST_MPI_ASKING);
    cst_mpi_send_frame(e, msg->peer, &head, NULL, 0);
    return COSET_OK;
}

/* The receiver is ready: the payload, or an empty one for a message that has been cancelled. */
void cst_mpi_answer(cst_mpi_engine *e, int peer, const cst_mpi_head *head)
{
    cst_mpi_peer *p = &e->peers[peer];
    coset_msg *msg = p->asking;
    while (msg && msg->priv[1] != head->id)
        msg = msg->next;
    if (msg)
        cst_mpi_take_out(&p->asking, &p->asking_last, msg);
    if (!head->tag) {
        if (msg)
            cst_mpi_finish(e, msg, COSET_OK);
        return;
    }
    cst_flight flight = {.msg = msg, .peer = peer, .bytes = msg ? (size_t)msg->priv[2] : 0, .tag = (int)head->tag};
    int code = cst_flights_start(&e->flights, &flight, msg ? msg->iov : NULL, msg ? msg->iovcnt : 0);
    if (code == MPI_SUCCESS) {
        p->answered++;
        if (msg)
            msg->priv[0] = CST_MPI_FLYING;
        return;
    }
    if (msg)
        cst_mpi_finish(e, msg, COSET_ERR_PEER);
    cst_mpi_failed(e, peer, code);
}
