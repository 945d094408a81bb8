/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a communicator. Every rank sees every rank's hello, so all of them find the same fault, if there is one, and
 * say the same about it; and no rank leaves with success while another failed.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "comm/comm.h"
#include "comm/spread.h"
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
    char identity[CST_HOST_ID_BYTES]; /* of the host */
    char host[64];
} hello;

typedef struct {
    int32_t status;
    char text[188];
} verdict;

static void make_hello(hello *h, const cst_settings *s)
{
    memset(h, 0, sizeof *h);
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

/* Tells all ranks how this one fares. OK only if all are; else the first bad rank's verdict, on every rank. */
static coset_status agree(const coset_oob *oob, coset_status mine, int timeout_ms, coset_error *why)
{
    verdict v = {.status = mine};
    if (mine != COSET_OK && why)
        snprintf(v.text, sizeof v.text, "%.187s", why->text);
    verdict *all = calloc((size_t)oob->size, sizeof *all);
    if (!all)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", oob->size);
    coset_status status = oob->allgather(oob->ctx, &v, all, sizeof v, timeout_ms);
    if (status != COSET_OK)
        cst_fail(why, status, -1, "while ranks told each other how creation went: %s", coset_strerror(status));
    for (int r = 0; r < oob->size && status == COSET_OK; r++)
        if (all[r].status != COSET_OK) {
            all[r].text[sizeof all[r].text - 1] = 0;
            status = (coset_status)all[r].status;
            if (r != oob->rank)
                cst_fail(why, status, r, "rank %d: %s", r, all[r].text);
        }
    free(all);
    return status;
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

static coset_status make_transport(coset_comm *c, const coset_oob *oob, const coset_transport_ops *ops,
                                   const hello *all, coset_error *why)
{
    const char **identities = calloc((size_t)c->size, sizeof *identities);
    if (!identities)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for %d ranks", c->size);
    for (int r = 0; r < c->size; r++)
        identities[r] = all[r].identity;
    coset_transport_config config = {
        .struct_size = sizeof config,
        .late_ms = c->settings.late_ms,
        .dead_ms = c->settings.dead_ms,
        .checksum = c->settings.checksum,
        .progress = c->settings.progress,
        .control_bytes = sizeof(cst_control) + 2 * cst_slot_room(c->size),
        .host = identities,
        .job = all[0].job,
        .on_entry = cst_comm_heard,
        .ctx = c,
        .address = c->settings.address,
    };
    coset_status status = ops->create(oob, &config, &c->transport, why);
    free(identities);
    if (status == COSET_OK) {
        c->caps = *ops->caps(c->transport);
        if (c->size > 1 &&
            !(c->caps.flags & COSET_CAN_MAP_ANY)) /* threads of one process start where their maker says */
            cst_spread(c->nodes.local[c->rank], ranks_on_my_host(c));
        status = map_control(c, why);
    }
    return status;
}

static coset_status join(coset_comm *c, const coset_oob *oob, const coset_transport_ops *plugin, hello *all,
                         coset_error *why)
{
    int limit = c->settings.late_ms;
    coset_status status = COSET_OK;
    for (int r = 1; r < c->size && status == COSET_OK; r++)
        status = compare_hello(&all[0], 0, &all[r], r, why);
    if (status != COSET_OK)
        return status; /* the same on all ranks: all saw the same hellos */
    for (int r = 0; r < c->size; r++) {
        all[r].identity[sizeof all[r].identity - 1] = 0;
        all[r].host[sizeof all[r].host - 1] = 0;
        memcpy(c->hosts[r], all[r].host, sizeof c->hosts[r]);
    }
    c->job = all[0].job;
    coset_error own = COSET_ERROR_INIT; /* `why` may be NULL, the others want the text all the same */
    const coset_transport_ops *ops = NULL;
    status = cst_nodes_find(&c->nodes, c->size, identity_of, all);
    if (status != COSET_OK)
        cst_fail(&own, status, -1, "no memory for %d ranks", c->size);
    if (status == COSET_OK) {
        c->patience = cst_patience_for(ranks_on_my_host(c));
        ops = plugin ? plugin : choose_transport(&c->settings, c->nodes.nodes == 1, &own);
        status = ops ? COSET_OK : own.status;
    }
    if (status == COSET_OK && plugin)
        status = check_plugin(plugin, &own);
    if (status == COSET_OK)
        status = cst_transport_check_env(&own);
    status = agree(oob, status, limit, &own);
    if (status == COSET_OK) {
        status = make_transport(c, oob, ops, all, &own);
        status = agree(oob, status, limit, &own);
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
    coset_comm *c = allocate(oob, settings);
    hello *all = calloc((size_t)oob->size, sizeof *all);
    if (!c || !all) {
        free(all);
        if (c)
            free_parts(c);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for a communicator of %d ranks", oob->size);
    }
    c->plugin = plugin;
    hello mine;
    make_hello(&mine, settings);
    coset_status status = oob->allgather(oob->ctx, &mine, all, sizeof mine, settings->late_ms);
    if (status == COSET_OK)
        status = join(c, oob, plugin, all, why);
    else
        cst_fail(why, status, -1, "ranks could not exchange their hellos: %s", coset_strerror(status));
    free(all);
    if (status != COSET_OK) {
        if (c->transport)
            c->transport->ops->destroy(c->transport);
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
