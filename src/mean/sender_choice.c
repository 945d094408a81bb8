/* SPDX-License-Identifier: Apache-2.0 */
/* Which code, modulus and step a sender takes for a block. */
#include "codec/model.h"
#include "codec/portable.h"
#include "mean/sender_state.h"

#include <math.h>

/* An energy that differs from the tracked one by more than this says that the statistics mean nothing any more. */
static const double strange_gain = 0x1p40;

/* How much larger than the modulus was made for a residual may be expected to be before the modulus is raised. A mean that
 * changes from call to call makes a block's energy vary by a few percent that say nothing about the spread. */
static const double tolerance = 1.12;

static double own_energy(const cst_sender *s, uint32_t block, int unit)
{
    return cst_scale2(s->vector->own[block].energy, 2 * (s->vector->own[block].exponent - unit));
}

double cst_sender_gain(const cst_sender *s, const cst_group *g)
{
    double energy = 0, coords = 0, tracked = g->s2 + g->r2;
    for (uint32_t b = g->first; b < g->end; b++) {
        double count = s->shared->plan[b].kind == CST_PLAN_ZERO ? 0 : s->shared->layout->blocks[b].count;
        coords += count;
        energy += count * own_energy(s, b, g->unit);
    }
    double gain = tracked > 0 && coords > 0 ? energy / coords / tracked : 0;
    return gain > 1 / strange_gain && gain < strange_gain ? gain : 0;
}

/* Integers have to stay below the kernels' limits, by a margin for rounding. */
static const float below = 0.99f;

static float largest_in_steps(const cst_sender *s, uint32_t block, double step)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    double norm2 = s->vector->own[block].energy * b->count * cst_rotation_energy(b->n);
    double bound = sqrt(norm2) / step;
    if (bound < below * CST_E8_LIMIT)
        return (float)bound;
    float room[CST_BLOCK];
    return (float)(s->tools->norm->stats(cst_vector_rotated(s->vector, block, room), b->n).max / step);
}

/* Step in the vector's units that gives error d (original domain, units of 2^(2 unit)) with `code`'s relative step. */
static double own_step(const cst_sender *s, uint32_t block, double relative, double d, int unit)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    return cst_scale2(relative * sqrt(d * cst_rotation_energy(b->n)), unit - s->vector->own[block].exponent);
}

static cst_block_desc with_step(const cst_sender *s, uint32_t block, uint8_t code, unsigned class, double step)
{
    return (cst_block_desc){code, (uint8_t) class, cst_step_index(step, s->vector->own[block].exponent)};
}

/* Variance of the rotated block in steps: its model. */
cst_block_desc cst_sender_entropy(const cst_sender *s, uint32_t block, double step)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    double share = (double)b->count / b->n * cst_rotation_energy(b->n);
    unsigned class = cst_model_class(s->vector->own[block].energy * share / (step * step));
    return with_step(s, block, CST_CODE_ENTROPY, class, step);
}

/* Nothing is known of the block: as if there were no common mean. If there is one, the owner will ask for a refinement. */
static cst_block_desc fresh_code(const cst_sender *s, uint32_t block)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    double d = cst_error_up(&s->shared->options.rules, s->shared->beta, s->vector->own[block].energy);
    return cst_sender_entropy(s, block, sqrt(12 * d * cst_rotation_energy(b->n)));
}

static double expected_sigma2(const cst_block_plan *p, const cst_plan_rules *rules, double own, double gain)
{
    double v = 0;
    for (int i = 1; i < rules->ranks; i++)
        v += (p->s2 + p->r2 * p->s2 / (i * p->r2 + p->s2)) / (rules->ranks - 1);
    return (p->s2 > 0 ? v * own : 0) + p->up.error * gain;
}

static cst_block_desc modulo_code(const cst_sender *s, uint32_t block, int position, double gain)
{
    const cst_block_plan *p = &s->shared->plan[block];
    const cst_group *g = &s->shared->groups[s->shared->group_of[block]];
    const cst_plan_rules *rules = &s->shared->options.rules;
    const cst_block *b = &s->shared->layout->blocks[block];
    double moved = s->shared->tensors[b->span]->past.gain;
    gain = moved > 0 ? moved : gain;
    double d1 = cst_group_error(g) * gain;
    double step = own_step(s, block, p->up.step, d1, g->unit) * cst_position_factor(rules, p->s2, p->r2, position);
    double share = (double)b->count / b->n;
    double own = own_energy(s, block, g->unit) * share / (cst_group_error(g) * (p->s2 + p->r2));
    own = moved > 0 ? moved : own;
    double sigma = sqrt(expected_sigma2(p, rules, own, gain));
    double planned = cst_plan_sigma(p->up.code, p->up.class, p->up.step * sqrt(gain));
    unsigned class = p->up.class;
    /* Pooled statistics know nothing of single blocks: then loud ones get more and quiet ones less, which fits on the whole. */
    bool pooled = s->shared->options.fresh;
    if (sigma > tolerance * planned || (pooled && sigma < planned / tolerance))
        class = cst_class_for((float)(cst_classes[class].q * sigma / planned));
    return class ? with_step(s, block, p->up.code, class, step) : cst_sender_entropy(s, block, step);
}

static cst_block_desc wide_code(const cst_sender *s, uint32_t block, double gain)
{
    const cst_block_plan *p = &s->shared->plan[block];
    const cst_group *g = &s->shared->groups[s->shared->group_of[block]];
    double step = own_step(s, block, sqrt(12.0), cst_group_error(g) * gain, g->unit);
    unsigned class = p->up.class;
    if (p->kind != CST_PLAN_WIDE)
        class = (unsigned)(cst_log2(12 * sqrt(2 * p->s2 + 1) / sqrt(12.0)) + 1.5);
    const unsigned most = 62;
    return with_step(s, block, CST_CODE_WIDE, class < 1 ? 1 : class > most ? most : class, step);
}

cst_block_desc cst_sender_choose(const cst_sender *s, uint32_t block, int owner)
{
    const cst_block_plan *p = &s->shared->plan[block];
    uint8_t kind = s->vector->own[block].kind;
    if (kind == CST_BLOCK_ZERO)
        return (cst_block_desc){CST_CODE_ZERO, 0, 0};
    if (kind == CST_BLOCK_EXACT || p->kind == CST_PLAN_EXACT)
        return (cst_block_desc){CST_CODE_EXACT, 0, 0};
    if (p->kind == CST_PLAN_SAME)
        return (cst_block_desc){CST_CODE_EXACT, CST_CLASS_SAME, 0};
    double gain = s->gain[s->shared->group_of[block]];
    if (p->kind == CST_PLAN_ZERO || gain == 0)
        return fresh_code(s, block);
    if (p->kind == CST_PLAN_WIDE)
        return wide_code(s, block, gain);
    int n = s->shared->options.rules.ranks, position = (s->rank - owner + n) % n;
    const cst_group *g = &s->shared->groups[s->shared->group_of[block]];
    cst_block_desc d =
        p->up.code == CST_CODE_ENTROPY
            ? cst_sender_entropy(s, block, own_step(s, block, p->up.step, cst_group_error(g) * gain, g->unit))
            : modulo_code(s, block, position, gain);
    double step = cst_step_value(d.step, s->vector->own[block].exponent);
    float limit = d.code == CST_CODE_E8 ? CST_E8_LIMIT : CST_Z_LIMIT;
    return largest_in_steps(s, block, step) < below * limit ? d : wide_code(s, block, gain);
}
