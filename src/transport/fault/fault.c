/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fault/fault.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "transport/agree.h"
#include "transport/fault/rules.h"
#include "transport/iov.h"
#include "transport/registry.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A message that goes another way than straight to the inner transport. */
typedef struct stand_in {
    struct stand_in *next;
    coset_msg *original;
    coset_msg sent;   /* what the inner transport carries instead; status IN_PROGRESS while it does */
    bool carried;     /* `sent` has been given to the inner transport */
    cst_deadline due; /* when it is to be given to it; CST_NEVER: never */
    bool receives;
    struct iovec piece;
    coset_entry entry;
    unsigned char data[];
} stand_in;

typedef struct {
    coset_transport base;
    coset_transport *inner;
    const coset_transport_ops *ops; /* of the inner one */
    cst_fault_rules rules;
    stand_in *stand_ins;
} fault;

static fault *self_of(const coset_transport *t)
{
    return (fault *)t;
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Looks for a rule for this call, and lets happen what can happen in any call. */
static cst_fault_action happen(fault *f, cst_fault_point at, int peer, long op, long *amount)
{
    cst_fault_action action = cst_fault_due(&f->rules, at, f->base.rank, peer, op, amount);
    switch (action) {
    case CST_DO_KILL: raise(SIGKILL); break;
    case CST_DO_EXIT: _exit((int)*amount);
    case CST_DO_HANG:
        for (;;)
            pause();
    case CST_DO_DELAY:
        if (at != CST_AT_ISEND && at != CST_AT_IRECV)
            sleep_ms(*amount);
        break;
    default: break;
    }
    return action;
}

static void happen_at(fault *f, cst_fault_point at, int peer)
{
    long amount;
    happen(f, at, peer, -1, &amount);
}

/* A stand-in with a copy of the message's memory, if `copy`. NULL: no memory. */
static stand_in *new_stand_in(fault *f, coset_msg *msg, bool copy)
{
    size_t bytes = 0;
    if (copy && !cst_iov_bytes(msg->iov, msg->iovcnt, &bytes))
        return NULL;
    stand_in *s = calloc(1, sizeof *s + bytes);
    if (!s)
        return NULL;
    s->original = msg;
    s->sent = *msg;
    s->due = CST_NEVER;
    if (msg->entry)
        s->entry = *msg->entry;
    if (copy) {
        cst_cursor c = cst_cursor_at(msg->iov, msg->iovcnt, 0);
        cst_cursor_get(&c, s->data, bytes);
        s->piece = (struct iovec){s->data, bytes};
        s->sent.iov = &s->piece;
        s->sent.iovcnt = 1;
        s->sent.entry = &s->entry;
    }
    msg->status = COSET_IN_PROGRESS;
    s->next = f->stand_ins;
    f->stand_ins = s;
    return s;
}

static void carry(fault *f, stand_in *s)
{
    s->carried = true;
    coset_status status = s->receives ? f->ops->irecv(f->inner, &s->sent) : f->ops->isend(f->inner, &s->sent);
    if (status && s->sent.status == COSET_IN_PROGRESS)
        s->sent.status = status;
}

static coset_status spoil(fault *f, coset_msg *msg, cst_fault_action action, long amount)
{
    stand_in *s = new_stand_in(f, msg, true);
    if (!s)
        return COSET_ERR_MEMORY;
    size_t bytes = s->piece.iov_len, n = (size_t)amount;
    if (action == CST_DO_TRUNCATE)
        s->piece.iov_len = n < bytes ? bytes - n : 0;
    else if (action == CST_DO_CORRUPT && n < bytes)
        s->data[n] ^= 1;
    else if (action == CST_DO_ENTRY)
        s->entry.bytes[0] ^= 1;
    carry(f, s);
    return COSET_OK;
}

static coset_status hold(fault *f, coset_msg *msg, bool receives, cst_deadline due)
{
    stand_in *s = new_stand_in(f, msg, false);
    if (!s)
        return COSET_ERR_MEMORY;
    s->receives = receives;
    s->due = due;
    if (due == CST_NEVER) /* dropped: the sender believes that it is done */
        s->sent.status = COSET_OK;
    else
        s->sent.status = COSET_IN_PROGRESS;
    return COSET_OK;
}

static long op_of(const coset_msg *msg)
{
    return msg->op > LONG_MAX ? LONG_MAX : (long)msg->op;
}

static coset_status start_send(coset_transport *t, coset_msg *msg)
{
    fault *f = self_of(t);
    long amount = 0;
    cst_fault_action action = happen(f, CST_AT_ISEND, msg->peer, op_of(msg), &amount);
    switch (action) {
    case CST_DO_DELAY: return hold(f, msg, false, cst_deadline_in((int)amount));
    case CST_DO_DROP: return hold(f, msg, false, CST_NEVER);
    case CST_DO_TRUNCATE:
    case CST_DO_CORRUPT:
    case CST_DO_ENTRY: return spoil(f, msg, action, amount);
    default: return f->ops->isend(f->inner, msg);
    }
}

static coset_status start_receive(coset_transport *t, coset_msg *msg)
{
    fault *f = self_of(t);
    long amount = 0;
    if (happen(f, CST_AT_IRECV, msg->peer, op_of(msg), &amount) == CST_DO_DELAY)
        return hold(f, msg, true, cst_deadline_in((int)amount));
    return f->ops->irecv(f->inner, msg);
}

static void cancel(coset_transport *t, coset_msg *msg)
{
    fault *f = self_of(t);
    happen_at(f, CST_AT_CANCEL, msg->peer);
    stand_in **at = &f->stand_ins;
    while (*at && (*at)->original != msg)
        at = &(*at)->next;
    stand_in *s = *at;
    if (!s) {
        f->ops->cancel(f->inner, msg);
        return;
    }
    if (s->carried && s->sent.status == COSET_IN_PROGRESS)
        f->ops->cancel(f->inner, &s->sent);
    *at = s->next;
    free(s);
    msg->status = COSET_ERR_ABORTED;
}

/* Gives held messages over when their time has come, and tells outcomes. */
static bool move_stand_ins(fault *f)
{
    bool moved = false;
    for (stand_in **at = &f->stand_ins; *at;) {
        stand_in *s = *at;
        if (!s->carried && s->due != CST_NEVER && cst_deadline_passed(s->due)) {
            carry(f, s);
            moved = true;
        }
        if (s->sent.status == COSET_IN_PROGRESS) {
            at = &s->next;
            continue;
        }
        s->original->status = s->sent.status;
        *at = s->next;
        free(s);
        moved = true;
    }
    return moved;
}

static coset_status progress(coset_transport *t)
{
    fault *f = self_of(t);
    happen_at(f, CST_AT_PROGRESS, -1);
    coset_status status = f->ops->progress(f->inner);
    return f->stand_ins && move_stand_ins(f) ? COSET_OK : status;
}

/* A sleep ends when a held message is due. */
static int until_due(const fault *f, int timeout_ms)
{
    for (const stand_in *s = f->stand_ins; s; s = s->next) {
        int left = s->carried ? timeout_ms : s->due == CST_NEVER ? 0 : cst_deadline_left(s->due, INT_MAX);
        timeout_ms = timeout_ms < 0 || left < timeout_ms ? left : timeout_ms;
    }
    return timeout_ms;
}

static void idle(coset_transport *t, int timeout_ms)
{
    fault *f = self_of(t);
    happen_at(f, CST_AT_IDLE, -1);
    f->ops->idle(f->inner, until_due(f, timeout_ms));
}

static void wake(coset_transport *t)
{
    self_of(t)->ops->wake(self_of(t)->inner);
}

static int pollable(const coset_transport *t)
{
    return self_of(t)->ops->fd(self_of(t)->inner);
}

static coset_status arm(coset_transport *t)
{
    fault *f = self_of(t);
    return f->stand_ins ? COSET_OK : f->ops->arm(f->inner);
}

static coset_status announce(coset_transport *t, const coset_notice *notice)
{
    fault *f = self_of(t);
    happen_at(f, CST_AT_ANNOUNCE, -1);
    return f->ops->announce(f->inner, notice);
}

static int poll_notice(coset_transport *t, coset_notice *out)
{
    return self_of(t)->ops->poll_notice(self_of(t)->inner, out);
}

static void *control(const coset_transport *t, int rank)
{
    return self_of(t)->ops->control(self_of(t)->inner, rank);
}

static coset_status alloc(coset_transport *t, const coset_oob *oob, size_t bytes, void **ptr, coset_error *why)
{
    happen_at(self_of(t), CST_AT_ALLOC, -1);
    return self_of(t)->ops->alloc(self_of(t)->inner, oob, bytes, ptr, why);
}

static coset_status release(coset_transport *t, const coset_oob *oob, void *ptr, coset_error *why)
{
    happen_at(self_of(t), CST_AT_RELEASE, -1);
    return self_of(t)->ops->release(self_of(t)->inner, oob, ptr, why);
}

static coset_location locate(const coset_transport *t, const void *ptr, size_t bytes)
{
    happen_at(self_of(t), CST_AT_LOCATE, -1);
    return self_of(t)->ops->locate(self_of(t)->inner, ptr, bytes);
}

static void *map(coset_transport *t, int peer, const coset_location *loc, size_t bytes)
{
    happen_at(self_of(t), CST_AT_MAP, peer);
    return self_of(t)->ops->map(self_of(t)->inner, peer, loc, bytes);
}

static coset_status get(coset_transport *t, int peer, const coset_location *from, size_t offset, void *to, size_t bytes)
{
    happen_at(self_of(t), CST_AT_GET, peer);
    if (!self_of(t)->ops->get)
        return COSET_ERR_UNSUPPORTED;
    return self_of(t)->ops->get(self_of(t)->inner, peer, from, offset, to, bytes);
}

static coset_status put(coset_transport *t, int peer, const coset_location *to, size_t offset, const void *from,
                        size_t bytes)
{
    happen_at(self_of(t), CST_AT_PUT, peer);
    if (!self_of(t)->ops->put)
        return COSET_ERR_UNSUPPORTED;
    return self_of(t)->ops->put(self_of(t)->inner, peer, to, offset, from, bytes);
}

static const coset_transport_caps *caps(const coset_transport *t)
{
    return self_of(t)->ops->caps(self_of(t)->inner);
}

static void counters(const coset_transport *t, coset_transport_counters *out)
{
    self_of(t)->ops->counters(self_of(t)->inner, out);
}

static void destroy(coset_transport *t)
{
    fault *f = self_of(t);
    happen_at(f, CST_AT_DESTROY, -1);
    f->ops->destroy(f->inner);
    while (f->stand_ins) {
        stand_in *s = f->stand_ins;
        f->stand_ins = s->next;
        free(s);
    }
    free(f);
}

static coset_status create(const coset_transport_ops *own, const char *inner, const coset_oob *oob,
                           const coset_transport_config *config, coset_transport **out, coset_error *why)
{
    fault *f = calloc(1, sizeof *f);
    coset_status status = f ? cst_fault_parse(cst_env("COSET_FAULT"), &f->rules, why)
                            : cst_fail(why, COSET_ERR_MEMORY, -1, "transport fault: out of memory");
    status = cst_agree(oob, "COSET_FAULT", status, 0, config->late_ms, why);
    if (!status) {
        f->base = (coset_transport){own, oob->rank, oob->size};
        f->ops = cst_transport_find(inner);
        status = f->ops->create(oob, config, &f->inner, why);
    }
    if (status)
        free(f);
    else
        *out = &f->base;
    return status;
}

/* One table per inner transport, since create is told nothing but its table. */
static coset_status create_threads(const coset_oob *, const coset_transport_config *, coset_transport **,
                                   coset_error *);
static coset_status create_shm(const coset_oob *, const coset_transport_config *, coset_transport **, coset_error *);
static coset_status create_tcp(const coset_oob *, const coset_transport_config *, coset_transport **, coset_error *);

static coset_status probe_threads(char *why, size_t bytes)
{
    return cst_transport_find("threads")->probe(why, bytes);
}

static coset_status probe_shm(char *why, size_t bytes)
{
    return cst_transport_find("shm")->probe(why, bytes);
}

static coset_status probe_tcp(char *why, size_t bytes)
{
    return cst_transport_find("tcp")->probe(why, bytes);
}

#define FAULT_OPS(inner)                                                                                               \
    {                                                                                                                  \
        .struct_size = sizeof(coset_transport_ops), .abi = COSET_TRANSPORT_ABI, .name = "fault:" #inner,               \
        .probe = probe_##inner, .create = create_##inner, .destroy = destroy, .caps = caps, .counters = counters,      \
        .isend = start_send, .irecv = start_receive, .cancel = cancel, .progress = progress, .idle = idle,             \
        .wake = wake, .fd = pollable, .arm = arm, .announce = announce, .poll_notice = poll_notice,                    \
        .control = control, .alloc = alloc, .release = release, .locate = locate, .map = map, .get = get, .put = put,  \
    }
static const coset_transport_ops over_threads = FAULT_OPS(threads), over_shm = FAULT_OPS(shm),
                                 over_tcp = FAULT_OPS(tcp);

static coset_status create_threads(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                                   coset_error *why)
{
    return create(&over_threads, "threads", oob, config, out, why);
}

static coset_status create_shm(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                               coset_error *why)
{
    return create(&over_shm, "shm", oob, config, out, why);
}

static coset_status create_tcp(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                               coset_error *why)
{
    return create(&over_tcp, "tcp", oob, config, out, why);
}

const coset_transport_ops *cst_transport_fault(const char *inner)
{
    const coset_transport_ops *const all[] = {&over_threads, &over_shm, &over_tcp};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i]->name + strlen("fault:"), inner))
            return cst_transport_find(inner) ? all[i] : NULL;
    return NULL;
}
