/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/internal.h"

#include "base/clock.h"
#include "base/error.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Frames taken in one after the other before anything else is looked at. */
enum { TURN_FRAMES = 64 };

/* -------- lists -------- */

void cst_mpi_append(coset_msg ***last, coset_msg *msg, int where)
{
    msg->priv[0] = (uint64_t)where;
    msg->next = NULL;
    **last = msg;
    *last = &msg->next;
}

void cst_mpi_take_out(coset_msg **first, coset_msg ***last, const coset_msg *msg)
{
    coset_msg **at = first;
    while (*at != msg)
        at = &(*at)->next;
    *at = msg->next;
    if (!msg->next)
        *last = at;
}

void cst_mpi_finish(cst_mpi_engine *e, coset_msg *msg, coset_status outcome)
{
    msg->priv[1] = (uint64_t)outcome;
    cst_mpi_append(&e->done_last, msg, CST_MPI_DONE);
}

void cst_mpi_drop_early(cst_mpi_peer *p, cst_mpi_early *early)
{
    cst_mpi_early **at = &p->early;
    while (*at != early)
        at = &(*at)->next;
    *at = early->next;
    if (!early->next)
        p->early_last = at;
    free(early);
}

/* -------- peers that go -------- */

/* Ends the messages that can no longer succeed. Of a peer that said goodbye, `payloads` are on their way or here. */
static void end_messages(cst_mpi_engine *e, int peer, uint64_t payloads)
{
    cst_mpi_peer *p = &e->peers[peer];
    for (coset_msg *m; (m = p->posted);) {
        cst_mpi_take_out(&p->posted, &p->posted_last, m);
        cst_mpi_finish(e, m, COSET_ERR_PEER);
    }
    for (coset_msg *m; (m = p->asking);) {
        cst_mpi_take_out(&p->asking, &p->asking_last, m);
        cst_mpi_finish(e, m, COSET_ERR_PEER);
    }
    for (cst_mpi_early *early = p->early, *next; early; early = next) {
        next = early->next;
        if (early->head.kind == CST_FRAME_ASK)
            cst_mpi_drop_early(p, early);
    }
    for (int i = 0; i < e->flights.count; i++) {
        const cst_flight *flight = &e->flights.flights[i];
        if (flight->peer == peer && flight->incoming && flight->number >= payloads)
            cst_flights_cancel(&e->flights, i);
    }
}

void cst_mpi_lose(cst_mpi_engine *e, int peer, coset_status status, const char *text)
{
    if (peer < 0 || peer >= e->size || peer == e->rank || e->peers[peer].gone)
        return;
    e->moved = true;
    e->peers[peer].gone = true;
    coset_notice n = cst_notice_make(COSET_NOTICE_DEATH, peer, status, peer, "rank %d: %s", peer, text);
    cst_notices_push(&e->notices, &n);
    cst_mpi_engine_tell(e, &n);
    end_messages(e, peer, 0);
}

/* MPI has refused something that concerns this peer. */
void cst_mpi_failed(cst_mpi_engine *e, int peer, int code)
{
    char text[MPI_MAX_ERROR_STRING + 8] = "MPI: ";
    int length = 0;
    MPI_Error_string(code, text + 5, &length);
    if (peer >= 0 && peer < e->size) {
        cst_mpi_lose(e, peer, COSET_ERR_PEER, text);
        return;
    }
    e->broken = true;
    coset_notice n = cst_notice_make(COSET_NOTICE_ABORT, e->rank, COSET_ERR_SYSTEM, -1, "%s", text);
    cst_notices_push(&e->notices, &n);
    cst_mpi_engine_tell(e, &n);
}

/* -------- frames that arrive -------- */

static void notice_came(cst_mpi_engine *e, const cst_arrived *a)
{
    coset_notice n;
    memcpy(&n, a->data, sizeof n);
    if (!cst_notice_valid(&n, e->size)) {
        cst_mpi_lose(e, a->peer, COSET_ERR_CORRUPT, "it has sent a notice that makes no sense");
        return;
    }
    cst_notices_push(&e->notices, &n);
    if (n.kind == COSET_NOTICE_GOODBYE) {
        e->peers[a->peer].gone = true;
        atomic_store(&e->peers[a->peer].departed, true);
        end_messages(e, a->peer, a->head->op);
    } else if (n.kind == COSET_NOTICE_DEATH && n.about != e->rank) {
        e->peers[n.about].gone = true;
        end_messages(e, n.about, 0);
    }
}

static bool makes_sense(const cst_mpi_engine *e, const cst_arrived *a)
{
    const cst_mpi_head *h = a->head;
    if (!h || h->credit > CST_MPI_WINDOW - e->peers[a->peer].credit)
        return false;
    switch (h->kind) {
    case CST_FRAME_EAGER: return h->bytes == a->bytes;
    case CST_FRAME_ASK: return !a->bytes && h->bytes <= CST_MPI_MESSAGE_BYTES;
    case CST_FRAME_READY: return !a->bytes && h->tag <= (uint32_t)e->most_tag;
    case CST_FRAME_WITHDRAWN:
    case CST_FRAME_CREDIT: return !a->bytes;
    case CST_FRAME_NOTICE: return a->bytes == sizeof(coset_notice);
    default: return false;
    }
}

static void frame_came(cst_mpi_engine *e, const cst_arrived *a)
{
    if (!makes_sense(e, a)) {
        cst_mpi_lose(e, a->peer, COSET_ERR_CORRUPT, "it has sent a frame that makes no sense");
        return;
    }
    e->peers[a->peer].credit += a->head->credit;
    switch (a->head->kind) {
    case CST_FRAME_EAGER:
    case CST_FRAME_ASK: cst_mpi_message_came(e, a); break;
    case CST_FRAME_READY: cst_mpi_answer(e, a->peer, a->head); break;
    case CST_FRAME_WITHDRAWN: cst_mpi_withdrawn(e, a->peer, a->head->id); break;
    case CST_FRAME_NOTICE: notice_came(e, a); break;
    default: break;
    }
}

/* -------- moving -------- */

static void taken_back(cst_mpi_engine *e, const cst_flight *flight)
{
    bool gone = e->peers[flight->peer].gone;
    if (flight->msg)
        cst_mpi_finish(e, flight->msg, gone ? COSET_ERR_PEER : COSET_ERR_ABORTED);
    if (!gone)
        cst_mpi_drain(e, *flight);
}

static void landed(cst_mpi_engine *e, const cst_landing *l)
{
    coset_msg *msg = l->flight.msg;
    free(l->flight.scratch);
    if (l->cancelled) {
        taken_back(e, &l->flight);
        return;
    }
    if (l->code != MPI_SUCCESS) {
        if (msg)
            cst_mpi_finish(e, msg, COSET_ERR_PEER);
        cst_mpi_failed(e, l->flight.peer, l->code);
        return;
    }
    uint64_t *wire = l->flight.incoming ? &e->counters.wire_received_bytes : &e->counters.wire_sent_bytes;
    *wire += l->flight.incoming ? l->bytes : l->flight.bytes;
    if (!msg)
        return;
    if (!l->flight.incoming) {
        e->counters.sent_bytes += l->flight.bytes;
        cst_mpi_finish(e, msg, COSET_OK);
    } else if (l->bytes != l->flight.bytes) {
        cst_mpi_finish(e, msg, COSET_ERR_ABORTED); /* the sender has cancelled it */
    } else {
        e->counters.received_bytes += l->bytes;
        cst_mpi_finish(e, msg, cst_mpi_verified(e, msg, msg->priv[3]));
    }
}

static void take_frames(cst_mpi_engine *e)
{
    for (int i = 0; i < TURN_FRAMES && !e->broken; i++) {
        cst_arrived a;
        int flag, code = cst_frames_next(&e->frames, &a, &flag);
        if (code != MPI_SUCCESS)
            cst_mpi_failed(e, a.peer, code);
        if (code == MPI_SUCCESS && !flag)
            return;
        e->moved = true;
        if (code == MPI_SUCCESS && a.peer >= 0)
            frame_came(e, &a);
        code = cst_frames_release(&e->frames);
        if (code != MPI_SUCCESS)
            cst_mpi_failed(e, -1, code);
    }
}

void cst_mpi_engine_move(cst_mpi_engine *e)
{
    int peer = -1;
    take_frames(e);
    int landings = cst_flights_test(&e->flights);
    for (int i = 0; i < landings; i++) {
        cst_landing l = e->flights.landings[i]; /* a copy: the list may grow */
        landed(e, &l);
    }
    int code = cst_frames_reap(&e->frames, &peer);
    if (code != MPI_SUCCESS)
        cst_mpi_failed(e, peer, code);
    e->moved = e->moved || landings || e->done;
}

void cst_mpi_engine_deliver(cst_mpi_engine *e)
{
    while (e->done) {
        coset_msg *msg = e->done;
        cst_mpi_take_out(&e->done, &e->done_last, msg);
        msg->priv[0] = CST_MPI_NOWHERE;
        msg->status = (coset_status)msg->priv[1];
    }
}

/* -------- cancelling -------- */

static void wait_until_landed(cst_mpi_engine *e, coset_msg *msg)
{
    cst_deadline end = cst_deadline_in(e->dead_ms);
    while (msg->priv[0] == CST_MPI_FLYING && !cst_deadline_passed(end)) {
        cst_mpi_engine_move(e);
        sched_yield();
    }
    if (msg->priv[0] == CST_MPI_FLYING)
        e->flights.flights[msg->priv[1]].msg = NULL;
}

void cst_mpi_engine_cancel(cst_mpi_engine *e, coset_msg *msg)
{
    cst_mpi_peer *p = &e->peers[msg->peer];
    switch (msg->priv[0]) {
    case CST_MPI_POSTED: cst_mpi_take_out(&p->posted, &p->posted_last, msg); break;
    case CST_MPI_ASKING: {
        cst_mpi_head head = {.kind = CST_FRAME_WITHDRAWN, .id = (uint32_t)msg->priv[1]};
        cst_mpi_take_out(&p->asking, &p->asking_last, msg);
        if (!p->gone)
            cst_mpi_send_frame(e, msg->peer, &head, NULL, 0);
        break;
    }
    case CST_MPI_FLYING:
        if (e->flights.flights[msg->priv[1]].incoming)
            cst_flights_cancel(&e->flights, (int)msg->priv[1]);
        wait_until_landed(e, msg);
        break;
    default: break;
    }
    if (msg->priv[0] == CST_MPI_DONE)
        cst_mpi_take_out(&e->done, &e->done_last, msg);
    msg->priv[0] = CST_MPI_NOWHERE;
    msg->status = COSET_ERR_ABORTED;
}

/* -------- notices -------- */

void cst_mpi_engine_tell(cst_mpi_engine *e, const coset_notice *notice)
{
    cst_mpi_head head = {.kind = CST_FRAME_NOTICE};
    struct iovec iov = {(void *)(uintptr_t)notice, sizeof *notice};
    for (int r = 0; r < e->size; r++) {
        if (r == e->rank || e->peers[r].departed || (notice->kind == COSET_NOTICE_DEATH && r == notice->about))
            continue;
        if (notice->kind == COSET_NOTICE_GOODBYE)
            head.op = e->peers[r].answered;
        cst_cursor from = cst_cursor_at(&iov, 1, 0);
        (void)cst_frames_send(&e->frames, r, &head, &from, sizeof *notice); /* best effort */
    }
}

/* -------- beginning and end -------- */

bool cst_mpi_engine_quiet(cst_mpi_engine *e)
{
    for (int r = 0; r < e->size; r++)
        if (r != e->rank && !e->peers[r].gone)
            return false;
    return !e->flights.count && !cst_frames_sending(&e->frames);
}

static int highest_tag(MPI_Comm comm)
{
    enum { LEAST = 32767 }; /* that the standard promises */
    int *value, flag = 0;
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &flag);
    return flag && *value > LEAST ? *value : LEAST;
}

coset_status cst_mpi_engine_open(cst_mpi_engine *e, MPI_Comm comm, coset_error *why)
{
    MPI_Comm_rank(comm, &e->rank);
    MPI_Comm_size(comm, &e->size);
    e->comm = comm;
    e->most_tag = highest_tag(comm);
    e->done_last = &e->done;
    cst_notices_init(&e->notices, SIZE_MAX);
    cst_flights_open(&e->flights, comm);
    e->peers = calloc((size_t)e->size, sizeof *e->peers);
    if (!e->peers)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", e->size);
    for (int r = 0; r < e->size; r++) {
        cst_mpi_peer *p = &e->peers[r];
        *p = (cst_mpi_peer){.credit = CST_MPI_WINDOW};
        p->posted_last = &p->posted;
        p->asking_last = &p->asking;
        p->early_last = &p->early;
    }
    if (cst_frames_open(&e->frames, comm) == MPI_SUCCESS)
        return COSET_OK;
    cst_frames_close(&e->frames);
    free(e->peers);
    return cst_fail(why, COSET_ERR_SYSTEM, -1, "MPI refuses to receive, or memory is short");
}

void cst_mpi_engine_close(cst_mpi_engine *e)
{
    for (int r = 0; r < e->size; r++)
        while (e->peers[r].early)
            cst_mpi_drop_early(&e->peers[r], e->peers[r].early);
    cst_frames_close(&e->frames);
    cst_flights_close(&e->flights);
    cst_notices_free(&e->notices);
    free(e->peers);
    MPI_Comm_free(&e->comm);
}
