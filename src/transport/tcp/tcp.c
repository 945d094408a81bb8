/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/tcp.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "net/socket.h"
#include "transport/absent.h"
#include "transport/tcp/engine.h"
#include "transport/tcp/mesh.h"
#include "transport/tcp/offer.h"
#include "transport/tcp/watch.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Measured over loopback and 1 Gbit/s (docs/performance.md): smaller pieces cost calls, larger ones leave the caches.
 * */
#define SEGMENT_BYTES (256u << 10)
/* idle() returns so many times before it sleeps, after so many looks each, about 50 us in all: waking a sleeper takes
 * 30 to 40. Where ranks share cores it sleeps at once, since every look is taken from the rank that is waited for. */
#define SPINS 20
#define LOOKS 8
/* Every so many turns epoll is asked, even if the links that matter can be tried directly. */
#define ASK_EPOLL_TURNS 8
#define MOST_SOCKETS    16
/* How long destroy waits until the peers' kernels have taken what was sent. */
#define LEAVE_MS 1000

typedef struct {
    coset_transport base;
    coset_transport_caps caps;
    cst_engine engine;
    cst_watch *watch;
    int event; /* readable after wake() */
    unsigned turns;
    int quiet;  /* calls of idle() since something moved */
    bool woken; /* a wake that has been read, and no idle() has returned for */
    _Atomic bool fates_changed;
    unsigned char *settled; /* [size] the cst_fate that the messages know of */
} tcp;

static tcp *self_of(const coset_transport *t)
{
    return (tcp *)t;
}

static coset_status probe(char *why, size_t why_bytes)
{
    if (why_bytes)
        *why = 0;
    return COSET_OK;
}

/* -------- between the parts -------- */

static void ring(tcp *t)
{
    uint64_t one = 1;
    ssize_t n = write(t->event, &one, sizeof one);
    (void)n; /* full means that it is readable */
}

/* The watch has news. Any thread. */
static void news(void *ctx)
{
    tcp *t = ctx;
    atomic_store(&t->fates_changed, true);
    ring(t);
}

static void link_ended(void *ctx, int peer)
{
    tcp *t = ctx;
    cst_watch_data_ended(t->watch, peer);
    atomic_store(&t->fates_changed, true); /* it may be the last link of a peer that has departed */
}

static void nonsense(void *ctx, int peer, const char *text)
{
    cst_watch_condemn(((tcp *)ctx)->watch, peer, COSET_ERR_CORRUPT, text);
}

/* Ends the messages with peers that are gone, as far as nothing more can come. */
static void settle(tcp *t)
{
    if (!atomic_load_explicit(&t->fates_changed, memory_order_relaxed) || !atomic_exchange(&t->fates_changed, false))
        return;
    cst_engine *e = &t->engine;
    for (int r = 0; r < t->base.size; r++) {
        cst_fate fate = cst_watch_fate(t->watch, r);
        if (r == t->base.rank || fate == CST_LIVES || e->peers[r].closed)
            continue;
        coset_status status = fate == CST_LOST ? cst_watch_fate_status(t->watch, r) : COSET_ERR_PEER;
        bool came = true;
        if (t->settled[r] < fate) {
            t->settled[r] = (unsigned char)fate;
            cst_engine_end_sends(e, r, status);
            came = cst_engine_drain(e, r);
        }
        if (fate == CST_LOST || e->peers[r].open == 0 || (fate == CST_OVERDUE && !came)) {
            cst_engine_end_peer(e, r, status);
        } else if (fate == CST_OVERDUE) { /* it is this rank that is late: what has come is still read */
            cst_watch_still_arrives(t->watch, r);
            t->settled[r] = CST_DEPARTED;
        }
    }
}

/* -------- creation -------- */

static coset_status open_event(tcp *t, coset_error *why)
{
    t->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->event < 0)
        return cst_fail_errno(why, "eventfd");
    coset_status status = cst_adopt(t->event, why);
    struct epoll_event e = {EPOLLIN | EPOLLET, {.ptr = NULL}};
    if (status)
        t->event = -1;
    else if (epoll_ctl(t->engine.epoll, EPOLL_CTL_ADD, t->event, &e))
        status = cst_fail_errno(why, "epoll_ctl");
    return status;
}

static coset_status open_parts(tcp *t, const coset_transport_config *config, cst_mesh_fds *fds, coset_error *why)
{
    cst_engine *e = &t->engine;
    *e = (cst_engine){.rank = t->base.rank,
                      .size = t->base.size,
                      .sockets = fds->sockets,
                      .checksum = config->checksum,
                      .events = {t, link_ended, nonsense},
                      .on_entry = config->on_entry,
                      .on_entry_ctx = config->ctx};
    coset_status status = cst_engine_open(e, fds->data, why);
    if (status)
        return status;
    status = open_event(t, why);
    if (!status) {
        status = cst_watch_start(t->base.rank, t->base.size, fds->control, config->dead_ms, news, t, &t->watch, why);
        for (int r = 0; r < t->base.size; r++)
            fds->control[r] = -1;
    }
    if (status) {
        cst_close(t->event);
        cst_engine_close(e);
    }
    return status;
}

coset_status cst_tcp_sockets_env(int *sockets, coset_error *why)
{
    return cst_env_int("COSET_SOCKETS", 1, MOST_SOCKETS, sockets, why);
}

static coset_status create(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                           coset_error *why)
{
    cst_mesh_fds fds;
    int sockets = 1;
    coset_error own = COSET_ERROR_INIT;
    /* a wrong value is told after the others have heard of it: zero agrees with none of them */
    coset_status wrong = cst_tcp_sockets_env(&sockets, &own);
    coset_status status = cst_mesh_connect(oob, config, wrong ? 0 : sockets, &fds, why);
    if (wrong) {
        if (!status) /* all of them are wrong */
            cst_mesh_fds_free(&fds);
        cst_error_copy(why, &own);
        return wrong;
    }
    if (status)
        return status;
    tcp *t = calloc(1, sizeof *t);
    unsigned char *settled = calloc((size_t)oob->size, 1);
    status = t && settled ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory");
    if (!status) {
        t->base = (coset_transport){&cst_transport_tcp, oob->rank, oob->size};
        t->caps = (coset_transport_caps){sizeof t->caps, COSET_CAN_SLEEP, SEGMENT_BYTES, CST_MESSAGE_BYTES,
                                         config->core_each ? SPINS : 0};
        t->settled = settled;
        status = open_parts(t, config, &fds, why);
    }
    cst_mesh_fds_free(&fds);
    if (status) {
        free(settled);
        free(t);
        return status;
    }
    *out = &t->base;
    return COSET_OK;
}

/* Until the peers' kernels have taken what was sent: closing a socket that has something unread would drop it. */
static void wait_until_taken(const tcp *t, cst_deadline limit)
{
    for (int i = 0; i < t->base.size * t->engine.sockets; i++) {
        int fd = t->engine.links[i].fd, left = 0;
        if (fd < 0 || cst_watch_fate(t->watch, t->engine.links[i].peer) != CST_LIVES)
            continue;
        while (!ioctl(fd, SIOCOUTQ, &left) && left > 0 && !cst_deadline_passed(limit))
            nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

static void destroy(coset_transport *transport)
{
    tcp *t = self_of(transport);
    cst_deadline limit = cst_deadline_in(LEAVE_MS);
    /* the ends of the data before the goodbye: who hears of it finds all that will come */
    for (int i = 0; i < t->base.size * t->engine.sockets; i++)
        if (t->engine.links[i].fd >= 0)
            shutdown(t->engine.links[i].fd, SHUT_WR);
    wait_until_taken(t, limit);
    cst_watch_stop(t->watch, cst_deadline_left(limit, LEAVE_MS));
    cst_close(t->event);
    cst_engine_close(&t->engine);
    free(t->settled);
    free(t);
}

static const coset_transport_caps *caps(const coset_transport *transport)
{
    return &self_of(transport)->caps;
}

static void counters(const coset_transport *transport, coset_transport_counters *out)
{
    *out = self_of(transport)->engine.counters;
}

/* -------- messages -------- */

static bool check_msg(const tcp *t, const coset_msg *msg, size_t *bytes)
{
    return msg->peer >= 0 && msg->peer < t->base.size && msg->peer != t->base.rank &&
           cst_iov_bytes(msg->iov, msg->iovcnt, bytes) && *bytes <= CST_MESSAGE_BYTES;
}

static coset_status isend(coset_transport *transport, coset_msg *msg)
{
    tcp *t = self_of(transport);
    size_t bytes;
    if (!check_msg(t, msg, &bytes))
        return msg->status = COSET_ERR_ARGUMENT;
    if (cst_watch_fate(t->watch, msg->peer) != CST_LIVES)
        return msg->status = COSET_ERR_PEER;
    cst_engine_send(&t->engine, msg, bytes);
    return COSET_OK;
}

static coset_status irecv(coset_transport *transport, coset_msg *msg)
{
    tcp *t = self_of(transport);
    size_t bytes;
    if (!check_msg(t, msg, &bytes))
        return msg->status = COSET_ERR_ARGUMENT;
    cst_fate fate = cst_watch_fate(t->watch, msg->peer);
    bool may_arrive =
        fate == CST_LIVES || (fate != CST_LOST && cst_engine_may_arrive(&t->engine, msg->peer, msg->op, msg->tag));
    if (!may_arrive)
        return msg->status = COSET_ERR_PEER;
    cst_engine_receive(&t->engine, msg, bytes);
    return COSET_OK;
}

static void cancel(coset_transport *transport, coset_msg *msg)
{
    cst_engine_cancel(&self_of(transport)->engine, msg);
}

/* Takes in what has become ready, waiting at most timeout_ms. Returns whether there was anything. */
static bool poll_all(tcp *t, int timeout_ms)
{
    bool other;
    uint64_t count;
    int n = cst_engine_poll(&t->engine, timeout_ms, &other);
    if (other) {
        ssize_t got = read(t->event, &count, sizeof count);
        (void)got;
        t->woken = true;
    }
    return n > 0;
}

static coset_status progress(coset_transport *transport)
{
    tcp *t = self_of(transport);
    t->engine.moved = false;
    settle(t);
    if (++t->turns % ASK_EPOLL_TURNS == 0 || !cst_engine_try_links(&t->engine))
        poll_all(t, 0);
    cst_engine_move(&t->engine);
    settle(t);
    if (t->engine.moved)
        t->quiet = 0;
    return t->engine.moved ? COSET_OK : COSET_IN_PROGRESS;
}

static bool has_work(tcp *t)
{
    return cst_engine_has_work(&t->engine) || cst_engine_release_held(&t->engine) || atomic_load(&t->fates_changed);
}

static void idle(coset_transport *transport, int timeout_ms)
{
    tcp *t = self_of(transport);
    bool ready = t->woken || has_work(t);
    for (int i = 0; i < LOOKS && !ready && t->caps.spin; i++)
        ready = poll_all(t, 0);
    if (!ready && ++t->quiet > t->caps.spin) {
        t->quiet = 0;
        poll_all(t, timeout_ms);
    }
    t->woken = false;
}

static void wake(coset_transport *transport)
{
    ring(self_of(transport));
}

static int descriptor(const coset_transport *transport)
{
    return self_of(transport)->engine.epoll;
}

static coset_status arm(coset_transport *transport)
{
    tcp *t = self_of(transport);
    if (t->woken || has_work(t)) {
        t->woken = false;
        return COSET_OK;
    }
    return COSET_IN_PROGRESS;
}

/* -------- notices -------- */

static coset_status announce(coset_transport *transport, const coset_notice *notice)
{
    return cst_watch_announce(self_of(transport)->watch, notice);
}

static int poll_notice(coset_transport *transport, coset_notice *out)
{
    return cst_watch_poll_notice(self_of(transport)->watch, out);
}

const coset_transport_ops cst_transport_tcp = {
    .struct_size = sizeof(coset_transport_ops),
    .abi = COSET_TRANSPORT_ABI,
    .name = "tcp",
    .probe = probe,
    .create = create,
    .destroy = destroy,
    .caps = caps,
    .counters = counters,
    .isend = isend,
    .irecv = irecv,
    .cancel = cancel,
    .progress = progress,
    .idle = idle,
    .wake = wake,
    .fd = descriptor,
    .arm = arm,
    .announce = announce,
    .poll_notice = poll_notice,
    .control = cst_absent_control,
    .alloc = cst_absent_alloc,
    .release = cst_absent_release,
    .locate = cst_absent_locate,
    .map = cst_absent_map,
    .get = NULL,
    .put = NULL,
};
