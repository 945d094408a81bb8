/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/threads/threads.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/flag.h"
#include "transport/absent.h"
#include "transport/threads/group.h"
#include "transport/threads/memory.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct {
    coset_transport base;
    cst_group *group;
    cst_channel *channel;
    int late_ms;
    coset_transport_caps caps;
    cst_patience patience;
    cst_notices notices;
    cst_heap heap;
    _Atomic bool woken;    /* by wake(), and idle() has not yet taken notice */
    _Atomic bool troubled; /* something was cut short: a peer may still be in this rank's memory */
} threads;

/* destroy() waits this long for peers to notice */
enum { LEAVE_MS = 1000 };
/* Message pieces of this size keep both cores in their own caches (docs/performance.md). */
enum { SEGMENT_BYTES = 256 << 10 };

static threads *self_of(const coset_transport *t)
{
    return (threads *)t;
}

static coset_status probe(char *why, size_t why_bytes)
{
    if (why_bytes)
        *why = 0;
    return COSET_OK;
}

/* The channel's backend. */
static void doorbell(void *self, int peer)
{
    cst_group_ring(((threads *)self)->group, peer);
}

static coset_location locate_any(void *self, const void *ptr, size_t bytes)
{
    (void)self;
    (void)bytes;
    return (coset_location){COSET_LOC_ADDRESS, 0, (uintptr_t)ptr};
}

static void *map_any(void *self, int peer, const coset_location *at, size_t bytes)
{
    (void)self;
    (void)peer;
    (void)bytes;
    return at->kind == COSET_LOC_ADDRESS ? (void *)(uintptr_t)at->offset : NULL;
}

static coset_status open_channel(threads *t, const coset_transport_config *config)
{
    cst_channel_backend be = {
        .self = t,
        .doorbell = doorbell,
        .locate = locate_any,
        .map = map_any,
        .one_space = true,
        .peer_trusted = true,
        .on_entry = config->on_entry,
        .on_entry_ctx = config->ctx,
    };
    char **areas = calloc((size_t)t->base.size, sizeof *areas);
    for (int r = 0; areas && r < t->base.size; r++)
        areas[r] = t->group->member[r].area;
    t->channel = areas ? cst_channel_new(t->base.rank, &t->group->layout, areas, &be) : NULL;
    free(areas);
    return t->channel ? COSET_OK : COSET_ERR_MEMORY;
}

static void destroy(coset_transport *transport);
static coset_status announce(coset_transport *transport, const coset_notice *notice);

static coset_status create(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                           coset_error *why)
{
    threads *t = calloc(1, sizeof *t);
    cst_group *group;
    coset_status status = t ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "transport threads: out of memory");
    status = cst_group_join(oob, config->control_bytes, config->late_ms, status, &group, why);
    if (status) {
        free(t);
        return status;
    }
    t->group = group;
    t->base = (coset_transport){&cst_transport_threads, oob->rank, oob->size};
    t->late_ms = config->late_ms;
    t->patience = cst_patience_for(config->core_each);
    t->caps = (coset_transport_caps){sizeof t->caps, COSET_CAN_CONTROL | COSET_CAN_MAP | COSET_CAN_MAP_ANY,
                                     SEGMENT_BYTES, 0, t->patience.spins};
    cst_notices_init(&t->notices, SIZE_MAX);
    if (open_channel(t, config)) {
        coset_notice n = cst_notice_make(COSET_NOTICE_DEATH, oob->rank, COSET_ERR_PEER, oob->rank,
                                         "rank %d is out of memory", oob->rank);
        announce(&t->base, &n);
        destroy(&t->base);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "transport threads: out of memory");
    }
    *out = &t->base;
    return COSET_OK;
}

/* Takes in the mail. A goodbye ends the messages of its sender. */
static void collect(threads *t)
{
    cst_notices arrived;
    coset_notice n;
    cst_notices_init(&arrived, SIZE_MAX);
    cst_group_collect(t->group, t->base.rank, &arrived);
    while (cst_notices_pop(&arrived, &n)) {
        if (n.kind == COSET_NOTICE_GOODBYE)
            cst_channel_gone(t->channel, n.about, COSET_ERR_PEER);
        else
            atomic_store_explicit(&t->troubled, true, memory_order_relaxed);
        cst_notices_push(&t->notices, &n);
    }
}

static bool has_mail(const threads *t)
{
    return atomic_load(&t->group->member[t->base.rank].has_mail);
}

static coset_status progress(coset_transport *transport)
{
    threads *t = self_of(transport);
    bool mail = has_mail(t);
    if (mail)
        collect(t);
    coset_status moved = cst_channel_progress(t->channel);
    return mail ? COSET_OK : moved;
}

static bool is_called(void *self)
{
    threads *t = self;
    return has_mail(t) || atomic_load_explicit(&t->woken, memory_order_relaxed);
}

static void idle(coset_transport *transport, int timeout_ms)
{
    threads *t = self_of(transport);
    if (timeout_ms && cst_channel_linger(t->channel, t->patience, is_called, t)) {
        atomic_store(&t->woken, false);
        return;
    }
    _Atomic uint32_t *bell = &((cst_post *)t->group->member[t->base.rank].area)->bell;
    uint32_t seen = cst_bell_read(bell);
    if (t->notices.count || !cst_channel_sleep_begin(t->channel))
        return;
    if (!has_mail(t) && !atomic_exchange(&t->woken, false))
        cst_bell_sleep(bell, seen, timeout_ms);
    cst_channel_sleep_end(t->channel);
}

static void wake(coset_transport *transport)
{
    threads *t = self_of(transport);
    atomic_store(&t->woken, true);
    cst_group_ring(t->group, t->base.rank);
}

static bool all_left(const threads *t)
{
    for (int r = 0; r < t->base.size; r++)
        if (r != t->base.rank && !cst_channel_left(t->channel, r))
            return false;
    return true;
}

static void say_goodbye(threads *t)
{
    coset_notice n = cst_notice_make(COSET_NOTICE_GOODBYE, t->base.rank, COSET_OK, -1, "rank %d is done", t->base.rank);
    for (int r = 0; r < t->base.size; r++) {
        if (r == t->base.rank)
            continue;
        cst_channel_leave(t->channel, r);
        cst_group_mail(t->group, r, &n);
    }
}

static void destroy(coset_transport *transport)
{
    threads *t = self_of(transport);
    if (t->channel) {
        say_goodbye(t);
        cst_deadline end = cst_deadline_in(LEAVE_MS);
        while (atomic_load(&t->troubled) && !all_left(t) && !cst_deadline_passed(end)) {
            collect(t);
            cst_notices_free(&t->notices);
            idle(transport, cst_deadline_left(end, 50));
        }
    }
    cst_channel_free(t->channel);
    cst_group_leave(t->group);
    cst_notices_free(&t->notices);
    cst_heap_free(&t->heap);
    free(t);
}

static const coset_transport_caps *caps(const coset_transport *t)
{
    return &self_of(t)->caps;
}

static void counters(const coset_transport *t, coset_transport_counters *out)
{
    cst_channel_counters(self_of(t)->channel, out);
}

static coset_status start_send(coset_transport *t, coset_msg *msg)
{
    return cst_channel_isend(self_of(t)->channel, msg);
}

static coset_status start_receive(coset_transport *t, coset_msg *msg)
{
    return cst_channel_irecv(self_of(t)->channel, msg);
}

static void cancel(coset_transport *t, coset_msg *msg)
{
    atomic_store_explicit(&self_of(t)->troubled, true, memory_order_relaxed);
    cst_channel_cancel(self_of(t)->channel, msg);
}

static coset_status announce(coset_transport *transport, const coset_notice *notice)
{
    threads *t = self_of(transport);
    atomic_store_explicit(&t->troubled, true, memory_order_relaxed);
    for (int r = 0; r < t->base.size; r++)
        if (r != t->base.rank)
            cst_group_mail(t->group, r, notice);
    return COSET_OK;
}

static int poll_notice(coset_transport *transport, coset_notice *out)
{
    threads *t = self_of(transport);
    if (has_mail(t))
        collect(t);
    if (!cst_notices_pop(&t->notices, out))
        return 0;
    /* The caller is not in the middle of a copy, and knows now that this peer's memory is not to be touched. */
    if (out->kind == COSET_NOTICE_GOODBYE)
        cst_channel_leave(t->channel, out->about);
    return 1;
}

static void *control(const coset_transport *t, int rank)
{
    return rank >= 0 && rank < t->size ? self_of(t)->group->member[rank].control : NULL;
}

static coset_status alloc(coset_transport *t, const coset_oob *oob, size_t bytes, void **ptr, coset_error *why)
{
    return cst_heap_alloc(&self_of(t)->heap, oob, bytes, self_of(t)->late_ms, ptr, why);
}

static coset_status release(coset_transport *t, const coset_oob *oob, void *ptr, coset_error *why)
{
    return cst_heap_release(&self_of(t)->heap, oob, ptr, self_of(t)->late_ms, why);
}

static coset_location locate(const coset_transport *t, const void *ptr, size_t bytes)
{
    (void)t;
    return locate_any(NULL, ptr, bytes);
}

static void *map(coset_transport *t, int peer, const coset_location *loc, size_t bytes)
{
    return peer >= 0 && peer < t->size ? map_any(NULL, peer, loc, bytes) : NULL;
}

const coset_transport_ops cst_transport_threads = {
    .struct_size = sizeof(coset_transport_ops),
    .abi = COSET_TRANSPORT_ABI,
    .name = "threads",
    .probe = probe,
    .create = create,
    .destroy = destroy,
    .caps = caps,
    .counters = counters,
    .isend = start_send,
    .irecv = start_receive,
    .cancel = cancel,
    .progress = progress,
    .idle = idle,
    .wake = wake,
    .fd = cst_absent_fd,
    .arm = cst_absent_arm,
    .announce = announce,
    .poll_notice = poll_notice,
    .control = control,
    .alloc = alloc,
    .release = release,
    .locate = locate,
    .map = map,
    .get = NULL,
    .put = NULL,
};
