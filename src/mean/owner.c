/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/owner_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/portable.h"
#include "mean/mean_code.h"

#include <math.h>
#include <stdlib.h>

coset_status cst_owner_init(cst_owner *o, const cst_listener *listen, uint32_t first, uint32_t end,
                            const uint8_t *current, cst_pool *pool)
{
    *o = (cst_owner){.listen = *listen, .first = first, .end = end, .current = current, .pool = pool};
    int ranks = listen->shared->options.rules.ranks;
    size_t each = cst_gathered_floats(ranks);
    o->done = calloc(end - first + 1, 1);
    o->asks = calloc((size_t)ranks * CST_GROUP, sizeof *o->asks);
    o->floats = cst_pool_get(pool, (each * CST_GROUP + CST_GATHERED_SHARED) * sizeof(float));
    o->means = cst_pool_get(pool, sizeof(double) * CST_BLOCK * CST_GROUP);
    bool enough = o->done && o->asks && o->floats && o->means;
    for (int i = 0; enough && i < CST_GROUP; i++)
        enough = cst_gathered_init(&o->gathered[i], ranks, o->floats + CST_GATHERED_SHARED + each * (size_t)i,
                                   o->floats) == COSET_OK;
    if (!enough)
        cst_owner_free(o);
    return enough ? COSET_OK : COSET_ERR_MEMORY;
}

void cst_owner_free(cst_owner *o)
{
    for (int i = 0; i < CST_GROUP; i++)
        cst_gathered_free(&o->gathered[i]);
    if (o->pool) {
        cst_pool_put(o->pool, o->floats);
        cst_pool_put(o->pool, o->means);
    }
    free(o->done);
    free(o->asks);
    free(o->kept);
    *o = (cst_owner){0};
}

/* ---- a group ---- */

static double *mean_at(const cst_group_work *w, uint32_t block)
{
    return w->o->means + (size_t)(block - w->begin) * CST_BLOCK;
}

/* Decodes and measures. */
static coset_status gather_group(cst_group_work *w)
{
    cst_owner *o = w->o;
    const cst_shared *s = o->listen.shared;
    int ranks = s->options.rules.ranks;
    memset(o->asks, 0, (size_t)ranks * CST_GROUP * sizeof *o->asks);
    for (uint32_t b = w->begin; b < w->end; b++) {
        cst_block_now *now = &w->now[b - w->begin];
        *now = (cst_block_now){.g = &o->gathered[b - w->begin], .layout = &s->layout->blocks[b]};
        if (o->done[b - o->first])
            continue;
        const cst_block_plan *plan = &s->plan[b];
        bool entropy = plan->kind == CST_PLAN_CODED && plan->down.code == CST_CODE_ENTROPY;
        coset_status status = cst_gather(&o->listen, b, o->first, !entropy, now->g,
                                         o->asks + (size_t)(b - w->begin) * (size_t)ranks, w->why);
        if (status)
            return status;
        if (!now->g->complete)
            continue;
        cst_measure(o, now, mean_at(w, b));
    }
    cst_owner_ask_less(w);
    return COSET_OK;
}

static void account(cst_owner *o, const cst_block_now *b, double d2)
{
    if (!b->measured)
        return;
    if (o->coords == 0)
        o->unit = b->g->unit;
    double exact = b->g->exact ? b->mean_error : b->mean_error + d2;
    o->squared_error += b->layout->count * cst_in_unit(exact, b->g->unit, o->unit);
    o->coords += b->layout->count;
}

static void note_statistics(cst_group_work *w, cst_mean_coding *c)
{
    const cst_shared *s = w->o->listen.shared;
    const cst_tensor *t = s->tensors[c->b->layout->span];
    cst_block_stat stat = t->known ? t->stat[c->b->layout->index] : (cst_block_stat){0, 0};
    if (c->b->measured) {
        stat.s2 = c->b->alike ? cst_alike_index(w->o, c->b) : cst_energy_index(c->b->s2, c->b->g->unit);
        stat.r2 = cst_energy_index(c->b->r2, c->b->g->unit);
    }
    cst_packer_stats(w->packer, c->part, stat.s2, stat.r2);
    c->s2 = stat.s2;
    c->r2 = stat.r2;
    /* the same multiple of their own vector that receivers will compute */
    c->a2 = cst_reference_of_indices(&s->options.rules, stat.s2, stat.r2);
}

static void code_block(cst_group_work *w, const cst_block_now *now, const cst_group_now *g, double growth, double *mean)
{
    cst_owner *o = w->o;
    cst_mean_coding c = {.o = o, .packer = w->packer, .b = now, .part = now->g->block - o->first};
    uint8_t arg;
    if (w->round < CST_LAST_ROUND && !now->g->exact && cst_owner_refines(o, now, g, &arg)) {
        cst_owner_request(w, (cst_request){now->g->block, CST_TO_ALL, CST_ASK_REFINE, arg});
        cst_owner_postpone(w, now->g->block, NULL, cst_owner_bits_refined(w, now, g, arg));
        return;
    }
    note_statistics(w, &c);
    double left = cst_owner_error_left(w, now, g);
    c.most = cst_owner_error_at_most(w, now, g, left);
    c.d2 = fmin(left * growth, c.most);
    const uint8_t *before = w->packer->next;
    if (!cst_code_mean(&c, mean)) {
        bool planned = !now->g->exact && !now->g->wide && now->measured;
        cst_owner_postpone(w, now->g->block, NULL, planned ? cst_plan_mean(o, now, c.d2).bits : 0);
        return;
    }
    cst_owner_note_spent(w, now, c.d2, 8.0 * (double)(w->packer->next - before));
    account(o, now, c.d2);
    o->corrected += now->g->corrected;
}

static coset_status work_on_group(cst_group_work *w, const cst_group *group)
{
    int ranks = w->o->listen.shared->options.rules.ranks;
    coset_status status = gather_group(w);
    uint32_t some = 0;
    for (uint32_t i = 0; i < w->end - w->begin; i++)
        some += w->now[i].measured;
    cst_group_now g = {0};
    if (!status && some)
        g = cst_owner_look(w->o, group, w->now);
    double growth = status ? 1 : cst_owner_rate(w, &g);
    for (uint32_t b = w->begin; !status && b < w->end; b++) {
        cst_block_now *now = &w->now[b - w->begin];
        if (w->o->done[b - w->o->first])
            continue;
        cst_owner_release(w);
        if (now->g->complete)
            code_block(w, now, &g, growth, mean_at(w, b));
        else
            cst_owner_postpone(w, b, w->o->asks + (size_t)(b - w->begin) * (size_t)ranks, 0);
    }
    return status;
}

/* ---- the frame ---- */

static void close_frame(cst_owner *o, const cst_group_work *w, size_t declared)
{
    cst_packer *packer = w->packer;
    size_t up = 0;
    uint32_t waiting = 0;
    for (uint32_t b = o->first; b < o->end; b++) {
        if (o->done[b - o->first])
            continue;
        o->done[b - o->first] = cst_packer_has(packer, b - o->first);
        waiting += !o->done[b - o->first];
    }
    for (int u = 0; u < o->listen.shared->options.rules.ranks; u++)
        up = w->answers[u] > up ? w->answers[u] : up;
    cst_frame_header *h = &packer->header;
    if (waiting) {
        h->need_up = CST_FRAME_HEADER + up + (w->resend ? declared : 0);
        h->need_down = CST_FRAME_HEADER + (8 + CST_CHECK_BYTES) * (uint64_t)(o->end - o->first) +
                       (uint64_t)w->need_down + packer->dropped + packer->dropped / 4 +
                       (uint64_t)cst_stream_overhead(waiting) + 64;
    }
    h->error = o->coords ? cst_energy_index(o->squared_error / (double)o->coords, o->unit) : 0;
    h->corrected = o->corrected > 65535 ? 65535 : (uint16_t)o->corrected;
}

coset_status cst_owner_frame(cst_owner *o, int round, size_t declared, cst_packer *packer,
                             const cst_frame_header *header, uint8_t *frame, size_t capacity, coset_error *why)
{
    const cst_shared *s = o->listen.shared;
    size_t ranks = (size_t)s->options.rules.ranks;
    cst_packer_begin(packer, frame, capacity, header, o->listen.tools->entropy);
    cst_group_work w = {.o = o, .packer = packer, .round = round, .why = why};
    w.answers = calloc(ranks, sizeof *w.answers);
    coset_status status = w.answers ? COSET_OK : COSET_ERR_MEMORY;
    cst_owner_begin_rate(&w, capacity);
    o->listen.last_asks = round + 1 == CST_LAST_ROUND;
    cst_owner_reserve(&w);
    for (uint32_t b = o->first; !status && b < o->end; b = w.end) {
        const cst_group *group = &s->groups[s->group_of[b]];
        w.begin = group->first;
        w.end = group->end;
        status = work_on_group(&w, group);
    }
    if (!status && !cst_packer_flush(packer))
        status = COSET_ERR_MEMORY;
    cst_settle_stream(o, packer);
    if (!status) {
        close_frame(o, &w, declared);
        status = cst_packer_finish(packer) ? COSET_OK : COSET_ERR_MEMORY;
    }
    free(w.answers);
    return status;
}
