/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/shm.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/flag.h"
#include "transport/agree.h"
#include "transport/channel/channel.h"
#include "transport/notices.h"
#include "transport/shm/host.h"
#include "transport/shm/meet.h"
#include "transport/shm/pages.h"
#include "transport/shm/reach.h"
#include "transport/shm/segments.h"
#include "transport/shm/share.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    coset_transport base;
    cst_mesh mesh;
    cst_mesh_handler handler;
    cst_host host;
    cst_segments segments;
    cst_channel *channel;
    cst_reach_method method;
    bool reach;    /* process_vm works between all ranks */
    bool *goodbye; /* per rank: it left in good order, or its death has been told */
    int late_ms;
    coset_transport_caps caps;
    bool core_each; /* each rank can have one */
    cst_patience patience;
    cst_notices notices;
    _Atomic bool troubled; /* something was cut short: a peer may still be writing into this rank's memory */
    bool armed;            /* arm() has declared this rank asleep */
    time_t looked_s;       /* when the sockets were last looked at, on the coarse clock */
    long looked_ns;
} shm;

/* destroy() waits this long for peers to notice. */
enum { LEAVE_MS = 1000 };
/* Measured, docs/performance.md. Where every rank has a core, staging is faster than pulling at all sizes, since both
 * ranks copy at once; where ranks share cores, what needs no turn of the sender is. */
enum { SEGMENT_BYTES = 256 << 10, PULL_FROM = 64 << 10 };

static shm *self_of(const coset_transport *t)
{
    return (shm *)t;
}

static coset_status probe(char *why, size_t why_bytes)
{
    return cst_pages_probe(why, why_bytes);
}

/* A peer is gone: its messages end, and the library hears of it, unless it had said goodbye. */
static void peer_ended(shm *s, int peer, coset_status status, const char *how)
{
    cst_channel_gone(s->channel, peer, status);
    if (s->goodbye[peer])
        return;
    s->goodbye[peer] = true;
    coset_notice n = cst_notice_make(COSET_NOTICE_DEATH, peer, status, peer, "rank %d %s", peer, how);
    cst_notices_push(&s->notices, &n);
    atomic_store_explicit(&s->troubled, true, memory_order_relaxed);
}

static void link_ended(void *self, int peer, bool nonsense)
{
    shm *s = self;
    if (!s->channel) /* in create: told when there is a channel */
        return;
    if (nonsense)
        peer_ended(s, peer, COSET_ERR_CORRUPT, "sent nonsense on its socket");
    else
        peer_ended(s, peer, COSET_ERR_PEER, "died");
}

static void notice_came(void *self, int peer, const coset_notice *notice)
{
    shm *s = self;
    if (!cst_notice_valid(notice, s->base.size))
        return;
    if (notice->kind == COSET_NOTICE_GOODBYE) {
        if (notice->about != peer)
            return;
        s->goodbye[peer] = true;
        if (s->channel)
            cst_channel_gone(s->channel, peer, COSET_ERR_PEER);
    } else {
        atomic_store_explicit(&s->troubled, true, memory_order_relaxed);
    }
    cst_notices_push(&s->notices, notice);
}

/* The channel's backend. */
static void doorbell(void *self, int peer)
{
    const cst_packet knock = {.type = CST_PACKET_KNOCK};
    cst_mesh_tell(&((shm *)self)->mesh, peer, &knock);
}

static coset_location locate_own(void *self, const void *ptr, size_t bytes)
{
    shm *s = self;
    coset_location at = cst_segments_locate(&s->segments, ptr, bytes);
    if (at.kind == COSET_LOC_NONE && s->reach)
        at = (coset_location){COSET_LOC_PRIVATE, 0, (uintptr_t)ptr};
    return at;
}

static void *map_segment(void *self, int peer, const coset_location *at, size_t bytes)
{
    return cst_segments_map(&((shm *)self)->segments, peer, at, bytes);
}

static coset_status reach_peer(shm *s, int peer, cst_reach_way way, const struct iovec *local, int local_count,
                               const struct iovec *remote, int remote_count)
{
    if (!s->reach)
        return COSET_ERR_UNSUPPORTED;
    if (s->mesh.links[peer].ended) /* its process id may be another's by now */
        return COSET_ERR_PEER;
    return cst_reach_copy(s->mesh.links[peer].pid, way, local, local_count, remote, remote_count);
}

static coset_status pull(void *self, int peer, const struct iovec *to, int to_count, const struct iovec *from,
                         int from_count)
{
    return reach_peer(self, peer, CST_REACH_READ, to, to_count, from, from_count);
}

static size_t pull_from(const shm *s)
{
    return s->core_each && s->method != CST_REACH_CMA ? SIZE_MAX : PULL_FROM;
}

static coset_status open_channel(shm *s, const coset_transport_config *config)
{
    cst_channel_backend be = {
        .self = s,
        .doorbell = doorbell,
        .locate = locate_own,
        .map = map_segment,
        .pull = s->reach ? pull : NULL,
        .pull_from = pull_from(s),
        .on_entry = config->on_entry,
        .on_entry_ctx = config->ctx,
    };
    char **areas = calloc((size_t)s->base.size, sizeof *areas);
    for (int r = 0; areas && r < s->base.size; r++)
        areas[r] = cst_host_area(&s->host, r);
    s->channel = areas ? cst_channel_new(s->base.rank, &s->host.layout, areas, &be) : NULL;
    free(areas);
    return s->channel ? COSET_OK : COSET_ERR_MEMORY;
}

/* Frees everything but says nothing to anybody: the peers see the end of the sockets. */
static void dismantle(shm *s)
{
    cst_channel_free(s->channel);
    cst_segments_free(&s->segments);
    cst_host_close(&s->host);
    cst_mesh_close(&s->mesh);
    cst_notices_free(&s->notices);
    free(s->goodbye);
    free(s);
}

static coset_status open_all(shm *s, const coset_oob *oob, const coset_transport_config *config, coset_error *why)
{
    coset_status status = cst_mesh_open(oob, config->job, config->late_ms, &s->mesh, why);
    if (status)
        return status;
    status = cst_host_open(oob, &s->mesh, &s->handler, config->control_bytes, config->late_ms, &s->host, why);
    if (status)
        return status;
    status = cst_reach_method_from_env(&s->method, why);
    status = cst_agree(oob, "COSET_SHM_METHOD", status, s->method, config->late_ms, why);
    if (status)
        return status;
    status = cst_reach_agree(oob, s->method, s->mesh.links, config->late_ms, &s->reach, why);
    if (status)
        return status;
    status = open_channel(s, config);
    if (status)
        cst_fail(why, status, -1, "transport shm: out of memory");
    return cst_agree(oob, "transport shm", status, 0, config->late_ms, why);
}

static coset_status create(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                           coset_error *why)
{
    shm *s = calloc(1, sizeof *s);
    bool *goodbye = calloc((size_t)oob->size, sizeof *goodbye);
    if (!s || !goodbye) {
        free(s);
        free(goodbye);
        coset_status mine = cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory");
        return cst_meet(oob, config->job, config->late_ms, NULL, &mine, why);
    }
    s->base = (coset_transport){&cst_transport_shm, oob->rank, oob->size};
    s->goodbye = goodbye;
    s->late_ms = config->late_ms;
    s->core_each = config->core_each != 0;
    s->patience = cst_patience_for(s->core_each);
    s->handler = (cst_mesh_handler){s, notice_came, link_ended};
    cst_notices_init(&s->notices, 16 * (size_t)oob->size + 64);
    cst_segments_init(&s->segments, oob->rank, oob->size);
    coset_status status = open_all(s, oob, config, why);
    if (status) {
        dismantle(s);
        return status;
    }
    uint32_t flags = COSET_CAN_CONTROL | COSET_CAN_MAP | COSET_CAN_SLEEP;
    if (s->reach)
        flags |= COSET_CAN_GET_PUT;
    if (s->reach && s->method == CST_REACH_CMA)
        flags |= COSET_PREFERS_GET_PUT;
    s->caps = (coset_transport_caps){sizeof s->caps, flags, SEGMENT_BYTES, 0, s->patience.spins};
    for (int r = 0; r < oob->size; r++) {
        if (s->mesh.links[r].ended)
            link_ended(s, r, false);
        else if (s->goodbye[r])
            cst_channel_gone(s->channel, r, COSET_ERR_PEER);
    }
    *out = &s->base;
    return COSET_OK;
}

/* A system call per look: at most one per tick of the coarse clock (1 to 10 ms). */
static bool time_to_look(shm *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec == s->looked_ns && now.tv_sec == s->looked_s)
        return false;
    s->looked_s = now.tv_sec;
    s->looked_ns = now.tv_nsec;
    return true;
}

static bool look(shm *s, int timeout_ms)
{
    bool found = cst_mesh_poll(&s->mesh, timeout_ms, &s->handler);
    int broken = cst_channel_broken(s->channel);
    if (broken >= 0)
        peer_ended(s, broken, COSET_ERR_CORRUPT, "wrote nonsense into shared memory");
    return found || broken >= 0;
}

static coset_status progress(coset_transport *transport)
{
    shm *s = self_of(transport);
    bool found = (s->armed || time_to_look(s)) && look(s, 0);
    if (s->armed) {
        s->armed = false;
        cst_channel_sleep_end(s->channel);
    }
    coset_status moved = cst_channel_progress(s->channel);
    return found ? COSET_OK : moved;
}

static coset_status arm(coset_transport *transport)
{
    shm *s = self_of(transport);
    bool called = s->mesh.called;
    s->mesh.called = false;
    if (called || s->notices.count || !cst_channel_sleep_begin(s->channel))
        return COSET_OK;
    s->armed = true;
    return COSET_IN_PROGRESS;
}

static int pollable(const coset_transport *t)
{
    return self_of(t)->mesh.epoll;
}

/* Notices are not looked for while lingering: that would be a system call each time, and they can wait that long. */
static bool is_called(void *self)
{
    const shm *s = self;
    return s->mesh.called || atomic_load_explicit(&s->mesh.woken, memory_order_relaxed);
}

static void idle(coset_transport *transport, int timeout_ms)
{
    shm *s = self_of(transport);
    bool busy = s->notices.count || (timeout_ms && cst_channel_linger(s->channel, s->patience, is_called, s));
    if (!busy && !s->mesh.called && cst_channel_sleep_begin(s->channel)) {
        look(s, timeout_ms);
        s->armed = false;
        cst_channel_sleep_end(s->channel);
    } else if (atomic_load(&s->mesh.woken)) {
        look(s, 0);
    }
    s->mesh.called = false;
}

static void wake(coset_transport *transport)
{
    cst_mesh_wake(&self_of(transport)->mesh);
}

static void tell_all(shm *s, const coset_notice *notice)
{
    cst_packet p = {.type = CST_PACKET_NOTICE};
    p.u.notice = *notice;
    for (int r = 0; r < s->base.size; r++)
        cst_mesh_tell(&s->mesh, r, &p);
}

static coset_status announce(coset_transport *transport, const coset_notice *notice)
{
    shm *s = self_of(transport);
    atomic_store_explicit(&s->troubled, true, memory_order_relaxed);
    tell_all(s, notice);
    return COSET_OK;
}

static int poll_notice(coset_transport *transport, coset_notice *out)
{
    shm *s = self_of(transport);
    if (!s->notices.count && time_to_look(s))
        look(s, 0);
    if (!cst_notices_pop(&s->notices, out))
        return 0;
    /* The caller is not in the middle of a copy, and knows now that this peer's memory is not to be touched. */
    if (out->kind == COSET_NOTICE_GOODBYE)
        cst_channel_leave(s->channel, out->about);
    return 1;
}

static bool all_left(const shm *s)
{
    for (int r = 0; r < s->base.size; r++)
        if (r != s->base.rank && !s->mesh.links[r].ended && !cst_channel_left(s->channel, r))
            return false;
    return true;
}

static void destroy(coset_transport *transport)
{
    shm *s = self_of(transport);
    coset_notice n = cst_notice_make(COSET_NOTICE_GOODBYE, s->base.rank, COSET_OK, -1, "rank %d is done", s->base.rank);
    for (int r = 0; r < s->base.size; r++)
        if (r != s->base.rank)
            cst_channel_leave(s->channel, r);
    tell_all(s, &n);
    cst_deadline end = cst_deadline_in(LEAVE_MS);
    while (atomic_load(&s->troubled) && !all_left(s) && !cst_deadline_passed(end)) {
        cst_notices_free(&s->notices);
        idle(transport, cst_deadline_left(end, 50));
        cst_channel_progress(s->channel);
    }
    dismantle(s);
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

static void *control(const coset_transport *t, int rank)
{
    return rank >= 0 && rank < t->size ? cst_host_control(&self_of(t)->host, rank) : NULL;
}

static coset_status add_segment(shm *s, const coset_oob *oob, uint32_t number, int fd, size_t bytes, void **ptr,
                                coset_error *why)
{
    void *own;
    coset_status mine = cst_segments_add(&s->segments, number, fd, bytes, &own, why);
    coset_status status = cst_agree(oob, "coset_alloc", mine, number, s->late_ms, why);
    if (!status) {
        cst_segments_touch_all(&s->segments, number);
        *ptr = own;
    } else if (!mine) {
        cst_segments_remove(&s->segments, number);
    }
    return status;
}

static coset_status alloc(coset_transport *t, const coset_oob *oob, size_t bytes, void **ptr, coset_error *why)
{
    shm *s = self_of(t);
    uint32_t number = cst_segments_next(&s->segments);
    int fd = -1;
    size_t stride, total = cst_segment_bytes(t->size, bytes, &stride);
    coset_status status =
        total ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "coset_alloc: %zu bytes are too many", bytes);
    if (!status && !t->rank)
        status = cst_pages_create(total, &fd, why);
    status = cst_share(oob, &s->mesh, &s->handler, "coset_alloc", number, status, bytes, s->late_ms, &fd, why);
    if (!status)
        status = add_segment(s, oob, number, fd, bytes, ptr, why);
    if (fd >= 0)
        close(fd);
    return status;
}

static coset_status release(coset_transport *t, const coset_oob *oob, void *ptr, coset_error *why)
{
    shm *s = self_of(t);
    int64_t number = cst_segments_find(&s->segments, ptr);
    coset_status status = COSET_OK;
    if (number < 0)
        status = cst_fail(why, COSET_ERR_ARGUMENT, -1,
                          "coset_free: %p is no memory of coset_alloc on this communicator", ptr);
    status = cst_agree(oob, "coset_free", status, (uint64_t)number, s->late_ms, why);
    if (!status)
        cst_segments_remove(&s->segments, (uint32_t)number);
    return status;
}

static coset_location locate(const coset_transport *t, const void *ptr, size_t bytes)
{
    return locate_own(self_of(t), ptr, bytes);
}

static void *map(coset_transport *t, int peer, const coset_location *loc, size_t bytes)
{
    return map_segment(self_of(t), peer, loc, bytes);
}

/* Where the peer's memory is in its own process; segments are reached by map. */
static coset_status direct_copy(shm *s, int peer, cst_reach_way way, const coset_location *at, size_t offset, void *own,
                                size_t bytes)
{
    if (peer < 0 || peer >= s->base.size || peer == s->base.rank || at->kind != COSET_LOC_PRIVATE)
        return COSET_ERR_ARGUMENT;
    struct iovec local = {own, bytes}, remote = {(void *)(uintptr_t)(at->offset + offset), bytes};
    return reach_peer(s, peer, way, &local, 1, &remote, 1);
}

static coset_status get(coset_transport *t, int peer, const coset_location *from, size_t offset, void *to, size_t bytes)
{
    return direct_copy(self_of(t), peer, CST_REACH_READ, from, offset, to, bytes);
}

static coset_status put(coset_transport *t, int peer, const coset_location *to, size_t offset, const void *from,
                        size_t bytes)
{
    return direct_copy(self_of(t), peer, CST_REACH_WRITE, to, offset, (void *)(uintptr_t)from, bytes);
}

const coset_transport_ops cst_transport_shm = {
    .struct_size = sizeof(coset_transport_ops),
    .abi = COSET_TRANSPORT_ABI,
    .name = "shm",
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
    .fd = pollable,
    .arm = arm,
    .announce = announce,
    .poll_notice = poll_notice,
    .control = control,
    .alloc = alloc,
    .release = release,
    .locate = locate,
    .map = map,
    .get = get,
    .put = put,
};
