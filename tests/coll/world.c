/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/world.h"

#include "unit.h"
#include <stdlib.h>
#include <string.h>

struct letter {
    letter *next, **link; /* link: what points to this letter */
    coset_msg *msg;       /* NULL: a send that completed before its bytes arrived, which are in `early` */
    int owner, peer;
    uint64_t op;
    uint32_t tag;
    const coset_entry *entry;
    char *bytes; /* the user's memory */
    size_t length;
    bool sends;
    bool moved;  /* the bytes have arrived: only the completion is missing */
    char *early; /* a send whose bytes were taken at once; the copy */
};

uint64_t random_state(uint64_t seed)
{
    return seed * 0x9E3779B97F4A7C15ull + 1;
}
uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Dull;
}
uint64_t world_random(world *w)
{
    return next_random(&w->random);
}
static bool chance(world *w, int percent)
{
    return (int)(world_random(w) >> 33) % 100 < percent;
}

static world_end *end_of(coset_transport *t)
{
    return (world_end *)t;
}

static letter *post(coset_transport *t, coset_msg *m, bool sends)
{
    world *w = end_of(t)->w;
    letter **at = &w->letters[t->rank], *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_in_range(m->peer, 0, w->n - 1);
    assert_int_not_equal(m->peer, t->rank);
    assert_true(m->iovcnt == 0 || m->iovcnt == 1);
    *l = (letter){.msg = m,
                  .owner = t->rank,
                  .peer = m->peer,
                  .op = m->op,
                  .tag = m->tag,
                  .entry = m->entry,
                  .bytes = m->iovcnt ? m->iov[0].iov_base : NULL,
                  .length = m->iovcnt ? m->iov[0].iov_len : 0,
                  .sends = sends};
    assert_true(w->max_message == 0 || l->length <= w->max_message);
    for (; *at; at = &(*at)->next)
        assert_false((*at)->sends == sends && (*at)->peer == l->peer && (*at)->op == l->op && (*at)->tag == l->tag);
    l->link = at;
    *at = l;
    m->status = COSET_IN_PROGRESS;
    return l;
}

static coset_status refuse(coset_transport *t, coset_msg *m)
{
    if (end_of(t)->w->dead != m->peer)
        return COSET_OK;
    return m->status = COSET_ERR_PEER;
}

static coset_status isend(coset_transport *t, coset_msg *m)
{
    world *w = end_of(t)->w;
    if (refuse(t, m) != COSET_OK)
        return m->status;
    letter *l = post(t, m, true);
    end_of(t)->sent_bytes += l->length;
    end_of(t)->messages++;
    if (chance(w, w->eager)) {
        l->early = malloc(l->length + 1);
        assert_non_null(l->early);
        if (l->length)
            memcpy(l->early, l->bytes, l->length);
    }
    return COSET_OK;
}

static coset_status irecv(coset_transport *t, coset_msg *m)
{
    if (refuse(t, m) != COSET_OK)
        return m->status;
    letter *l = post(t, m, false);
    if (l->length)
        memset(l->bytes, 0xA5, l->length);
    return COSET_OK;
}

static void forget(letter *l)
{
    *l->link = l->next;
    if (l->next)
        l->next->link = l->link;
    free(l->early);
    free(l);
}

static void cancel(coset_transport *t, coset_msg *m)
{
    letter *l = end_of(t)->w->letters[t->rank];
    while (l && l->msg != m)
        l = l->next;
    assert_non_null(l);
    forget(l);
    m->status = COSET_ERR_ABORTED;
}

static letter *partner_of(world *w, const letter *recv)
{
    for (letter *l = w->letters[recv->peer]; l; l = l->next)
        if (l->sends && !l->moved && l->peer == recv->owner && l->op == recv->op && l->tag == recv->tag)
            return l;
    return NULL;
}

/* Copies a message from the send to its receive. */
static void move(letter *send, letter *recv)
{
    assert_int_equal(send->length, recv->length);
    assert_memory_equal(send->entry, recv->entry, sizeof *recv->entry);
    if (recv->length)
        memcpy(recv->bytes, send->early ? send->early : send->bytes, recv->length);
    recv->moved = send->moved = true;
    if (!send->msg)
        forget(send);
}

static bool arrival_fails(world *w, const letter *l)
{
    if (w->fail_after == 0 || --w->fail_after != 0)
        return false;
    w->dead = l->peer;
    return true;
}

/* Ends the message towards its owner. */
static void complete(letter *l, coset_status status)
{
    coset_msg *m = l->msg;
    l->msg = NULL;
    if (l->moved || status != COSET_OK)
        forget(l);
    m->status = status;
}

/* Gives every letter of this rank a chance to go on. */
static coset_status progress(coset_transport *t)
{
    world *w = end_of(t)->w;
    letter *mine[1024];
    int count = 0, ended = 0;
    for (letter *l = w->letters[t->rank]; l && count < 1024; l = l->next)
        if (l->msg && !chance(w, w->lazy))
            mine[count++] = l;
    for (int i = 0; i < count; i++) {
        letter *l = mine[i], *partner = l->sends || l->moved ? NULL : partner_of(w, l);
        if (partner && !arrival_fails(w, l))
            move(partner, l);
        if (!l->moved && l->peer == w->dead)
            complete(l, COSET_ERR_PEER);
        else if (l->moved || l->early)
            complete(l, COSET_OK);
        else
            continue;
        ended++;
    }
    return ended ? COSET_OK : COSET_IN_PROGRESS;
}

static const coset_transport_ops ops = {
    .struct_size = sizeof ops,
    .abi = COSET_TRANSPORT_ABI,
    .name = "world",
    .isend = isend,
    .irecv = irecv,
    .cancel = cancel,
    .progress = progress,
};

void world_open(world *w, int n, uint64_t seed)
{
    *w = (world){.n = n, .random = random_state(seed), .lazy = 50, .eager = 50, .dead = -1};
    for (int i = 0; i < n; i++)
        w->end[i] = (world_end){.base = {&ops, i, n}, .w = w};
}

void world_close(world *w)
{
    for (int rank = 0; rank < w->n; rank++) {
        if (w->dead < 0)
            assert_null(w->letters[rank]);
        while (w->letters[rank]) {
            assert_null(w->letters[rank]->msg); /* a send whose bytes nobody came for is no message under way */
            forget(w->letters[rank]);
        }
    }
}

int world_pending(const world *w, int rank)
{
    int pending = 0;
    for (const letter *l = w->letters[rank]; l; l = l->next)
        pending += l->msg != NULL;
    return pending;
}
