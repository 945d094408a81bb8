/* SPDX-License-Identifier: Apache-2.0 */
/* What can go wrong with the group while an operation waits: deaths, aborts, disagreement, lateness. */
#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/comm.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A rank that makes others wait this long is worth a line in the log. */
#define WARN_AFTER_MS 30000

static void complete_error(const coset_comm *c, coset_error *e, int peer, uint64_t op)
{
    e->struct_size = sizeof *e;
    e->rank = c->rank;
    e->peer = peer;
    e->op = op;
    int whose = peer >= 0 && peer < c->size ? peer : c->rank;
    memcpy(e->host, c->hosts[whose], sizeof e->host);
}

static coset_notice_kind notice_kind(coset_status status)
{
    switch (status) {
    case COSET_ERR_PEER: return COSET_NOTICE_DEATH;
    case COSET_ERR_MISMATCH: return COSET_NOTICE_MISMATCH;
    case COSET_ERR_LATE: return COSET_NOTICE_LATE;
    default: return COSET_NOTICE_ABORT;
    }
}

static coset_notice notice_of(const coset_comm *c, coset_notice_kind kind, const coset_error *e)
{
    coset_notice n = {.kind = kind,
                      .about = kind == COSET_NOTICE_DEATH ? e->peer : c->rank,
                      .status = e->status,
                      .peer = e->peer,
                      .op = e->op};
    snprintf(n.text, sizeof n.text, "%.190s", e->text);
    return n;
}

/* What another rank has told is told again: this rank may leave now, and its goodbye reach a third one before the news
 * does. In words that stay the same however often they are passed on. */
static coset_notice notice_again(const coset_comm *c, const coset_notice *n, const coset_error *e)
{
    return n->kind == COSET_NOTICE_DEATH ? *n : notice_of(c, COSET_NOTICE_LATE, e);
}

void cst_comm_write_flight(coset_comm *c)
{
    const char *pattern = cst_env("COSET_FLIGHT_FILE");
    if (!pattern)
        return;
    char path[4096];
    int n = snprintf(path, sizeof path, "%s.%d", pattern, c->rank);
    if (n > 0 && (size_t)n < sizeof path)
        coset_comm_flight(c, path);
}

/* `n` is what the others are told. */
static coset_status poison(coset_comm *c, const coset_error *e, const coset_notice *n)
{
    if (cst_poison_set(&c->poison, e)) {
        cst_log(CST_LOG_WARN, "rank %d of %d: %s: %s", c->rank, c->size, coset_strerror(e->status), e->text);
        c->transport->ops->announce(c->transport, n);
        cst_comm_write_flight(c);
    }
    return cst_poison_status(&c->poison);
}

coset_status cst_comm_fail(coset_comm *c, coset_status status, int peer, uint64_t op, const char *format, ...)
{
    coset_error e = COSET_ERROR_INIT;
    va_list args;
    va_start(args, format);
    vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    e.status = status;
    complete_error(c, &e, peer, op);
    const coset_notice n = notice_of(c, notice_kind(status), &e);
    return poison(c, &e, &n);
}

coset_status cst_comm_note(coset_comm *c, coset_status status, const char *format, ...)
{
    coset_error e = COSET_ERROR_INIT;
    va_list args;
    va_start(args, format);
    vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    e.status = status;
    complete_error(c, &e, -1, UINT64_MAX);
    pthread_mutex_lock(&c->poison.lock);
    c->last = e;
    pthread_mutex_unlock(&c->poison.lock);
    return status;
}

coset_status cst_comm_mismatch(coset_comm *c, int peer, const coset_entry *mine, const coset_entry *theirs)
{
    char text[200];
    cst_entry e;
    memcpy(&e, mine, sizeof e);
    cst_entry_explain(c->rank, mine, peer, theirs, text, sizeof text);
    return cst_comm_fail(c, COSET_ERR_MISMATCH, peer, e.sequence, "%s", text);
}

/* A rank that tells of itself: its arguments were wrong, it has not taken part. If they were wrong here too (a mistake of
 * the program, made by all), nothing is lost; if not, this rank's operation cannot complete. The notice may come before
 * this rank has got to that operation. */
static int is_wrong_call(const coset_notice *n)
{
    return n->kind == COSET_NOTICE_MISMATCH && n->about == n->peer;
}

static void judge_wrong_call(coset_comm *c, int rank)
{
    cst_entry current;
    memcpy(&current, &c->current, sizeof current);
    uint64_t op = c->wrong_call[rank] - 1;
    if (!current.kind || current.sequence < op)
        return;
    c->wrong_call[rank] = 0;
    for (int i = 0; i < CST_WRONG_CALLS; i++)
        if (c->own_wrong[i] == op + 1)
            return;
    coset_error e = COSET_ERROR_INIT;
    e.status = COSET_ERR_MISMATCH;
    snprintf(e.text, sizeof e.text, "rank %d made operation %" PRIu64 " with wrong arguments", rank, op);
    complete_error(c, &e, rank, op);
    const coset_notice n = notice_of(c, COSET_NOTICE_MISMATCH, &e);
    poison(c, &e, &n);
}

static void receive_notice(coset_comm *c, const coset_notice *n)
{
    if (is_wrong_call(n)) {
        c->wrong_call[n->about] = n->op + 1;
        return;
    }
    if (n->kind == COSET_NOTICE_DEATH)
        c->departed[n->about] = 1;
    if (n->kind == COSET_NOTICE_GOODBYE) {
        c->departed[n->about] = 1; /* a fault only if we still need that rank: cst_comm_check_wait */
        return;
    }
    coset_error e = COSET_ERROR_INIT;
    e.status = n->status ? n->status : COSET_ERR_PEER;
    if (n->kind == COSET_NOTICE_DEATH)
        snprintf(e.text, sizeof e.text, "rank %d on %.63s is gone (%.140s)", n->about, c->hosts[n->about], n->text);
    else if (n->kind == COSET_NOTICE_ABORT)
        snprintf(e.text, sizeof e.text, "rank %d aborted: %.190s", n->about, n->text);
    else
        snprintf(e.text, sizeof e.text, "%.190s", n->text);
    complete_error(c, &e, n->kind == COSET_NOTICE_DEATH || n->peer < 0 ? n->about : n->peer, n->op);
    const coset_notice again = notice_again(c, n, &e);
    poison(c, &e, &again);
}

coset_status cst_comm_watch(coset_comm *c)
{
    coset_notice n;
    while (c->transport->ops->poll_notice(c->transport, &n))
        if (n.about >= 0 && n.about < c->size)
            receive_notice(c, &n);
    for (int r = 0; r < c->size && !c->control; r++)
        if (c->wrong_call[r])
            judge_wrong_call(c, r);
    return cst_poison_status(&c->poison);
}

/* ---- lateness ---- */

static void who_is_late(const coset_comm *c, const cst_operation *op, char *text, size_t size, int *first)
{
    *first = op->wait.peer;
    text[0] = 0;
    if (!c->control || !op->wait.word) {
        char doing[96] = "";
        if (op->class->describe)
            *first = op->class->describe(op, doing, sizeof doing);
        snprintf(text, size, "%d (%s)", *first, doing);
        return;
    }
    /* ranks that have not entered this operation: the cause; the others wait as we do */
    size_t used = 0;
    for (int r = 0; r < c->size && used + 16 < size; r++) {
        const cst_entry_slot *slot = &c->control[r]->slot[op->sequence & 1];
        if (r == c->rank || cst_flag_reached(&slot->entered, (uint32_t)op->sequence + 1))
            continue;
        if (!used)
            *first = r;
        used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", r);
    }
    if (!used)
        snprintf(text, size, "%d (entered, not finished)", op->wait.peer);
}

static uint64_t moved(const coset_comm *c)
{
    coset_transport_counters n;
    c->transport->ops->counters(c->transport, &n);
    return n.sent_bytes + n.received_bytes;
}

static coset_status check_departed(coset_comm *c, cst_operation *op)
{
    int peer = op->wait.peer;
    if (peer < 0 || !c->departed[peer] || (op->wait.word && cst_flag_reached(op->wait.word, op->wait.value)))
        return COSET_IN_PROGRESS; /* no word: for the notice of a peer that has given up, if it has more to say */
    return cst_comm_fail(c, COSET_ERR_PEER, peer, op->sequence,
                         "rank %d destroyed its communicator before operation %" PRIu64 " (%s)", peer, op->sequence,
                         cst_kind_name((int)op->call.kind));
}

coset_status cst_comm_check_wait(coset_comm *c, cst_operation *op)
{
    coset_status status = check_departed(c, op);
    if (status != COSET_IN_PROGRESS)
        return status;
    uint64_t now = cst_now_ns();
    uint64_t bytes = moved(c);
    if (!op->waiting_since || bytes != op->moved_bytes) {
        op->waiting_since = now;
        op->moved_bytes = bytes;
        op->warned = 0;
        return COSET_IN_PROGRESS;
    }
    uint64_t waited_ms = (now - op->waiting_since) / 1000000;
    int too_long = waited_ms >= (uint64_t)c->settings.late_ms;
    if (!too_long && (waited_ms < WARN_AFTER_MS || op->warned))
        return COSET_IN_PROGRESS;
    char who[128];
    int first;
    who_is_late(c, op, who, sizeof who, &first);
    if (too_long)
        return cst_comm_fail(c, COSET_ERR_LATE, first, op->sequence,
                             "operation %" PRIu64 " (%s): waited %.1f s for rank %s; late_ms is %d", op->sequence,
                             cst_kind_name((int)op->call.kind), (double)waited_ms * 1e-3, who, c->settings.late_ms);
    op->warned = 1;
    cst_log(CST_LOG_WARN, "rank %d: operation %" PRIu64 " (%s) has waited %" PRIu64 " s for rank %s", c->rank,
            op->sequence, cst_kind_name((int)op->call.kind), waited_ms / 1000, who);
    return COSET_IN_PROGRESS;
}

/* ---- the mismatch check over messages ---- */

static int is_pair_op(uint64_t op)
{
    return (op >> 63) != 0;
}

void cst_comm_heard(void *comm, int peer, uint64_t op, const coset_entry *entry)
{
    coset_comm *c = comm;
    if (is_pair_op(op) || peer < 0 || peer >= c->size)
        return;
    c->heard[peer] = (cst_heard){1, op, *entry};
    const coset_entry *own = &c->recent[op % CST_RECENT];
    cst_entry mine;
    memcpy(&mine, own, sizeof mine);
    if (mine.kind && mine.sequence == op && !cst_entry_equal(own, entry))
        cst_comm_mismatch(c, peer, own, entry);
}

coset_status cst_comm_check_heard(coset_comm *c, const cst_operation *op)
{
    for (int r = 0; r < c->size; r++) {
        const cst_heard *h = &c->heard[r];
        if (h->known && h->op == op->sequence && !cst_entry_equal(&h->entry, &op->entry))
            return cst_comm_mismatch(c, r, &op->entry, &h->entry);
    }
    return COSET_OK;
}
