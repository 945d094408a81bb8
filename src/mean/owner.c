/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/owner.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/model.h"
#include "codec/portable.h"
#include "mean/mean_code.h"
#include "mean/repair.h"

#include <math.h>
#include <stdlib.h>

/* Phase 1's average error may exceed what was planned for by this factor: 0.8 of the budget instead of 0.48. */
static const double too_coarse = 1.67;

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

/* ---- what is left of the budget ---- */

typedef struct {
    double s2;    /* of the group now */
    double least; /* errors below this are not asked for */
    int unit;
} group_now;

/* The group's spread now: as measured for the blocks at hand, as told in an earlier round for those that are done. */
static group_now look_at_group(const cst_owner *o, const cst_group *g, const cst_block_now *now)
{
    const cst_shared *s = o->listen.shared;
    group_now all = {.unit = now[0].g->unit};
    double spread = 0, energy = 0, coords = 0;
    for (uint32_t b = g->first; b < g->end; b++) {
        const cst_block *layout = &s->layout->blocks[b];
        const cst_block_now *n = &now[b - g->first];
        double s2, r2;
        if (n->measured) {
            s2 = cst_in_unit(n->s2, n->g->unit, all.unit);
            r2 = cst_in_unit(n->r2, n->g->unit, all.unit);
        } else {
            cst_block_stat stat =
                o->current[b] ? s->tensors[layout->span]->stat[layout->index] : (cst_block_stat){0, 0};
            s2 = cst_energy_value(stat.s2, all.unit);
            r2 = cst_energy_value(stat.r2, all.unit);
        }
        if (s2 + r2 == 0)
            continue; /* zeros make no error; what still waits will be looked at when it has come */
        coords += layout->count;
        spread += layout->count * s2;
        energy += layout->count * (s2 + r2);
    }
    if (coords > 0) {
        all.s2 = spread / coords;
        all.least = cst_code_error(CST_CODE_Z, s->options.floor) * energy / coords;
    }
    return all;
}

/* Can all senders of the block refine so far? */
static bool refinable(const cst_owner *o, const cst_block_now *b, uint8_t arg)
{
    int ranks = o->listen.shared->options.rules.ranks;
    const cst_heard *heard = o->listen.heard + (size_t)(b->g->block - o->first) * (size_t)ranks;
    for (int u = 0; u < ranks; u++) {
        const cst_part *base = u == o->listen.rank ? NULL : &heard[u].frame->parts[heard[u].part];
        if (base && base->desc.step && cst_refinement(base->desc, arg).code == CST_CODE_ABSENT)
            return false;
    }
    return true;
}

static bool needs_refinement(const cst_owner *o, const cst_block_now *b, const group_now *g, int round, uint8_t *arg)
{
    const cst_shared *s = o->listen.shared;
    if (s->options.bits > 0 || (b->alike && round > 0)) /* where there is no spread, no step is fine enough */
        return false;
    double target = fmax(cst_error_up(&s->options.rules, s->beta, cst_in_unit(g->s2, g->unit, b->g->unit)),
                         cst_in_unit(g->least, g->unit, b->g->unit));
    if (!(b->average_error > too_coarse * target))
        return false;
    double step = sqrt(12 * target * cst_rotation_energy(b->layout->n));
    double quarters = ceil(4 * cst_log2(b->largest_base / step));
    *arg = (uint8_t)(quarters < 1 ? 1 : quarters > 60 ? 60 : quarters);
    while (*arg > 1 && !refinable(o, b, *arg))
        --*arg;
    return true;
}

/* ---- a group ---- */

typedef struct {
    cst_owner *o;
    cst_packer *packer;
    int round;
    uint32_t begin, end; /* blocks of one group that are here */
    cst_block_now now[CST_GROUP];
    size_t *answers;          /* per sender: bytes asked for so far */
    bool resend;              /* blocks that did not fit into the senders' frames are among them */
    double room, planned_all; /* rate control: bits for payloads in the frame, and planned for all blocks here */
    double planned, spent;    /* up to the group at hand; what entropy codes take is estimated */
    double modulo_planned, modulo_spent; /* of modulo codes alone: how good the estimate is */
    double need_down;
    coset_error *why;
} group_work;

static double *mean_at(const group_work *w, uint32_t block)
{
    return w->o->means + (size_t)(block - w->begin) * CST_BLOCK;
}

/* Where most blocks of a group decode, those that do not are just beyond reach: two bits quadruple it. */
static void ask_for_less(group_work *w)
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

/* Decodes and measures. */
static coset_status gather_group(group_work *w)
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
    ask_for_less(w);
    return COSET_OK;
}

/* Of all requests that a block can need in a round. */
static size_t request_room(const cst_owner *o)
{
    return CST_REQUEST_BYTES * (size_t)(o->listen.shared->options.rules.ranks - 1);
}

static void request(group_work *w, cst_request r)
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
static double room_later(const group_work *w, uint32_t block, double bits)
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

/* A block that has to wait: its requests, one for all senders where all are asked the same. bits: per coordinate, what the
 * code of its mean is expected to take, 0 if that is not known. */
static void postpone(group_work *w, uint32_t block, const cst_request *asks, double bits)
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
        request(w, (cst_request){block, CST_TO_ALL, one->ask, one->arg});
    else
        for (int u = 0; asks && u < ranks; u++)
            if (u != w->o->listen.rank && asks[u].ask)
                request(w, asks[u]);
    w->need_down += room_later(w, block, bits);
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

static void note_statistics(group_work *w, cst_mean_coding *c)
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

static double error_left(const group_work *w, const cst_block_now *now, const group_now *g)
{
    const cst_shared *s = w->o->listen.shared;
    double s2 = cst_in_unit(g->s2, g->unit, now->g->unit), least = cst_in_unit(g->least, g->unit, now->g->unit);
    return fmax(cst_error_down(&s->options.rules, s->beta, s2, now->mean_error), least / s->options.rules.ranks);
}

/* Where a frame is too small: an eighth more than the budget that is planned for, together with phase 1's error; where bits
 * are given, whatever it takes. */
static double error_at_most(const group_work *w, const cst_block_now *now, const group_now *g, double left)
{
    const cst_shared *s = w->o->listen.shared;
    if (s->options.bits > 0)
        return HUGE_VAL;
    double all = s->beta * cst_in_unit(g->s2, g->unit, now->g->unit) / s->options.rules.ranks;
    return fmax(left, 1.125 * all - now->mean_error);
}

/* Factor on D2 that makes what is expected of the group keep within the frame's size: up to a quarter more; and where bits
 * are given instead of a budget, down to a third less, to use what is left (but for some deviations of the estimate: more for entropy codes, whose length
 * turns out too late to change anything). */
static double rate_control(group_work *w, const group_now *g)
{
    const cst_shared *s = w->o->listen.shared;
    double bits = 0, coords = 0, doubt = 0;
    for (uint32_t b = w->begin; b < w->end; b++) {
        cst_block_now *now = &w->now[b - w->begin];
        w->planned += 8.0 * s->plan[b].down_bytes;
        if (w->o->done[b - w->o->first] || !now->g->complete || now->g->exact || now->g->wide || !now->measured)
            continue;
        double d2 = error_left(w, now, g);
        cst_plan p = now->plan = cst_plan_mean(w->o, now, d2);
        now->planned_d2 = d2;
        bool modulo = p.code != CST_CODE_ENTROPY;
        p.bits *= !modulo || w->modulo_planned == 0 ? 1 : w->modulo_spent / w->modulo_planned;
        if (p.bits < HUGE_VAL && now->s2 + now->r2 > 0) {
            bits += p.bits * now->layout->n;
            coords += now->layout->n;
            doubt += (modulo ? 5 : 9) * (double)now->layout->n; /* bits^2 */
        }
    }
    if (coords == 0 || w->round > 0)
        return 1;
    double over = (w->spent + bits - w->room * w->planned / w->planned_all) / coords;
    if (over > 0)
        return fmin(cst_exp2(2 * over), 1.25);
    over += sqrt(doubt) / coords;
    return s->options.bits > 0 && over < 0 ? fmax(cst_exp2(2 * over), 0.67) : 1;
}

/* `bits` went into the frame; none: an entropy code, which will take about what was planned. */
static void note_spent(group_work *w, const cst_block_now *now, double d2, double bits)
{
    if (!now->measured || now->g->exact || now->g->wide || now->s2 + now->r2 == 0) {
        w->spent += bits;
        return;
    }
    double planned = now->layout->n * cst_plan_mean(w->o, now, d2).bits;
    w->spent += bits > 0 ? bits : planned;
    w->modulo_spent += bits;
    w->modulo_planned += bits > 0 ? planned : 0;
}

/* What a block's mean will take after a refinement. A spread that the coarse steps drown is known badly: at worst there is
 * none. */
static double bits_when_refined(const group_work *w, const cst_block_now *now, const group_now *g, uint8_t arg)
{
    const cst_plan_rules *rules = &w->o->listen.shared->options.rules;
    double left = error_left(w, now, g), n = rules->ranks;
    if (now->s2 < 0.1 * now->average_error)
        return cst_model_bits((now->s2 + now->r2) * 100 / (12 * left));
    double factor = cst_rotation_energy(now->layout->n), step = now->largest_base * cst_exp2(-arg / 4.0);
    double error = cst_code_error(CST_CODE_Z, step) / factor * (n - 1) / (n * n);
    return cst_plan_down(rules, now->s2, now->r2, error, left, CST_CODE_Z, step / sqrt(factor)).bits;
}

static void code_block(group_work *w, const cst_block_now *now, const group_now *g, double growth, double *mean)
{
    cst_owner *o = w->o;
    cst_mean_coding c = {.o = o, .packer = w->packer, .b = now, .part = now->g->block - o->first};
    uint8_t arg;
    if (w->round < CST_LAST_ROUND && !now->g->exact && needs_refinement(o, now, g, w->round, &arg)) {
        request(w, (cst_request){now->g->block, CST_TO_ALL, CST_ASK_REFINE, arg});
        postpone(w, now->g->block, NULL, bits_when_refined(w, now, g, arg));
        return;
    }
    note_statistics(w, &c);
    double left = error_left(w, now, g);
    c.most = error_at_most(w, now, g, left);
    c.d2 = fmin(left * growth, c.most);
    const uint8_t *before = w->packer->next;
    if (!cst_code_mean(&c, mean)) {
        bool planned = !now->g->exact && !now->g->wide && now->measured;
        postpone(w, now->g->block, NULL, planned ? cst_plan_mean(o, now, c.d2).bits : 0);
        return;
    }
    note_spent(w, now, c.d2, 8.0 * (double)(w->packer->next - before));
    account(o, now, c.d2);
    o->corrected += now->g->corrected;
}

/* Where questions can be asked for the last time, payloads leave them room: in the frame's size it was counted, when the
 * blocks were postponed. */
static void reserve_requests(group_work *w)
{
    const cst_owner *o = w->o;
    if (o->listen.last_asks)
        for (uint32_t b = o->first; b < o->end; b++)
            w->packer->reserved += o->done[b - o->first] ? 0 : request_room(o);
}

/* A block has its turn. */
static void release_reserve(group_work *w)
{
    if (w->o->listen.last_asks)
        w->packer->reserved -= request_room(w->o);
}

static coset_status work_on_group(group_work *w, const cst_group *group)
{
    int ranks = w->o->listen.shared->options.rules.ranks;
    coset_status status = gather_group(w);
    uint32_t some = 0;
    for (uint32_t i = 0; i < w->end - w->begin; i++)
        some += w->now[i].measured;
    group_now g = {0};
    if (!status && some)
        g = look_at_group(w->o, group, w->now);
    double growth = status ? 1 : rate_control(w, &g);
    for (uint32_t b = w->begin; !status && b < w->end; b++) {
        cst_block_now *now = &w->now[b - w->begin];
        if (w->o->done[b - w->o->first])
            continue;
        release_reserve(w);
        if (now->g->complete)
            code_block(w, now, &g, growth, mean_at(w, b));
        else
            postpone(w, b, w->o->asks + (size_t)(b - w->begin) * (size_t)ranks, 0);
    }
    return status;
}

/* ---- the frame ---- */

static void begin_rate_control(group_work *w, size_t capacity)
{
    const cst_owner *o = w->o;
    const cst_shared *s = o->listen.shared;
    double entropy = 0;
    uint32_t streamed = 0;
    for (uint32_t b = o->first; b < o->end; b++) {
        w->planned_all += 8.0 * s->plan[b].down_bytes;
        if (s->plan[b].kind == CST_PLAN_CODED && s->plan[b].down.code == CST_CODE_ENTROPY)
            entropy += s->layout->blocks[b].n, streamed++;
    }
    double side = CST_FRAME_HEADER + (8.0 + CST_CHECK_BYTES) * (o->end - o->first) + cst_stream_overhead(streamed);
    w->room = fmax(8 * ((double)capacity - side) - 3 * sqrt(entropy), 0);
}

static void close_frame(cst_owner *o, const group_work *w, size_t declared)
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
    group_work w = {.o = o, .packer = packer, .round = round, .why = why};
    w.answers = calloc(ranks, sizeof *w.answers);
    coset_status status = w.answers ? COSET_OK : COSET_ERR_MEMORY;
    begin_rate_control(&w, capacity);
    o->listen.last_asks = round + 1 == CST_LAST_ROUND;
    reserve_requests(&w);
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
