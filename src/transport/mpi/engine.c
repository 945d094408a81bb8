/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/engine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Frames taken in one after the other before anything else is looked at. */
enum { TURN_FRAMES = 64 };

/* A message whose receive has not been posted: its head, and its payload if that rode along. */
struct cst_mpi_early {
    cst_mpi_early *next;
    cst_mpi_head head;
    unsigned char data[];
};

/* Where a message is, in priv[0]. priv[1]: its number (asking), its place (flying), its outcome (done); priv[2]: bytes;
 * priv[3]: checksum. */
enum { AT_NOWHERE, AT_POSTED, AT_ASKING, AT_FLYING, AT_DONE };

/* -------- lists -------- */

static void append(coset_msg ***last, coset_msg *msg, int where)
{
    msg->priv[0] = (uint64_t)where;
    msg->next = NULL;
    **last = msg;
    *last = &msg->next;
}

static void take_out(coset_msg **first, coset_msg ***last, const coset_msg *msg)
{
    coset_msg **at = first;
    while (*at != msg)
        at = &(*at)->next;
    *at = msg->next;
    if (!msg->next)
        *last = at;
}

static void finish(cst_mpi_engine *e, coset_msg *msg, coset_status outcome)
{
    msg->priv[1] = (uint64_t)outcome;
    append(&e->done_last, msg, AT_DONE);
}

static void drop_early(cst_mpi_peer *p, cst_mpi_early *early)
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
        take_out(&p->posted, &p->posted_last, m);
        finish(e, m, COSET_ERR_PEER);
    }
    for (coset_msg *m; (m = p->asking);) {
        take_out(&p->asking, &p->asking_last, m);
        finish(e, m, COSET_ERR_PEER);
    }
    for (cst_mpi_early *early = p->early, *next; early; early = next) {
        next = early->next;
        if (early->head.kind == CST_FRAME_ASK)
            drop_early(p, early);
    }
    for (int i = 0; i < e->flights.count; i++) {
        const cst_flight *flight = &e->flights.flights[i];
        if (flight->peer == peer && flight->incoming && flight->number >= payloads)
            cst_flights_cancel(&e->flights, i);
    }
}

static void lose(cst_mpi_engine *e, int peer, coset_status status, const char *text)
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
static void failed(cst_mpi_engine *e, int peer, int code)
{
    char text[MPI_MAX_ERROR_STRING + 8] = "MPI: ";
    int length = 0;
    MPI_Error_string(code, text + 5, &length);
    if (peer >= 0 && peer < e->size) {
        lose(e, peer, COSET_ERR_PEER, text);
        return;
    }
    e->broken = true;
    coset_notice n = cst_notice_make(COSET_NOTICE_ABORT, e->rank, COSET_ERR_SYSTEM, -1, "%s", text);
    cst_notices_push(&e->notices, &n);
    cst_mpi_engine_tell(e, &n);
}

/* -------- sending -------- */

static void send_frame(cst_mpi_engine *e, int peer, cst_mpi_head *head, cst_cursor *from, size_t bytes)
{
    cst_mpi_peer *p = &e->peers[peer];
    head->credit = p->untold;
    p->untold = 0;
    int code = cst_frames_send(&e->frames, peer, head, from, bytes);
    if (code != MPI_SUCCESS)
        failed(e, peer, code);
}

static uint64_t checksum_of(const coset_msg *msg)
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
        head.sum = checksum_of(msg);
    msg->priv[2] = bytes;
    msg->status = COSET_IN_PROGRESS;
    if (bytes <= CST_MPI_EAGER && p->credit >= cost) {
        cst_cursor from = cst_cursor_at(msg->iov, msg->iovcnt, 0);
        head.kind = CST_FRAME_EAGER;
        p->credit -= cost;
        send_frame(e, msg->peer, &head, &from, bytes);
        e->counters.sent_bytes += bytes;
        finish(e, msg, p->gone ? COSET_ERR_PEER : COSET_OK);
        return COSET_OK;
    }
    head.kind = CST_FRAME_ASK;
    head.id = p->next_id++;
    msg->priv[1] = head.id;
    append(&p->asking_last, msg, AT_ASKING);
    send_frame(e, msg->peer, &head, NULL, 0);
    return COSET_OK;
}

/* The receiver is ready: the payload, or an empty one for a message that has been cancelled. */
static void answer(cst_mpi_engine *e, int peer, const cst_mpi_head *head)
{
    cst_mpi_peer *p = &e->peers[peer];
    coset_msg *msg = p->asking;
    while (msg && msg->priv[1] != head->id)
        msg = msg->next;
    if (msg)
        take_out(&p->asking, &p->asking_last, msg);
    if (!head->tag) {
        if (msg)
            finish(e, msg, COSET_OK);
        return;
    }
    cst_flight flight = {.msg = msg, .peer = peer, .bytes = msg ? (size_t)msg->priv[2] : 0, .tag = (int)head->tag};
    int code = cst_flights_start(&e->flights, &flight, msg ? msg->iov : NULL, msg ? msg->iovcnt : 0);
    if (code == MPI_SUCCESS) {
        p->answered++;
        if (msg)
            msg->priv[0] = AT_FLYING;
        return;
    }
    if (msg)
        finish(e, msg, COSET_ERR_PEER);
    failed(e, peer, code);
}

/* -------- receiving -------- */

static bool suits(const cst_mpi_head *head, const coset_msg *msg)
{
    static const coset_entry none;
    const coset_entry *entry = msg->entry ? msg->entry : &none;
    return head->bytes == msg->priv[2] && !memcmp(head->entry.bytes, entry->bytes, sizeof entry->bytes);
}

static void say_ready(cst_mpi_engine *e, int peer, uint32_t id, uint32_t tag)
{
    cst_mpi_head head = {.kind = CST_FRAME_READY, .id = id, .tag = tag};
    send_frame(e, peer, &head, NULL, 0);
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
        finish(e, msg, COSET_ERR_PEER);
        failed(e, msg->peer, code);
        return;
    }
    p->asked++;
    msg->priv[0] = AT_FLYING;
    msg->priv[3] = head->sum;
    say_ready(e, msg->peer, head->id, (uint32_t)flight.tag);
}

static coset_status verified(const cst_mpi_engine *e, const coset_msg *msg, uint64_t sum)
{
    return e->checksum && checksum_of(msg) != sum ? COSET_ERR_CORRUPT : COSET_OK;
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
        finish(e, msg, fits ? COSET_OK : COSET_ERR_MISMATCH);
        say_ready(e, msg->peer, head->id, 0);
        return;
    }
    if (!fits) {
        finish(e, msg, COSET_ERR_MISMATCH);
        return;
    }
    cst_cursor to = cst_cursor_at(msg->iov, msg->iovcnt, 0);
    cst_cursor_put(&to, data, (size_t)head->bytes);
    e->counters.received_bytes += head->bytes;
    finish(e, msg, verified(e, msg, head->sum));
}

static void note_taken(cst_mpi_engine *e, int peer, const cst_mpi_head *head)
{
    cst_mpi_peer *p = &e->peers[peer];
    if (head->kind != CST_FRAME_EAGER)
        return;
    p->untold += (uint32_t)(sizeof *head + head->bytes);
    if (p->untold >= CST_MPI_WINDOW / 2 && !p->gone) {
        cst_mpi_head credit = {.kind = CST_FRAME_CREDIT};
        send_frame(e, peer, &credit, NULL, 0);
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
        append(&p->posted_last, msg, AT_POSTED);
        return COSET_OK;
    }
    cst_mpi_head head = early->head;
    meet(e, msg, &head, early->data);
    drop_early(p, early);
    note_taken(e, msg->peer, &head);
    return COSET_OK;
}

static void keep(cst_mpi_engine *e, const cst_arrived *a)
{
    cst_mpi_peer *p = &e->peers[a->peer];
    cst_mpi_early *early = malloc(sizeof *early + a->bytes);
    if (!early) {
        lose(e, a->peer, COSET_ERR_MEMORY, "no memory here for a message of its");
        return;
    }
    early->next = NULL;
    early->head = *a->head;
    memcpy(early->data, a->data, a->bytes);
    *p->early_last = early;
    p->early_last = &early->next;
}

static void message_came(cst_mpi_engine *e, const cst_arrived *a)
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
    take_out(&p->posted, &p->posted_last, msg);
    meet(e, msg, head, a->data);
    note_taken(e, a->peer, head);
}

static void withdrawn(cst_mpi_engine *e, int peer, uint32_t id)
{
    cst_mpi_peer *p = &e->peers[peer];
    for (cst_mpi_early *early = p->early; early; early = early->next)
        if (early->head.kind == CST_FRAME_ASK && early->head.id == id) {
            drop_early(p, early);
            return;
        }
}

static void notice_came(cst_mpi_engine *e, const cst_arrived *a)
{
    coset_notice n;
    memcpy(&n, a->data, sizeof n);
    if (!cst_notice_valid(&n, e->size)) {
        lose(e, a->peer, COSET_ERR_CORRUPT, "it has sent a notice that makes no sense");
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
        lose(e, a->peer, COSET_ERR_CORRUPT, "it has sent a frame that makes no sense");
        return;
    }
    e->peers[a->peer].credit += a->head->credit;
    switch (a->head->kind) {
    case CST_FRAME_EAGER:
    case CST_FRAME_ASK: message_came(e, a); break;
    case CST_FRAME_READY: answer(e, a->peer, a->head); break;
    case CST_FRAME_WITHDRAWN: withdrawn(e, a->peer, a->head->id); break;
    case CST_FRAME_NOTICE: notice_came(e, a); break;
    default: break;
    }
}

/* -------- moving -------- */

/* A receive has been taken back, but its sender has been told READY and will send: somewhere that has to go. */
static void drain(cst_mpi_engine *e, cst_flight flight)
{
    flight.msg = NULL;
    flight.scratch = malloc(flight.bytes);
    struct iovec iov = {flight.scratch, flight.bytes};
    if (!flight.scratch || cst_flights_start(&e->flights, &flight, &iov, 1) != MPI_SUCCESS)
        free(flight.scratch);
}

static void taken_back(cst_mpi_engine *e, const cst_flight *flight)
{
    bool gone = e->peers[flight->peer].gone;
    if (flight->msg)
        finish(e, flight->msg, gone ? COSET_ERR_PEER : COSET_ERR_ABORTED);
    if (!gone)
        drain(e, *flight);
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
            finish(e, msg, COSET_ERR_PEER);
        failed(e, l->flight.peer, l->code);
        return;
    }
    uint64_t *wire = l->flight.incoming ? &e->counters.wire_received_bytes : &e->counters.wire_sent_bytes;
    *wire += l->flight.incoming ? l->bytes : l->flight.bytes;
    if (!msg)
        return;
    if (!l->flight.incoming) {
        e->counters.sent_bytes += l->flight.bytes;
        finish(e, msg, COSET_OK);
    } else if (l->bytes != l->flight.bytes) {
        finish(e, msg, COSET_ERR_ABORTED); /* the sender has cancelled it */
    } else {
        e->counters.received_bytes += l->bytes;
        finish(e, msg, verified(e, msg, msg->priv[3]));
    }
}

static void take_frames(cst_mpi_engine *e)
{
    for (int i = 0; i < TURN_FRAMES && !e->broken; i++) {
        cst_arrived a;
        int flag, code = cst_frames_next(&e->frames, &a, &flag);
        if (code != MPI_SUCCESS)
            failed(e, a.peer, code);
        if (code == MPI_SUCCESS && !flag)
            return;
        e->moved = true;
        if (code == MPI_SUCCESS && a.peer >= 0)
            frame_came(e, &a);
        code = cst_frames_release(&e->frames);
        if (code != MPI_SUCCESS)
            failed(e, -1, code);
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
        failed(e, peer, code);
    e->moved = e->moved || landings || e->done;
}

void cst_mpi_engine_deliver(cst_mpi_engine *e)
{
    while (e->done) {
        coset_msg *msg = e->done;
        take_out(&e->done, &e->done_last, msg);
        msg->priv[0] = AT_NOWHERE;
        msg->status = (coset_status)msg->priv[1];
    }
}

/* -------- cancelling -------- */

static void wait_until_landed(cst_mpi_engine *e, coset_msg *msg)
{
    cst_deadline end = cst_deadline_in(e->dead_ms);
    while (msg->priv[0] == AT_FLYING && !cst_deadline_passed(end)) {
        cst_mpi_engine_move(e);
        sched_yield();
    }
    if (msg->priv[0] == AT_FLYING)
        e->flights.flights[msg->priv[1]].msg = NULL;
}

void cst_mpi_engine_cancel(cst_mpi_engine *e, coset_msg *msg)
{
    cst_mpi_peer *p = &e->peers[msg->peer];
    switch (msg->priv[0]) {
    case AT_POSTED: take_out(&p->posted, &p->posted_last, msg); break;
    case AT_ASKING: {
        cst_mpi_head head = {.kind = CST_FRAME_WITHDRAWN, .id = (uint32_t)msg->priv[1]};
        take_out(&p->asking, &p->asking_last, msg);
        if (!p->gone)
            send_frame(e, msg->peer, &head, NULL, 0);
        break;
    }
    case AT_FLYING:
        if (e->flights.flights[msg->priv[1]].incoming)
            cst_flights_cancel(&e->flights, (int)msg->priv[1]);
        wait_until_landed(e, msg);
        break;
    default: break;
    }
    if (msg->priv[0] == AT_DONE)
        take_out(&e->done, &e->done_last, msg);
    msg->priv[0] = AT_NOWHERE;
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
            drop_early(&e->peers[r], e->peers[r].early);
    cst_frames_close(&e->frames);
    cst_flights_close(&e->flights);
    cst_notices_free(&e->notices);
    free(e->peers);
    MPI_Comm_free(&e->comm);
}
