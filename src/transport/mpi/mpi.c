/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/mpi.h"

#include "base/clock.h"
#include "base/error.h"
#include "transport/absent.h"
#include "transport/agree.h"
#include "transport/mpi/engine.h"
#include "transport/mpi/oob.h"
#include "transport/mpi/retire.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Measured over loopback, both MPIs over TCP: 25 MiB take 25 and 32 ms in pieces of 256 KiB, 21 and 28 in pieces of 1 MiB,
 * 30 and 32 in pieces of 4 MiB: a piece has to be asked for, and several have to be under way. */
#define SEGMENT_BYTES ((size_t)1024 << 10)
/* idle() looks so often before it yields, so often before it sleeps: about 50 us each. Where ranks share cores every
 * look is taken from the rank that is waited for. */
enum { SPINS = 100, YIELDS = 50 };
/* Then it sleeps for longer and longer: MPI has nothing that a sleeper could be woken by. */
enum { FIRST_SLEEP_US = 50, LONGEST_SLEEP_US = 1000 };
/* But not while payloads flow: many an MPI moves bytes only when it is called, and a sleep of either end is a gap in both
 * directions (25 MiB over loopback: docs/performance.md). So long after anything has ended they are taken to flow: the
 * time that a piece takes at 1 Gbit/s. */
enum { FLOW_MS = 10 };
/* How long destroy tries to get rid of what it still sends. */
enum { LEAVE_MS = 1000 };

typedef struct {
    coset_transport base;
    coset_transport_caps caps;
    cst_mpi_engine *engine;
    bool any_thread;   /* may call MPI */
    cst_deadline flow; /* until when what is under way is taken to flow */
    _Atomic bool woken;
    pthread_mutex_t lock; /* of outbox */
    cst_notices outbox;   /* notices of threads that may not call MPI */
    _Atomic bool has_outbox;
} mpi;

static mpi *self_of(const coset_transport *t)
{
    return (mpi *)t;
}

static coset_status probe(char *why, size_t why_bytes)
{
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (why_bytes)
        snprintf(why, why_bytes, "%s", initialized && !finalized ? "" : "MPI is not initialised");
    return initialized && !finalized ? COSET_OK : COSET_ERR_UNSUPPORTED;
}

/* -------- creation -------- */

static const char *level_name(int level)
{
    return level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                          : "MPI_THREAD_SERIALIZED";
}

static coset_status check_threads(const coset_transport_config *config, coset_error *why)
{
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE && config->progress == COSET_PROGRESS_THREAD)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                        "MPI was initialised with %s: ask MPI_Init_thread for MPI_THREAD_MULTIPLE, or set "
                        "options.progress = COSET_PROGRESS_CALLER (COSET_PROGRESS=caller)",
                        level_name(level));
    return COSET_OK;
}

/* The members' ranks in MPI_COMM_WORLD, in the order of the oob; members of another world: -1. */
static coset_status world_ranks(const coset_oob *oob, int timeout_ms, int *ranks, coset_error *why)
{
    int mine;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    coset_status status = oob->allgather(oob->ctx, &mine, ranks, sizeof mine, timeout_ms);
    return status ? cst_fail(why, status, -1, "ranks could not tell each other where they are in MPI_COMM_WORLD: %s",
                             coset_strerror(status))
                  : COSET_OK;
}

/* For a group that has no communicator of MPI's yet. */
static coset_status make_comm(const coset_oob *oob, const coset_transport_config *config, MPI_Comm *comm,
                              coset_error *why)
{
    enum { TAGS = 32768 }; /* that every MPI has */
    MPI_Group world, group;
    cst_room room;
    int *ranks = cst_room_open(&room, oob->size, sizeof *ranks);
    if (!ranks)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", oob->size);
    coset_status status = world_ranks(oob, config->late_ms, ranks, why);
    if (!status) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, oob->size, ranks, &group);
        int code = MPI_Comm_create_group(MPI_COMM_WORLD, group, (int)(config->job % TAGS), comm);
        if (code != MPI_SUCCESS)
            status = cst_mpi_fail(why, code, "making a communicator of MPI's");
        else
            MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
    }
    cst_room_close(&room);
    return status;
}

/* `mine`: what this rank has to report already. */
static coset_status open_comm(const coset_oob *oob, const coset_transport_config *config, coset_status mine,
                              MPI_Comm *comm, coset_error *why)
{
    if (!mine)
        mine = check_threads(config, why);
    coset_status status = cst_agree(oob, "transport mpi", mine, 0, config->late_ms, why);
    if (status)
        return status;
    MPI_Comm parent = cst_mpi_oob_comm(oob);
    return parent == MPI_COMM_NULL ? make_comm(oob, config, comm, why)
                                   : cst_mpi_duplicate(parent, config->late_ms, comm, why);
}

static mpi *allocate(const coset_oob *oob, const coset_transport_config *config)
{
    mpi *t = calloc(1, sizeof *t);
    cst_mpi_engine *e = calloc(1, sizeof *e);
    if (!t || !e) {
        free(t);
        free(e);
        return NULL;
    }
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    t->base = (coset_transport){&cst_transport_mpi, oob->rank, oob->size};
    t->caps =
        (coset_transport_caps){sizeof t->caps, 0, SEGMENT_BYTES, CST_MPI_MESSAGE_BYTES, config->core_each ? SPINS : 0};
    t->engine = e;
    t->any_thread = level == MPI_THREAD_MULTIPLE;
    pthread_mutex_init(&t->lock, NULL);
    cst_notices_init(&t->outbox, SIZE_MAX);
    e->checksum = config->checksum;
    e->dead_ms = config->dead_ms;
    e->on_entry = config->on_entry;
    e->on_entry_ctx = config->ctx;
    return t;
}

static void release(mpi *t)
{
    pthread_mutex_destroy(&t->lock);
    cst_notices_free(&t->outbox);
    free(t);
}

static coset_status create(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                           coset_error *why)
{
    MPI_Comm comm;
    cst_mpi_retired_look();
    mpi *t = allocate(oob, config);
    coset_status status = t ? COSET_OK : cst_fail(why, COSET_ERR_MEMORY, -1, "transport mpi: out of memory");
    status = open_comm(oob, config, status, &comm, why);
    if (!status) {
        status = cst_mpi_engine_open(t->engine, comm, why);
        if (status)
            MPI_Comm_free(&comm);
    }
    if (status) {
        if (t) {
            free(t->engine);
            release(t);
        }
        return status;
    }
    *out = &t->base;
    return COSET_OK;
}

/* -------- notices -------- */

static void send_outbox(mpi *t)
{
    coset_notice n;
    if (!atomic_load_explicit(&t->has_outbox, memory_order_relaxed) || !atomic_exchange(&t->has_outbox, false))
        return;
    pthread_mutex_lock(&t->lock);
    while (cst_notices_pop(&t->outbox, &n))
        cst_mpi_engine_tell(t->engine, &n);
    pthread_mutex_unlock(&t->lock);
}

static void wake(coset_transport *transport)
{
    atomic_store(&self_of(transport)->woken, true);
}

static coset_status announce(coset_transport *transport, const coset_notice *notice)
{
    mpi *t = self_of(transport);
    int is_main = 0;
    if (!t->any_thread)
        MPI_Is_thread_main(&is_main);
    if (t->any_thread || is_main) {
        cst_mpi_engine_tell(t->engine, notice);
        return COSET_OK;
    }
    pthread_mutex_lock(&t->lock);
    bool kept = cst_notices_push(&t->outbox, notice);
    pthread_mutex_unlock(&t->lock);
    atomic_store(&t->has_outbox, true);
    wake(transport);
    return kept ? COSET_OK : COSET_ERR_MEMORY;
}

static int poll_notice(coset_transport *transport, coset_notice *out)
{
    return cst_notices_pop(&self_of(transport)->engine->notices, out);
}

/* -------- the end -------- */

static void destroy(coset_transport *transport)
{
    mpi *t = self_of(transport);
    cst_mpi_engine *e = t->engine;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) {
        send_outbox(t);
        coset_notice n =
            cst_notice_make(COSET_NOTICE_GOODBYE, t->base.rank, COSET_OK, -1, "rank %d is done", t->base.rank);
        cst_mpi_engine_tell(e, &n);
        e->on_entry = NULL;
        cst_deadline end = cst_deadline_in(LEAVE_MS);
        do
            cst_mpi_engine_move(e);
        while (cst_frames_sending(&e->frames) && !cst_deadline_passed(end));
        cst_mpi_retire(e);
    }
    release(t);
}

/* -------- messages -------- */

static const coset_transport_caps *caps(const coset_transport *transport)
{
    return &self_of(transport)->caps;
}

static void counters(const coset_transport *transport, coset_transport_counters *out)
{
    const cst_mpi_engine *e = self_of(transport)->engine;
    *out = e->counters;
    out->wire_sent_bytes += e->frames.wire_sent;
    out->wire_received_bytes += e->frames.wire_received;
}

static bool check_msg(const mpi *t, const coset_msg *msg, size_t *bytes)
{
    return msg->peer >= 0 && msg->peer < t->base.size && msg->peer != t->base.rank &&
           cst_iov_bytes(msg->iov, msg->iovcnt, bytes) && *bytes <= CST_MPI_MESSAGE_BYTES;
}

static coset_status isend(coset_transport *transport, coset_msg *msg)
{
    mpi *t = self_of(transport);
    size_t bytes;
    if (!check_msg(t, msg, &bytes))
        return msg->status = COSET_ERR_ARGUMENT;
    if (t->engine->peers[msg->peer].gone)
        return msg->status = COSET_ERR_PEER;
    return cst_mpi_engine_send(t->engine, msg, bytes);
}

static coset_status irecv(coset_transport *transport, coset_msg *msg)
{
    mpi *t = self_of(transport);
    size_t bytes;
    if (!check_msg(t, msg, &bytes))
        return msg->status = COSET_ERR_ARGUMENT;
    return cst_mpi_engine_receive(t->engine, msg, bytes);
}

static void cancel(coset_transport *transport, coset_msg *msg)
{
    cst_mpi_engine_cancel(self_of(transport)->engine, msg);
}

static bool move(mpi *t)
{
    t->engine->moved = false;
    send_outbox(t);
    cst_mpi_engine_move(t->engine);
    if (t->engine->moved)
        t->flow = cst_deadline_in(FLOW_MS);
    return t->engine->moved;
}

static bool flows(const mpi *t)
{
    return t->engine->flights.count && !cst_deadline_passed(t->flow);
}

static coset_status progress(coset_transport *transport)
{
    mpi *t = self_of(transport);
    bool moved = move(t);
    cst_mpi_engine_deliver(t->engine);
    return moved ? COSET_OK : COSET_IN_PROGRESS;
}

/* What idle finds is told by the next progress, for which it returns. */
static void idle(coset_transport *transport, int timeout_ms)
{
    mpi *t = self_of(transport);
    cst_deadline end = cst_deadline_in(timeout_ms);
    long sleep_us = FIRST_SLEEP_US;
    for (int looks = 0; !atomic_exchange(&t->woken, false); looks++) {
        if (move(t) || t->engine->notices.count || cst_deadline_passed(end))
            return;
        if (looks < t->caps.spin)
            continue;
        if (looks < t->caps.spin + YIELDS || flows(t)) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){0, sleep_us * 1000}, NULL);
        sleep_us = 2 * sleep_us < LONGEST_SLEEP_US ? 2 * sleep_us : LONGEST_SLEEP_US;
    }
}

const coset_transport_ops cst_transport_mpi = {
    .struct_size = sizeof(coset_transport_ops),
    .abi = COSET_TRANSPORT_ABI,
    .name = "mpi",
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
    .fd = cst_absent_fd,
    .arm = cst_absent_arm,
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
