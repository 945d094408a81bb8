/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that have to wait: what their senders are asked for, and how large the next frames have to be for it. */
#include "mean/owner_state.h"
#include "mean/repair.h"

/* Where most blocks of a group decode, those that do not are just beyond reach: two bits quadruple it. */
void cst_owner_ask_less(cst_group_work *w)
{
    const unsigned usual = 4, few = 2;
    int ranks = w->o->listen.shared->options.rules.ranks, waiting = 0, all = 0;
    uint32_t asks = (w->end - w->begin) * (uint32_t)ranks;
    for (uint32_t b = w->begin; b < w->end; b++)
        all += w->o->done[b - w->o->first] ? 0 : ranks - 1;
    for (uint32_t i = 0; i < asks; i++)
        waiting += w->o->asks[i].ask == CST_ASK_DIGITS;
    for (uint32_t i = 0; i < asks && 2 * waiting <= all; i++)
        if (w->o->asks[i].ask == CST_ASK_DIGITS && w->o->asks[i].arg == usual)
            w->o->asks[i].arg = few;
}

/* Of all requests that a block can need in a round. */
static size_t request_room(const cst_owner *o)
{
    return CST_REQUEST_BYTES * (size_t)(o->listen.shared->options.rules.ranks - 1);
}

void cst_owner_request(cst_group_work *w, cst_request r)
{
    const cst_owner *o = w->o;
    int ranks = o->listen.shared->options.rules.ranks;
    if (!cst_packer_request(w->packer, r))
        return; /* no room: asked in the next round */
    w->resend |= r.ask == CST_ASK_RESEND;
    for (int u = 0; u < ranks; u++) {
        if (u == o->listen.rank || (r.sender != CST_TO_ALL && r.sender != u))
            continue;
        const cst_heard *h = &o->listen.heard[(size_t)(r.block - o->first) * (size_t)ranks + (size_t)u];
        const cst_part *base = &h->frame->parts[h->part];
        w->answers[u] += 4 + CST_CHECK_BYTES + cst_answer_bytes(&r, base->desc, base->n);
        /* who was thought to have the same; and in the end everybody, so that nothing is left to be asked for */
        if (r.ask == CST_ASK_RESEND && (base->desc.code == CST_CODE_EXACT || o->listen.last_asks))
            w->answers[u] += o->listen.shared->layout->blocks[r.block].count * o->listen.shared->options.element[0];
    }
}

/* Bytes to ask for in the next DOWN frame: for the last round whatever a code may take; before it what the block will take as
 * it is known now and a reserve, or if it is not known what the plan expects, or a byte per coordinate; and its requests. */
static double room_later(const cst_group_work *w, uint32_t block, double bits)
{
    const cst_shared *s = w->o->listen.shared;
    const cst_block *b = &s->layout->blocks[block];
    const cst_heard *heard = w->o->listen.heard + (size_t)(block - w->o->first) * (size_t)s->options.rules.ranks;
    double exact = b->count * (double)s->options.element[1] + 64, plan = s->plan[block].down_bytes;
    bool is_exact = w->o->listen.vector->own[block].kind == CST_BLOCK_EXACT;
    for (int u = 0; u < s->options.rules.ranks; u++)
        is_exact |= u != w->o->listen.rank && heard[u].frame->parts[heard[u].part].desc.code == CST_CODE_EXACT;
    if (w->o->listen.last_asks)
        return exact + 4.0 * b->n;
    double requests = (double)request_room(w->o);
    if (is_exact)
        return exact + requests;
    if (bits > 0 && bits < 32)
        return (1.05 * bits + 0.25) * b->n / 8 + 64 + requests;
    return (plan > 0 ? 1.1 * plan + 64 + b->n / 32.0 : b->n + 64) + requests;
}

void cst_owner_postpone(cst_group_work *w, uint32_t block, const cst_request *asks, double bits)
{
    int ranks = w->o->listen.shared->options.rules.ranks, asked = 0, same = 1;
    const cst_request *one = NULL;
    for (int u = 0; asks && u < ranks; u++) {
        if (u == w->o->listen.rank || !asks[u].ask)
            continue;
        asked++;
        same &= !one || (one->ask == asks[u].ask && one->arg == asks[u].arg);
        one = &asks[u];
    }
    if (one && same && asked == ranks - 1)
        cst_owner_request(w, (cst_request){block, CST_TO_ALL, one->ask, one->arg});
    else
        for (int u = 0; asks && u < ranks; u++)
            if (u != w->o->listen.rank && asks[u].ask)
                cst_owner_request(w, asks[u]);
    w->need_down += room_later(w, block, bits);
}

void cst_owner_reserve(cst_group_work *w)
{
    const cst_owner *o = w->o;
    if (o->listen.last_asks)
        for (uint32_t b = o->first; b < o->end; b++)
            w->packer->reserved += o->done[b - o->first] ? 0 : request_room(o);
}

void cst_owner_release(cst_group_work *w)
{
    if (w->o->listen.last_asks)
        w->packer->reserved -= request_room(w->o);
}
