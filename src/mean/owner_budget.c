/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of the budget after phase 1, and how an owner's codes keep to the frame's size. */
#include "codec/model.h"
#include "codec/portable.h"
#include "mean/mean_code.h"
#include "mean/owner_state.h"
#include "mean/repair.h"

#include <math.h>

/* Phase 1's average error may exceed what was planned for by this factor: 0.8 of the budget instead of 0.48. */
static const double too_coarse = 1.67;

cst_group_now cst_owner_look(const cst_owner *o, const cst_group *g, const cst_block_now *now)
{
    const cst_shared *s = o->listen.shared;
    cst_group_now all = {.unit = now[0].g->unit};
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

bool cst_owner_refines(const cst_owner *o, const cst_block_now *b, const cst_group_now *g, uint8_t *arg)
{
    const cst_shared *s = o->listen.shared;
    bool refined = b->largest_step < b->largest_base;
    if (s->options.bits > 0 || (b->alike && refined)) /* where there is no spread, no step is fine enough */
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

double cst_owner_error_left(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g)
{
    const cst_shared *s = w->o->listen.shared;
    double s2 = cst_in_unit(g->s2, g->unit, now->g->unit), least = cst_in_unit(g->least, g->unit, now->g->unit);
    return fmax(cst_error_down(&s->options.rules, s->beta, s2, now->mean_error), least / s->options.rules.ranks);
}

/* Where a frame is too small: an eighth more than the budget that is planned for, together with phase 1's error; where bits
 * are given, whatever it takes. */
double cst_owner_error_at_most(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g, double left)
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
double cst_owner_rate(cst_group_work *w, const cst_group_now *g)
{
    const cst_shared *s = w->o->listen.shared;
    double bits = 0, coords = 0, doubt = 0;
    for (uint32_t b = w->begin; b < w->end; b++) {
        cst_block_now *now = &w->now[b - w->begin];
        w->planned += 8.0 * s->plan[b].down_bytes;
        if (w->o->done[b - w->o->first] || !now->g->complete || now->g->exact || now->g->wide || !now->measured)
            continue;
        double d2 = cst_owner_error_left(w, now, g);
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
void cst_owner_note_spent(cst_group_work *w, const cst_block_now *now, double d2, double bits)
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
double cst_owner_bits_refined(const cst_group_work *w, const cst_block_now *now, const cst_group_now *g, uint8_t arg)
{
    const cst_plan_rules *rules = &w->o->listen.shared->options.rules;
    double left = cst_owner_error_left(w, now, g), n = rules->ranks;
    if (now->s2 < 0.1 * now->average_error)
        return cst_model_bits((now->s2 + now->r2) * 100 / (12 * left));
    double factor = cst_rotation_energy(now->layout->n), step = now->largest_base * cst_exp2(-arg / 4.0);
    double error = cst_code_error(CST_CODE_Z, step) / factor * (n - 1) / (n * n);
    return cst_plan_down(rules, now->s2, now->r2, error, left, CST_CODE_Z, step / sqrt(factor)).bits;
}

void cst_owner_begin_rate(cst_group_work *w, size_t capacity)
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
