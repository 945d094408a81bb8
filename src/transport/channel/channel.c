/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/internal.h"

#include "base/log.h"

#include <sched.h>
#include <stdlib.h>

void cst_msg_list_init(cst_msg_list *l)
{
    *l = (cst_msg_list){NULL, &l->first};
}

void cst_msg_list_add(cst_msg_list *l, coset_msg *msg)
{
    msg->next = NULL;
    *l->last = msg;
    l->last = &msg->next;
}

void cst_msg_list_put_back(cst_msg_list *l, coset_msg *msg)
{
    msg->next = l->first;
    l->first = msg;
    if (!msg->next)
        l->last = &msg->next;
}

void cst_msg_list_remove(cst_msg_list *l, coset_msg *msg)
{
    for (coset_msg **at = &l->first; *at; at = &(*at)->next)
        if (*at == msg) {
            *at = msg->next;
            if (!*at)
                l->last = at;
            return;
        }
}

coset_msg *cst_msg_list_take(cst_msg_list *l)
{
    coset_msg *m = l->first;
    if (m)
        cst_msg_list_remove(l, m);
    return m;
}

void cst_msg_end(coset_msg *msg, coset_status status)
{
    msg->priv[STAGE] = CST_MSG_ENDED;
    msg->status = status;
}

void cst_msg_finish(cst_channel *ch, coset_msg *msg, coset_status status)
{
    msg->priv[STAGE] = CST_MSG_FINISHED;
    msg->priv[OUTCOME] = status;
    cst_msg_list_add(&ch->finished, msg);
}

static void init_peer(cst_channel *ch, int p)
{
    cst_peer *peer = &ch->peers[p];
    peer->out = cst_ring_from(&ch->layout, ch->areas[p], ch->rank);
    peer->in = cst_ring_from(&ch->layout, ch->areas[ch->rank], p);
    cst_msg_list_init(&peer->queued);
    cst_msg_list_init(&peer->posted);
    peer->early_last = &peer->early;
}

cst_channel *cst_channel_new(int rank, const cst_layout *layout, char *const *areas, const cst_channel_backend *backend)
{
    cst_channel *ch = calloc(1, sizeof *ch);
    if (!ch)
        return NULL;
    ch->rank = rank;
    ch->layout = *layout;
    ch->be = *backend;
    ch->areas = calloc((size_t)layout->size, sizeof *ch->areas);
    ch->peers = calloc((size_t)layout->size, sizeof *ch->peers);
    ch->block_reader = calloc(layout->blocks ? layout->blocks : 1, sizeof *ch->block_reader);
    if (!ch->areas || !ch->peers || !ch->block_reader) {
        cst_channel_free(ch);
        return NULL;
    }
    for (int p = 0; p < layout->size; p++)
        ch->areas[p] = areas[p];
    for (int p = 0; p < layout->size; p++)
        init_peer(ch, p);
    for (uint32_t b = 0; b < layout->blocks; b++)
        ch->block_reader[b] = -1;
    for (int s = 0; s < CST_SLOTS; s++)
        ch->free_slots[ch->free_count++] = (uint16_t)(CST_SLOTS - 1 - s);
    cst_msg_list_init(&ch->finished);
    ch->matched_last = &ch->matched;
    return ch;
}

static void free_arrivals(cst_arrival *a)
{
    while (a) {
        cst_arrival *next = a->next;
        free(a);
        a = next;
    }
}

void cst_channel_free(cst_channel *ch)
{
    if (!ch)
        return;
    for (int p = 0; ch->peers && p < ch->layout.size; p++) {
        free_arrivals(ch->peers[p].early);
        free_arrivals(ch->peers[p].inbound);
    }
    free_arrivals(ch->matched);
    free(ch->areas);
    free(ch->peers);
    free(ch->block_reader);
    free(ch);
}

void cst_channel_cancel(cst_channel *ch, coset_msg *msg)
{
    switch ((cst_msg_stage)msg->priv[STAGE]) {
    case CST_MSG_ENDED: return;
    case CST_MSG_QUEUED:
    case CST_MSG_OFFERED:
    case CST_MSG_STREAM: cst_send_cancel(ch, msg); break;
    case CST_MSG_POSTED:
    case CST_MSG_INBOUND:
    case CST_MSG_MATCHED: cst_receive_cancel(ch, msg); break;
    case CST_MSG_FINISHED: cst_msg_list_remove(&ch->finished, msg); break;
    }
    cst_msg_end(msg, COSET_ERR_ABORTED);
}

static bool tell_finished(cst_channel *ch)
{
    coset_msg *m;
    bool moved = false;
    while ((m = cst_msg_list_take(&ch->finished))) {
        cst_msg_end(m, (coset_status)m->priv[OUTCOME]);
        moved = true;
    }
    return moved;
}

coset_status cst_channel_progress(cst_channel *ch)
{
    bool moved = tell_finished(ch);
    if (ch->matched)
        moved |= cst_receive_matched(ch);
    for (int i = 1; i < ch->layout.size; i++) {
        int p = ch->rank + i;
        if (p >= ch->layout.size)
            p -= ch->layout.size;
        moved |= cst_receive_from(ch, p);
        if (ch->peers[p].queued.first)
            moved |= cst_send_queued(ch, p);
    }
    if (ch->active_count)
        moved |= cst_send_offers(ch);
    tell_finished(ch);
    return moved ? COSET_OK : COSET_IN_PROGRESS;
}

void cst_channel_counters(const cst_channel *ch, coset_transport_counters *out)
{
    *out = ch->count;
}

void cst_channel_gone(cst_channel *ch, int peer, coset_status status)
{
    cst_peer *p = &ch->peers[peer];
    if (p->gone)
        return;
    while (cst_receive_from(ch, peer))
        ;
    if (p->gone) /* the last words were nonsense */
        return;
    p->gone = status;
    cst_send_gone(ch, peer, status);
    cst_receive_gone(ch, peer, status);
}

void cst_peer_broken(cst_channel *ch, int peer, const char *what)
{
    cst_peer *p = &ch->peers[peer];
    if (p->broken)
        return;
    cst_log(CST_LOG_WARN, "rank %d: rank %d wrote nonsense into shared memory: %s", ch->rank, peer, what);
    p->broken = true;
    if (!p->gone) {
        p->gone = COSET_ERR_CORRUPT;
        cst_send_gone(ch, peer, COSET_ERR_CORRUPT);
        cst_receive_gone(ch, peer, COSET_ERR_CORRUPT);
    }
}

int cst_channel_broken(cst_channel *ch)
{
    for (int p = 0; p < ch->layout.size; p++)
        if (ch->peers[p].broken && !ch->peers[p].broken_told) {
            ch->peers[p].broken_told = true;
            return p;
        }
    return -1;
}

static bool has_work(const cst_channel *ch)
{
    return ch->finished.first || ch->matched || cst_receive_pending(ch) || cst_send_pending(ch);
}

bool cst_channel_linger(const cst_channel *ch, cst_patience patience, bool (*ready)(void *self), void *self)
{
    for (int i = 0; i < patience.spins + patience.yields; i++) {
        if (has_work(ch) || ready(self))
            return true;
        if (i < patience.spins)
            cst_pause();
        else
            sched_yield();
    }
    return false;
}

/*
 * Sleeping. The sleeper writes `sleeping` and then looks for work; whoever makes work writes it and then looks at
 * `sleeping`. All four accesses are sequentially consistent, so at least one side sees the other.
 */
bool cst_channel_sleep_begin(cst_channel *ch)
{
    cst_post *post = (cst_post *)ch->areas[ch->rank];
    atomic_store(&post->sleeping, 1);
    if (!has_work(ch))
        return true;
    cst_channel_sleep_end(ch);
    return false;
}

void cst_channel_sleep_end(cst_channel *ch)
{
    cst_post *post = (cst_post *)ch->areas[ch->rank];
    atomic_store_explicit(&post->sleeping, 0, memory_order_relaxed);
}

bool cst_channel_rouse(char *area)
{
    cst_post *post = (cst_post *)area;
    return atomic_load(&post->sleeping) == 1 && atomic_exchange(&post->sleeping, 0) == 1;
}

void cst_wake_peer(cst_channel *ch, int peer)
{
    if (cst_channel_rouse(ch->areas[peer]))
        ch->be.doorbell(ch->be.self, peer);
}

void cst_channel_leave(cst_channel *ch, int peer)
{
    atomic_store(&cst_left(&ch->layout, ch->areas[peer], ch->rank)->word, 1);
    cst_wake_peer(ch, peer);
}

bool cst_channel_left(const cst_channel *ch, int peer)
{
    return atomic_load(&cst_left(&ch->layout, ch->areas[ch->rank], peer)->word) == 1;
}
