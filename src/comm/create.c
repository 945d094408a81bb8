/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a communicator. Every rank sees every rank's hello, so all of them find the same fault, if there is one, and
 * say the same about it; and no rank leaves with success while another failed.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/spread.h"
#include "transport/agree.h"
#include "transport/environment.h"
#include "transport/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define HELLO_MAGIC UINT64_C(0x746573636f6c6c6f) /* also tells byte orders apart */

/* Exchanged once; every byte is initialised, so that records can be compared as they are. */
typedef struct {
    uint64_t magic;
    uint32_t wire_version, struct_bytes;
    uint64_t job; /* rank 0's counts */
    char library[16];
    char transport[32];
    int32_t algorithm, progress, rank_order, late_ms, dead_ms, checksum;
    int32_t status;                   /* COSET_ERR_MEMORY: there is none for a communicator */
    int32_t cores;                    /* that the ranks of its host have together, as this one sees it */
    char identity[CST_HOST_ID_BYTES]; /* of the host */
    char host[64];
} hello;

typedef struct {
    int32_t status, blamed; /* the rank that it is about, -1: none */
    char text[184];
} verdict;

static void make_hello(hello *h, const cst_settings *s, coset_status status)
{
    memset(h, 0, sizeof *h);
    h->status = status;
    h->magic = HELLO_MAGIC;
    h->wire_version = COSET_WIRE_VERSION;
    h->struct_bytes = sizeof *h;
    if (getrandom(&h->job, sizeof h->job, 0) != sizeof h->job)
        h->job = cst_now_ns() ^ ((uint64_t)getpid() << 40);
    strncpy(h->library, coset_version(), sizeof h->library - 1);
    memcpy(h->transport, s->transport, sizeof h->transport);
    h->algorithm = s->algorithm;
    h->progress = s->progress;
    h->rank_order = s->rank_order;
    h->late_ms = s->late_ms;
    h->dead_ms = s->dead_ms;
    h->checksum = s->checksum;
    h->cores = cst_cores_of_host();
    cst_host_identity(h->identity);
    cst_host_name(h->host);
}

/* progress may differ: it is nobody else's business. */
static coset_status compare_hello(const hello *a, int ra, const hello *b, int rb, coset_error *why)
{
    if (b->magic != a->magic || b->struct_bytes != a->struct_bytes || b->wire_version != a->wire_version)
        return cst_fail(why, COSET_ERR_MISMATCH, rb,
                        "rank %d speaks wire version %u of coset, rank %d version %u: use one version", ra,
                        a->wire_version, rb, b->wire_version);
    if (strncmp(a->library, b->library, sizeof a->library))
        return cst_fail(why, COSET_ERR_MISMATCH, rb, "rank %d runs coset %.15s, rank %d coset %.15s", ra, a->library,
                        rb, b->library);
    if (strncmp(a->transport, b->transport, sizeof a->transport))
        return cst_fail(why, COSET_ERR_MISMATCH, rb, "rank %d asks for transport '%.31s', rank %d for '%.31s'", ra,
                        a->transport, rb, b->transport);
    const struct {
        const char *name;
        int32_t x, y;
    } options[] = {{"algorithm", a->algorithm, b->algorithm},
                   {"rank_order", a->rank_order, b->rank_order},
                   {"late_ms", a->late_ms, b->late_ms},
                   {"dead_ms", a->dead_ms, b->dead_ms},
                   {"checksum", a->checksum, b->checksum}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].x != options[i].y)
            return cst_fail(why, COSET_ERR_MISMATCH, rb, "option %s is %d on rank %d and %d on rank %d",
                            options[i].name, options[i].x, ra, options[i].y, rb);
    return COSET_OK;
}

static bool blames_another(const verdict *all, int size, int r)
{
    int other = all[r].blamed;
    return other >= 0 && other < size && other != r && all[other].status != COSET_OK;
}

/* The first rank that has failed for a reason of its own; else (two that blame each other) the first that has failed; -1
 * if none has. */
static int first_cause(const verdict *all, int size)
{
    int failed = -1;
    for (int r = size - 1; r >= 0; r--)
        failed = all[r].status != COSET_OK ? r : failed;
    for (int r = 0; r < size; r++)
        if (all[r].status != COSET_OK && !blames_another(all, size, r))
            return r;
    return failed;
}

/* Tells all ranks how this one fares. OK only if all are; else the verdict of the rank that is the cause, on every rank
 * (but the caller's mistake there is a disagreement elsewhere). `all` has room for it: a rank must be able to say that it is out of memory. */
static coset_status agree(const coset_oob *oob, coset_status mine, int timeout_ms, verdict *all, coset_error *why)
{
    verdict v = {.status = mine, .blamed = mine != COSET_OK ? why->peer : -1};
    if (mine != COSET_OK)
        snprintf(v.text, sizeof v.text, "%.183s", why->text);
    coset_status status = oob->allgather(oob->ctx, &v, all, sizeof v, timeout_ms);
    if (status != COSET_OK && mine != COSET_OK)
        return mine; /* the others may have gone already */
    if (status != COSET_OK)
        return cst_fail(why, status, -1, "while ranks told each other how creation went: %s", coset_strerror(status));
    int cause = first_cause(all, oob->size);
    if (cause < 0)
        return COSET_OK;
    all[cause].text[sizeof all[cause].text - 1] = 0;
    status = (coset_status)all[cause].status;
    if (cause == oob->rank)
        return status;
    status = status == COSET_ERR_ARGUMENT ? COSET_ERR_MISMATCH : status;
    return cst_fail(why, status, cause, "rank %d: %s", cause, all[cause].text);
}

static void free_parts(coset_comm *c)
{
    free(c->hosts);
    cst_nodes_free(&c->nodes);
    free(c->control);
    free(c->pair_sent);
    free(c->pair_received);
    free(c->heard);
    free(c->departed);
    free(c->wrong_call);
    free(c->staging.scratch);
    pthread_mutex_destroy(&c->queue.lock);
    cst_poison_destroy(&c->poison);
    free(c);
}

static coset_comm *allocate(const coset_oob *oob, const cst_settings *settings)
{
    coset_comm *c = cst_alloc_aligned(128, sizeof *c);
    if (!c)
        return NULL;
    size_t n = (size_t)oob->size;
    pthread_mutex_init(&c->queue.lock, NULL);
    cst_poison_init(&c->poison);
    c->rank = oob->rank;
    c->size = oob->size;
    c->settings = *settings;
    c->fork_generation = cst_fork_generation();
    c->queue.event_fd = -1;
    c->hosts = calloc(n, sizeof *c->hosts);
    c->pair_sent = calloc(n, sizeof *c->pair_sent);
    c->pair_received = calloc(n, sizeof *c->pair_received);
    c->heard = calloc(n, sizeof *c->heard);
    c->departed = calloc(n, 1);
    c->wrong_call = calloc(n, sizeof *c->wrong_call);
    if (!c->hosts || !c->pair_sent || !c->pair_received || !c->heard || !c->departed || !c->wrong_call) {
        free_parts(c);
        return NULL;
    }
    return c;
}

static const char *identity_of(const void *all, int rank)
{
    return ((const hello *)all)[rank].identity;
}

static int ranks_on_my_host(const coset_comm *c)
{
    int n = 0;
    for (int r = 0; r < c->size; r++)
        n += c->nodes.node_of[r] == c->nodes.node_of[c->rank];
    return n;
}

/* By the rank that sees fewest: all ranks of a host must choose the same ways through its memory. */
static bool core_each(const coset_comm *c, const hello *all)
{
    int ranks = ranks_on_my_host(c);
    for (int r = 0; r < c->size; r++)
        if (c->nodes.node_of[r] == c->nodes.node_of[c->rank] && all[r].cores < ranks)
            return false;
    return true;
}

static const coset_transport_ops *choose_transport(const cst_settings *s, int one_host, coset_error *why)
{
    const char *name = s->transport[0] ? s->transport : one_host ? "shm" : "tcp";
    const coset_transport_ops *ops = cst_transport_find(name);
    char text[160] = "";
    if (!ops && !strcmp(name, "mpi")) {
        cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                 "transport mpi needs a communicator made by coset_comm_from_mpi (coset_mpi.h, libcoset-mpi-*)");
    } else if (!ops) {
        cst_transport_names(text, sizeof text);
        cst_fail(why, COSET_ERR_UNSUPPORTED, -1, "this build has no transport '%s'; it has %s", name, text);
    } else if (ops->probe && ops->probe(text, sizeof text) != COSET_OK) {
        cst_fail(why, COSET_ERR_UNSUPPORTED, -1, "transport %s cannot be used here: %s", name, text);
        return NULL;
    }
    return ops;
}

static coset_status check_plugin(const coset_transport_ops *ops, coset_error *why)
{
    if (ops->abi != COSET_TRANSPORT_ABI)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                        "the transport plug-in has contract version %u, this library %u", ops->abi,
                        COSET_TRANSPORT_ABI);
    return COSET_OK;
}

static coset_status map_control(coset_comm *c, coset_error *why)
{
    if (!(c->caps.flags & COSET_CAN_CONTROL))
        return COSET_OK;
    c->control = calloc((size_t)c->size, sizeof *c->control);
    if (!c->control)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d control areas", c->size);
    for (int r = 0; r < c->size; r++)
        if (!(c->control[r] = c->transport->ops->control(c->transport, r)))
            return cst_fail(why, COSET_ERR_SYSTEM, r, "transport %s gave no control area of rank %d",
                            c->transport->ops->name, r);
    return COSET_OK;
}

/* What lives for as long as creation takes. */
typedef struct {
    hello *hellos;
    verdict *verdicts;
    const char **identities;
    cst_room room; /* of the hellos */
} workspace;

static bool open_workspace(workspace *w, int size)
{
    w->hellos = cst_room_open(&w->room, size, sizeof *w->hellos);
    w->verdicts = calloc((size_t)size, sizeof *w->verdicts);
    w->identities = calloc((size_t)size, sizeof *w->identities);
    return w->hellos && w->verdicts && w->identities;
}

static void close_workspace(workspace *w)
{
    cst_room_close(&w->room);
    free(w->verdicts);
    free(w->identities);
}

static coset_status make_transport(coset_comm *c, const coset_oob *oob, const coset_transport_ops *ops,
                                   const workspace *w, coset_error *why)
{
    for (int r = 0; r < c->size; r++)
        w->identities[r] = w->hellos[r].identity;
    coset_transport_config config = {
        .struct_size = sizeof config,
        .late_ms = c->settings.late_ms,
        .dead_ms = c->settings.dead_ms,
        .checksum = c->settings.checksum,
        .progress = c->settings.progress,
        .control_bytes = sizeof(cst_control) + 2 * cst_slot_room(c->size),
        .host = w->identities,
        .job = w->hellos[0].job,
        .on_entry = cst_comm_heard,
        .ctx = c,
        .address = c->settings.address,
    };
    coset_status status = ops->create(oob, &config, &c->transport, why);
    if (status == COSET_OK) {
        c->caps = *ops->caps(c->transport);
        if (c->size > 1 &&
            !(c->caps.flags & COSET_CAN_MAP_ANY)) /* threads of one process start where their maker says */
            cst_spread(c->nodes.local[c->rank], ranks_on_my_host(c));
        status = map_control(c, why);
    }
    return status;
}

/* The same on all ranks: all saw the same hellos. */
static coset_status check_hellos(const hello *all, int size, coset_error *why)
{
    coset_status status = COSET_OK;
    for (int r = 1; r < size && status == COSET_OK; r++)
        status = compare_hello(&all[0], 0, &all[r], r, why);
    for (int r = 0; r < size && status == COSET_OK; r++)
        if (all[r].status != COSET_OK)
            status =
                cst_fail(why, COSET_ERR_MEMORY, r, "rank %d has no memory for a communicator of %d ranks", r, size);
    return status;
}

static coset_status join(coset_comm *c, const coset_oob *oob, const coset_transport_ops *plugin, workspace *w,
                         coset_error *why)
{
    int limit = c->settings.late_ms;
    hello *all = w->hellos;
    for (int r = 0; r < c->size; r++) {
        all[r].identity[sizeof all[r].identity - 1] = 0;
        all[r].host[sizeof all[r].host - 1] = 0;
        memcpy(c->hosts[r], all[r].host, sizeof c->hosts[r]);
    }
    c->job = all[0].job;
    coset_error own = COSET_ERROR_INIT; /* `why` may be NULL, the others want the text all the same */
    const coset_transport_ops *ops = NULL;
    coset_status status = cst_nodes_find(&c->nodes, c->size, identity_of, all);
    if (status != COSET_OK)
        cst_fail(&own, status, -1, "no memory for %d ranks", c->size);
    if (status == COSET_OK) {
        c->core_each = core_each(c, all);
        c->patience = cst_patience_for(c->core_each);
        ops = plugin ? plugin : choose_transport(&c->settings, c->nodes.nodes == 1, &own);
        status = ops ? COSET_OK : own.status;
    }
    if (status == COSET_OK && plugin)
        status = check_plugin(plugin, &own);
    if (status == COSET_OK)
        status = cst_transport_check_env(&own);
    status = agree(oob, status, limit, w->verdicts, &own);
    if (status == COSET_OK) {
        status = make_transport(c, oob, ops, w, &own);
        status = agree(oob, status, limit, w->verdicts, &own);
    }
    if (status != COSET_OK)
        cst_error_copy(why, &own);
    return status;
}

coset_status cst_comm_create(const coset_oob *oob, const cst_settings *settings, const coset_transport_ops *plugin,
                             coset_comm **out, coset_error *why)
{
    if (!oob->allgather || oob->size < 1 || oob->rank < 0 || oob->rank >= oob->size)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "rank %d of %d: rank must be at least 0 and below size", oob->rank,
                        oob->size);
    workspace w;
    hello mine;
    coset_comm *c = allocate(oob, settings);
    bool memory = open_workspace(&w, oob->size) && c;
    make_hello(&mine, settings, memory ? COSET_OK : COSET_ERR_MEMORY);
    coset_status status =
        w.hellos ? oob->allgather(oob->ctx, &mine, w.hellos, sizeof mine, settings->late_ms) : COSET_ERR_MEMORY;
    if (status != COSET_OK)
        cst_fail(why, status, -1, "ranks could not exchange their hellos: %s", coset_strerror(status));
    else
        status = check_hellos(w.hellos, oob->size, why);
    if (status == COSET_OK) {
        c->plugin = plugin;
        status = join(c, oob, plugin, &w, why);
    }
    close_workspace(&w);
    if (status != COSET_OK) {
        if (c && c->transport)
            c->transport->ops->destroy(c->transport);
        if (c)
            free_parts(c);
        if (why)
            why->rank = oob->rank;
        return status;
    }
    cst_log(CST_LOG_INFO, "rank %d of %d joined over %s", c->rank, c->size, c->transport->ops->name);
    *out = c;
    return COSET_OK;
}

void cst_comm_wait_for_writers(coset_comm *c)
{
    const int bound_ms = 1000;
    if (!c->control || !(c->caps.flags & (COSET_CAN_MAP_ANY | COSET_CAN_GET_PUT)))
        return;
    cst_flag_post(&c->control[c->rank]->leaving.word, 1);
    atomic_thread_fence(memory_order_seq_cst);
    cst_deadline deadline = cst_deadline_in(bound_ms);
    for (int r = 0; r < c->size; r++)
        while (r != c->rank && (cst_flag_value(&c->control[r]->busy.word) & 1) && !cst_deadline_passed(deadline))
            cst_pause();
}

/* Mapped memory went with its transport. */
static void free_allocations(coset_comm *c)
{
    while (c->allocations) {
        cst_allocation *a = c->allocations;
        c->allocations = a->next;
        if (a->kind == CST_MEMORY_OWN)
            free(a->ptr);
        free(a);
    }
}

void cst_comm_destroy(coset_comm *c)
{
    if (c->fork_generation != cst_fork_generation())
        return; /* a forked child: the parent's threads and connections are not its own to end */
    cst_comm_cancel_all(c, COSET_ERR_ABORTED);
    if (cst_poison_status(&c->poison) != COSET_OK)
        cst_comm_wait_for_writers(c);
    cst_nodes_free(&c->nodes); /* first: their ranks may still wait in them */
    c->transport->ops->destroy(c->transport);
    free_allocations(c);
    if (c->queue.event_fd >= 0) {
        cst_fork_unguard(c->queue.event_fd);
        close(c->queue.event_fd);
    }
    free_parts(c);
}
