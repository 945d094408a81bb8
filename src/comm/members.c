/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small all-gather among some ranks of a communicator, over its own messages: how split, alloc and shrink make the
 * out-of-band primitive that creation needs. Every member sends its bytes to every other; groups are small and this
 * is no hot path.
 */
#include "base/clock.h"
#include "base/error.h"
#include "comm/exclusive.h"
#include "transport/agree.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    coset_msg msg;
    struct iovec iov;
} transfer;

static void prepare(transfer *t, const cst_members *m, int index, const coset_entry *entry, const void *base,
                    size_t bytes)
{
    t->iov = (struct iovec){(void *)(uintptr_t)base, bytes};
    t->msg = (coset_msg){.peer = m->members ? m->members[index] : index,
                         .tag = m->round,
                         .op = m->op,
                         .entry = entry,
                         .iov = &t->iov,
                         .iovcnt = 1,
                         .status = COSET_OK};
}

/* The first failure ends it, unless all who live are to be heard: else a rank that meets a dead one would be a round
 * ahead of those that still wait for it. */
static coset_status settle(cst_members *m, transfer *transfers, int count)
{
    coset_comm *c = m->comm;
    for (;;) {
        int open = 0;
        coset_status failed = COSET_OK;
        for (int i = 0; i < count; i++) {
            coset_status one = transfers[i].msg.status;
            open += one == COSET_IN_PROGRESS;
            failed = one == COSET_IN_PROGRESS || failed ? failed : one;
        }
        if (!open || (failed && !m->all_who_live))
            return failed;
        coset_status status = cst_comm_breathe(c);
        if (status != COSET_OK && !m->dead)
            return status;
        if (cst_deadline_passed(m->deadline))
            return COSET_ERR_LATE;
    }
}

static coset_status allgather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    cst_members *m = ctx;
    const coset_transport_ops *ops = m->comm->transport->ops;
    m->deadline = cst_deadline_in(timeout_ms);
    memcpy((char *)recv + (size_t)m->rank * bytes, send, bytes);
    int count = 2 * m->size;
    cst_room room; /* without memory this rank would leave without a word, and the others wait */
    transfer *transfers = cst_room_open(&room, count, sizeof *transfers);
    if (!transfers)
        return COSET_ERR_MEMORY;
    memset(transfers, 0, (size_t)count * sizeof *transfers);
    cst_call regroup = {.kind = CST_SPLIT};
    /* part of the operation under way, whose record all its messages carry; a regrouping after a failure has its own */
    coset_entry entry = m->dead ? cst_entry_make(&regroup, m->op) : m->comm->current;
    for (int i = 0; i < m->size; i++) {
        if (i == m->rank)
            continue;
        transfer *in = &transfers[2 * i], *out = in + 1;
        prepare(in, m, i, &entry, (char *)recv + (size_t)i * bytes, bytes);
        prepare(out, m, i, &entry, send, bytes);
        if (ops->irecv(m->comm->transport, &in->msg) == COSET_OK)
            ops->isend(m->comm->transport, &out->msg); /* what is refused has its status as well */
    }
    coset_status status = settle(m, transfers, count);
    for (int i = 0; i < count; i++)
        if (transfers[i].msg.status == COSET_IN_PROGRESS)
            ops->cancel(m->comm->transport, &transfers[i].msg);
    m->round++;
    cst_room_close(&room);
    return status;
}

coset_oob cst_members_oob(cst_members *m)
{
    return (coset_oob){
        .struct_size = sizeof(coset_oob), .rank = m->rank, .size = m->size, .ctx = m, .allgather = allgather};
}

/* ---- split ---- */

typedef struct {
    int32_t color, key, rank;
} split_choice;

static int compare_choice(const void *a, const void *b)
{
    const split_choice *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank - y->rank;
}

static int *everyone(int size)
{
    int *ranks = calloc((size_t)(unsigned)size, sizeof *ranks);
    for (int r = 0; ranks && r < size; r++)
        ranks[r] = r;
    return ranks;
}

cst_members cst_members_all(coset_comm *c, uint64_t op)
{
    return (cst_members){.comm = c, .size = c->size, .rank = c->rank, .op = op};
}

/* Orders the ranks of my color into `ranks`; returns how many. */
static int gather_color(split_choice *all, int size, int color, int *ranks)
{
    int n = 0;
    qsort(all, (size_t)size, sizeof *all, compare_choice);
    for (int i = 0; i < size; i++)
        if (all[i].color == color)
            ranks[n++] = all[i].rank;
    return n;
}

static int index_of(const int *ranks, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            return i;
    return -1;
}

/* More rounds than creating a communicator takes. */
#define ROUNDS_PER_SPLIT 4096

coset_status cst_comm_split_as(coset_comm *c, uint64_t sequence, uint32_t tag_space, int color, int key,
                               const cst_settings *settings, const coset_transport_ops *plugin, coset_comm **sub)
{
    cst_room ranks_room, all_room;
    int *ranks = cst_room_open(&ranks_room, c->size, sizeof *ranks);
    split_choice *all = cst_room_open(&all_room, c->size, sizeof *all), mine = {color, key, c->rank};
    cst_members world = cst_members_all(c, sequence);
    coset_status status = ranks && all ? COSET_OK : COSET_ERR_MEMORY;
    world.round = tag_space * ROUNDS_PER_SPLIT;
    *sub = NULL;
    if (status == COSET_OK)
        status = allgather(&world, &mine, all, sizeof mine, c->settings.late_ms);
    if (status == COSET_OK && color >= 0) {
        int n = gather_color(all, c->size, color, ranks);
        /* groups share no pair of ranks, so their keys cannot clash whatever number of rounds each takes */
        cst_members group = {.comm = c,
                             .members = ranks,
                             .size = n,
                             .rank = index_of(ranks, n, c->rank),
                             .op = sequence,
                             .round = world.round};
        coset_oob oob = cst_members_oob(&group);
        coset_error why = COSET_ERROR_INIT;
        status = cst_comm_create(&oob, settings, plugin, sub, &why);
        if (status != COSET_OK)
            cst_comm_note(c, status, "split: %s", why.text);
    }
    cst_room_close(&all_room);
    cst_room_close(&ranks_room);
    return status;
}

typedef struct {
    int color, key;
    coset_comm *sub;
} split_request;

static coset_status split_body(coset_comm *c, uint64_t sequence, void *arg)
{
    split_request *request = arg;
    return cst_comm_split_as(c, sequence, 0, request->color, request->key, &c->settings, c->plugin, &request->sub);
}

coset_status cst_comm_split(coset_comm *c, int color, int key, coset_comm **sub)
{
    split_request request = {color, key, NULL};
    coset_status status = cst_comm_exclusive(c, CST_SPLIT, 0, split_body, &request);
    if (status == COSET_OK)
        *sub = request.sub;
    return status;
}

/* ---- shrink ---- */

/* Message numbers that no operation reaches: one namespace per attempt. */
#define SHRINK_OP (UINT64_C(1) << 62)

/* One exchange of who is dead. `dead` grows by what the others know; *changed tells whether anybody's view did. */
static coset_status exchange_dead(coset_comm *c, unsigned char *dead, uint64_t attempt, int *changed)
{
    size_t n = (unsigned)c->size;
    int *alive = everyone(c->size);
    unsigned char *views = calloc(n, n);
    if (!alive || !views) {
        free(alive);
        free(views);
        return COSET_ERR_MEMORY;
    }
    int count = 0;
    for (int r = 0; r < c->size; r++)
        if (!dead[r])
            alive[count++] = r;
    cst_members m = {.comm = c,
                     .members = alive,
                     .size = count,
                     .rank = index_of(alive, count, c->rank),
                     .op = SHRINK_OP + attempt,
                     .dead = dead,
                     .all_who_live = true};
    /* at first they may be at work still; then all are here */
    coset_status status = allgather(&m, dead, views, n, attempt ? c->settings.dead_ms : c->settings.late_ms);
    *changed = status != COSET_OK;
    for (int i = 0; i < count && status == COSET_OK; i++)
        for (size_t r = 0; r < n; r++)
            if (views[(size_t)i * n + r] != dead[r]) {
                *changed = 1;
                dead[r] |= views[(size_t)i * n + r];
            }
    free(alive);
    free(views);
    return status;
}

static void note_deaths(coset_comm *c, unsigned char *dead)
{
    coset_error e = COSET_ERROR_INIT;
    c->transport->ops->progress(c->transport);
    cst_comm_watch(c);
    cst_poison_get(&c->poison, &e);
    for (int r = 0; r < c->size; r++)
        dead[r] |= c->departed[r];
    if (e.status == COSET_ERR_PEER && e.peer >= 0 && e.peer < c->size)
        dead[e.peer] = 1;
}

static coset_status shrink(coset_comm *c, coset_comm **survivors)
{
    unsigned char *dead = calloc((size_t)c->size, 1);
    if (!dead)
        return COSET_ERR_MEMORY;
    coset_status status = COSET_ERR_PEER;
    uint64_t attempt = 0;
    int changed = 1;
    /* views only grow, so this ends after at most `size` changes; one round without change is the agreement */
    for (; changed && attempt <= (uint64_t)c->size + 1; attempt++) {
        note_deaths(c, dead);
        status = exchange_dead(c, dead, attempt, &changed);
        if (status == COSET_ERR_MEMORY || status == COSET_ERR_LATE)
            break;
    }
    if (status == COSET_OK && !changed) {
        int *alive = everyone(c->size);
        int count = 0;
        for (int r = 0; alive && r < c->size; r++)
            if (!dead[r])
                alive[count++] = r;
        cst_members m = {.comm = c,
                         .members = alive,
                         .size = count,
                         .rank = alive ? index_of(alive, count, c->rank) : -1,
                         .op = SHRINK_OP + 0x10000,
                         .dead = dead};
        coset_oob oob = cst_members_oob(&m);
        status = alive ? cst_comm_create(&oob, &c->settings, c->plugin, survivors, &c->last) : COSET_ERR_MEMORY;
        free(alive);
    }
    if (status == COSET_OK)
        cst_comm_wait_for_writers(c);
    free(dead);
    return status;
}

coset_status cst_comm_shrink(coset_comm *c, coset_comm **survivors)
{
    cst_comm_hold(c); /* requests may be under way still, and a thread that drives them */
    coset_status status = shrink(c, survivors);
    cst_comm_release(c);
    return status;
}
