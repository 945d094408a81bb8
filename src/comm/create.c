/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a communicator. Every rank sees every rank's terms, so all of them find the same fault, if there is one, and
 * say the same about it; and no rank leaves with success while another failed.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "comm/terms.h"
#include "comm/spread.h"
#include "transport/agree.h"
#include "transport/environment.h"
#include "transport/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void free_parts(coset_comm *c)
{
    free(c->hosts);
    cst_nodes_free(&c->nodes);
    free(c->control);
    free(c->pair_sent);
    free(c->pair_received);
    free(c->pair_sending);
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
    c->pair_sending = calloc(n, sizeof *c->pair_sending);
    c->heard = calloc(n, sizeof *c->heard);
    c->departed = calloc(n, 1);
    c->wrong_call = calloc(n, sizeof *c->wrong_call);
    if (!c->hosts || !c->pair_sent || !c->pair_received || !c->pair_sending || !c->heard || !c->departed ||
        !c->wrong_call) {
        free_parts(c);
        return NULL;
    }
    return c;
}

static const char *identity_of(const void *all, int rank)
{
    return ((const cst_terms *)all)[rank].identity;
}

static int ranks_on_my_host(const coset_comm *c)
{
    int n = 0;
    for (int r = 0; r < c->size; r++)
        n += c->nodes.node_of[r] == c->nodes.node_of[c->rank];
    return n;
}

/* By the rank that sees fewest: all ranks of a host must choose the same ways through its memory. */
static bool core_each(const coset_comm *c, const cst_terms *all)
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
    cst_terms *terms;
    cst_verdict *verdicts;
    const char **identities;
    cst_room room; /* of the terms */
} workspace;

static bool open_workspace(workspace *w, int size)
{
    w->terms = cst_room_open(&w->room, size, sizeof *w->terms);
    w->verdicts = calloc((size_t)size, sizeof *w->verdicts);
    w->identities = calloc((size_t)size, sizeof *w->identities);
    return w->terms && w->verdicts && w->identities;
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
        w->identities[r] = w->terms[r].identity;
    coset_transport_config config = {
        .struct_size = sizeof config,
        .late_ms = c->settings.late_ms,
        .dead_ms = c->settings.dead_ms,
        .checksum = c->settings.checksum,
        .progress = c->settings.progress,
        .control_bytes = sizeof(cst_control) + 2 * cst_slot_room(c->size),
        .host = w->identities,
        .job = w->terms[0].job,
        .on_entry = cst_comm_heard,
        .ctx = c,
        .address = c->settings.address,
        .core_each = c->core_each,
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

static coset_status join(coset_comm *c, const coset_oob *oob, const coset_transport_ops *plugin, workspace *w,
                         coset_error *why)
{
    int limit = c->settings.late_ms;
    cst_terms *all = w->terms;
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
    status = cst_verdict_agree(oob, status, limit, w->verdicts, &own);
    if (status == COSET_OK) {
        status = make_transport(c, oob, ops, w, &own);
        status = cst_verdict_agree(oob, status, limit, w->verdicts, &own);
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
    cst_terms mine;
    coset_comm *c = allocate(oob, settings);
    bool memory = open_workspace(&w, oob->size) && c;
    cst_terms_make(&mine, settings, memory ? COSET_OK : COSET_ERR_MEMORY);
    coset_status status =
        w.terms ? oob->allgather(oob->ctx, &mine, w.terms, sizeof mine, settings->late_ms) : COSET_ERR_MEMORY;
    if (status != COSET_OK)
        cst_fail(why, status, -1, "ranks could not exchange their terms: %s", coset_strerror(status));
    else
        status = cst_terms_check(w.terms, oob->size, why);
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
    int ended = cst_comm_cancel_all(c, COSET_ERR_ABORTED);
    if (ended || cst_poison_status(&c->poison) != COSET_OK)
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
