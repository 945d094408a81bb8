/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/shared.h"

#include "codec/parts.h"
#include "codec/portable.h"

#include <math.h>
#include <stdlib.h>

/* Above this R^2 over D1 (R/s about 2^13) f32 rotations would cost accuracy: such blocks go through f64. */
static const double wide_energy = 0x1p31;

/* ---- groups ---- */

static int unit_of(uint16_t index)
{
    int e = (int)index - 32768;
    return e >= 0 ? e / 32 : -((31 - e) / 32);
}

static cst_block_stat stat_of(const cst_shared *s, uint32_t block)
{
    const cst_block *b = &s->layout->blocks[block];
    return s->tensors[b->span]->stat[b->index];
}

/* Mean energies of a group, from the tracked statistics of its blocks. Blocks of zeros neither make errors nor count. */
static void measure_group(const cst_shared *s, cst_group *g)
{
    uint16_t top = 0;
    for (uint32_t b = g->first; b < g->end; b++) {
        cst_block_stat t = stat_of(s, b);
        top = t.s2 > top ? t.s2 : top;
        top = t.r2 > top ? t.r2 : top;
    }
    g->unit = unit_of(top);
    double coords = 0, s2 = 0, r2 = 0;
    for (uint32_t b = g->first; b < g->end; b++) {
        cst_block_stat t = stat_of(s, b);
        double count = t.s2 || t.r2 ? s->layout->blocks[b].count : 0;
        coords += count;
        s2 += count * cst_energy_value(t.s2, g->unit);
        r2 += count * cst_energy_value(t.r2, g->unit);
    }
    g->s2 = coords > 0 ? s2 / coords : 0;
    g->r2 = coords > 0 ? r2 / coords : 0;
}

static const double octave = 64; /* of margins */

static const cst_margins *margins_of(const cst_shared *s, uint32_t block)
{
    return &s->tensors[s->layout->blocks[block].span]->margins;
}

static void set_error(const cst_shared *s, cst_group *g)
{
    const cst_plan_options *o = &s->options;
    const cst_margins *margins = margins_of(s, g->first);
    double d1 = cst_error_up(&o->rules, s->beta, g->s2) * cst_exp2(-margins->share / octave);
    double least = cst_code_error(CST_CODE_Z, o->floor) * (g->s2 + g->r2);
    g->d1 = cst_energy_index(d1 > least ? d1 : least, g->unit);
}

double cst_group_error(const cst_group *g)
{
    return cst_energy_value(g->d1, g->unit);
}

/* Runs of up to 16 blocks of one tensor; once owners are known, of one owner. */
static void make_groups(cst_shared *s, bool by_owner)
{
    const cst_block *blocks = s->layout->blocks;
    s->ngroups = 0;
    for (uint32_t b = 0, owner = 0; b < s->layout->nblocks; b++) {
        bool starts =
            b == 0 || blocks[b].span != blocks[b - 1].span || b - s->groups[s->ngroups - 1].first == CST_GROUP;
        for (; by_owner && s->first[owner] <= b; owner++)
            starts |= s->first[owner] == b;
        if (starts)
            s->groups[s->ngroups++] = (cst_group){.first = b};
        s->groups[s->ngroups - 1].end = b + 1;
        s->group_of[b] = s->ngroups - 1;
    }
    for (uint32_t g = 0; g < s->ngroups; g++)
        measure_group(s, &s->groups[g]);
}

/* ---- plans of blocks ---- */

/* Plans by what they depend on: s^2 and R^2 relative to D1, in sixteenths of an octave, the share of real coordinates, and
 * the tensor's margins. */
enum { CACHE = 1024 };

typedef struct {
    int32_t s2, r2;
    uint32_t n, count;
    cst_margins margins;
    bool used;
    cst_block_plan plan;
} cached_plan;

static uint32_t bytes_of_bits(double bits, uint32_t n)
{
    return (uint32_t)(bits * n / 8 + 1);
}

static cst_block_plan plan_block(const cst_plan_options *o, double s2, double r2, const cst_block *b,
                                 cst_margins margins)
{
    double n = o->rules.ranks, part = cst_exp2(-margins.share / octave), share = (double)b->count / b->n;
    cst_block_plan p = {.s2 = s2 * share, .r2 = r2 * share, .kind = CST_PLAN_CODED};
    if (p.r2 > wide_energy) {
        p.kind = CST_PLAN_WIDE;
        p.up = (cst_plan){CST_CODE_WIDE, 0, sqrt(12.0), 1, 0};
        p.down = p.up;
        return p;
    }
    p.up = cst_plan_up(&o->rules, p.s2, p.r2, 1, part, cst_exp2(margins.reach / octave));
    /* Where the spread may fall, phase 2 may be left less: frames have room for some of that. */
    double falls = margins.share > CST_SHARE_OF_OTHERS ? (margins.share - CST_SHARE_OF_OTHERS) / octave : 0;
    double phase = (n - 1) / (n * n), left = (2 / part - p.up.error) * phase * cst_exp2(-0.25 * falls);
    double d2 = fmax(left, 0.4 / part * phase);
    p.down = cst_plan_down_ahead(&o->rules, p.s2, p.r2, &p.up, d2);
    p.up_bytes = p.up.code == CST_CODE_ENTROPY
                     ? bytes_of_bits(p.up.bits, b->n)
                     : (uint32_t)cst_block_bytes((cst_block_desc){p.up.code, p.up.class, 0}, b->n, b->count, 0);
    p.down_bytes = bytes_of_bits(p.down.bits, b->n);
    return p;
}

/* f64 blocks: residuals of variance v take log2 of 12 of their deviations in steps, in whole bits. */
static void plan_wide(const cst_plan_options *o, cst_block_plan *p, const cst_block *b)
{
    double n = o->rules.ranks;
    double up = sqrt(12 * (2 * p->s2 + 1)), down = sqrt(12 * n * (p->s2 + 2));
    p->up.class = (uint8_t)(cst_log2(up) + 1.5);
    p->down.class = (uint8_t)(cst_log2(down) + 1.2);
    p->down.error = (n - 1) / (n * n);
    p->down.step = sqrt(12 * p->down.error);
    p->up_bytes = (uint32_t)cst_block_bytes((cst_block_desc){CST_CODE_WIDE, p->up.class, 0}, b->n, b->count, 0);
    p->down_bytes = (uint32_t)cst_block_bytes((cst_block_desc){CST_CODE_WIDE, p->down.class, 0}, b->n, b->count, 0);
}

static cst_block_plan plan_cached(const cst_plan_options *o, cached_plan *cache, int32_t s2, int32_t r2,
                                  const cst_block *b, cst_margins margins)
{
    uint32_t h = ((uint32_t)s2 * 0x9E3779B1u ^ (uint32_t)r2 * 0x85EBCA77u ^ b->count) * 0xC2B2AE3Du;
    h += (margins.reach * 61u + margins.share) << 22;
    cached_plan *c = &cache[h >> 22 & (CACHE - 1)];
    if (c->used && c->s2 == s2 && c->r2 == r2 && c->n == b->n && c->count == b->count &&
        c->margins.reach == margins.reach && c->margins.share == margins.share)
        return c->plan;
    const int32_t none = INT32_MIN;
    double value_s = s2 == none ? 0 : cst_exp2(s2 / 16.0), value_r = r2 == none ? 0 : cst_exp2(r2 / 16.0);
    *c = (cached_plan){s2, r2, b->n, b->count, margins, true, plan_block(o, value_s, value_r, b, margins)};
    if (c->plan.kind == CST_PLAN_WIDE)
        plan_wide(o, &c->plan, b);
    return c->plan;
}

static cst_block_plan plan_of(const cst_shared *s, cached_plan *cache, uint32_t block)
{
    const cst_plan_options *o = &s->options;
    const cst_block *b = &s->layout->blocks[block];
    const cst_tensor *t = s->tensors[b->span];
    if (o->exact || !t->known)
        return (cst_block_plan){.kind = CST_PLAN_EXACT,
                                .up_bytes = (uint32_t)(b->count * o->element[0]),
                                .down_bytes = (uint32_t)(b->count * o->element[1])};
    cst_block_stat stat = t->stat[b->index];
    if (stat.s2 == 0 && stat.r2 == 0)
        return (cst_block_plan){.kind = CST_PLAN_ZERO};
    if (stat.s2 == 0)
        return (cst_block_plan){.kind = CST_PLAN_SAME};
    int32_t d1 = s->groups[s->group_of[block]].d1;
    return plan_cached(o, cache, stat.s2 - d1, stat.r2 ? stat.r2 - d1 : INT32_MIN, b, *margins_of(s, block));
}

static void plan_all(cst_shared *s, cached_plan *cache)
{
    for (uint32_t g = 0; g < s->ngroups; g++)
        set_error(s, &s->groups[g]);
    for (uint32_t b = 0; b < s->layout->nblocks; b++)
        s->plan[b] = plan_of(s, cache, b);
}

/* ---- frames ---- */

/* What frames may exceed the sum of the expected payloads by: a share of the bits, and deviations, in bits, that grow with
 * the root of the number of coordinates. Senders and owners trim their steps to what there is (rate control), so that
 * little is left to chance. */
static size_t slack(double coords, double per_coord, double deviations)
{
    return (size_t)((per_coord * coords + deviations * sqrt(coords)) / 8) + 16;
}

typedef struct {
    double up, down;                              /* bytes expected */
    double up_entropy, down_entropy, down_modulo; /* coordinates */
    uint32_t blocks, up_streamed, down_streamed;
} frame_load;

static frame_load load_of(const cst_shared *s, int owner)
{
    frame_load f = {0};
    for (uint32_t b = s->first[owner]; b < s->first[owner + 1]; b++, f.blocks++) {
        const cst_block_plan *p = &s->plan[b];
        f.up += p->up_bytes;
        bool may_ask = p->kind == CST_PLAN_ZERO || p->kind == CST_PLAN_SAME;
        f.down += p->down_bytes + (may_ask ? CST_REQUEST_BYTES : 0);
        double n = s->layout->blocks[b].n;
        if (p->kind == CST_PLAN_CODED) {
            f.up_streamed += p->up.code == CST_CODE_ENTROPY;
            f.down_streamed += p->down.code == CST_CODE_ENTROPY;
            f.up_entropy += p->up.code == CST_CODE_ENTROPY ? n : 0;
            *(p->down.code == CST_CODE_ENTROPY ? &f.down_entropy : &f.down_modulo) += n;
        }
    }
    return f;
}

double cst_stream_overhead(uint32_t blocks)
{
    const uint32_t length = 4, last_words = 12;
    return (blocks + CST_STREAM_BLOCKS - 1) / CST_STREAM_BLOCKS * (CST_ENTROPY_STATES_BYTES + length + last_words);
}

static void size_frames(cst_shared *s)
{
    s->up_bytes = s->down_bytes = 0;
    for (int j = 0; j < s->options.rules.ranks; j++) {
        frame_load f = load_of(s, j);
        size_t up = CST_FRAME_HEADER + (4 + CST_CHECK_BYTES) * (size_t)f.blocks + (size_t)f.up;
        size_t down = CST_FRAME_HEADER + (8 + CST_CHECK_BYTES) * (size_t)f.blocks + (size_t)f.down + 16;
        if (f.up_entropy > 0)
            up += (size_t)cst_stream_overhead(f.up_streamed) + slack(f.up_entropy, 0.003, 3);
        /* The owner's step follows the spread as measured; n - 1 differences per coordinate say how well it was known. */
        double coded = f.down_entropy + f.down_modulo, measured = 4 / sqrt(s->options.rules.ranks - 1.0);
        double drift = !s->options.fresh ? 0.004 : s->options.rules.ranks < 16 ? 0.03 : 0.015;
        if (coded > 0)
            down += (size_t)cst_stream_overhead(f.down_streamed) + slack(coded, drift, measured);
        if (f.down_entropy > 0)
            down += slack(f.down_entropy, 0, 3);
        if (f.down_modulo > 0)
            down += slack(f.down_modulo, 0.006, 5);
        s->up_bytes = up > s->up_bytes ? up : s->up_bytes;
        s->down_bytes = down > s->down_bytes ? down : s->down_bytes;
    }
}

/* Owners by what their blocks will take, then groups within owners. */
static void deal(cst_shared *s, cached_plan *cache, uint32_t *weights)
{
    make_groups(s, false);
    plan_all(s, cache);
    for (uint32_t b = 0; b < s->layout->nblocks; b++)
        weights[b] = 48 + s->plan[b].up_bytes + s->plan[b].down_bytes;
    cst_layout_deal(weights, s->layout->nblocks, s->options.rules.ranks, s->first);
    make_groups(s, true);
    plan_all(s, cache);
}

/* ---- fixed bits ---- */

/* Bits per coordinate over both phases, expected of the codes alone. */
static double code_bits(const cst_shared *s)
{
    double bytes = 0;
    for (int j = 0; j < s->options.rules.ranks; j++) {
        frame_load f = load_of(s, j);
        bytes += f.up + f.down;
    }
    return 8 * bytes / (double)s->layout->coords;
}

/* Bits fall by one over both phases when the budget doubles, so a few steps of Newton's method find the budget whose frames
 * have the size asked for. In small calls headers could take all of that: codes keep three quarters of it at least. */
static void fit_bits(cst_shared *s, cached_plan *cache, uint32_t *weights)
{
    for (int i = 0; i < 6; i++) {
        deal(s, cache, weights);
        size_frames(s);
        double n = s->options.rules.ranks, coords = (double)s->layout->coords;
        double bits = 8 * n * (double)(s->up_bytes + s->down_bytes) / coords;
        double too_many = fmin(bits - s->options.bits, code_bits(s) - 0.75 * s->options.bits);
        if (too_many <= 0.004 && too_many > -0.01)
            return;
        s->beta *= cst_exp2(too_many > 4 ? 4 : too_many < -4 ? -4 : too_many + (i > 2 ? 0.004 : 0));
        if (s->beta < 1e-9 || s->beta > 1e6)
            break;
    }
}

coset_status cst_shared_plan(cst_shared *s, const cst_plan_options *options, const cst_layout *layout,
                             cst_tensor *const *tensors)
{
    *s = (cst_shared){.options = *options, .layout = layout, .tensors = tensors, .beta = options->beta};
    size_t blocks = layout->nblocks ? layout->nblocks : 1;
    s->groups = calloc(blocks, sizeof *s->groups);
    s->group_of = calloc(blocks, sizeof *s->group_of);
    s->plan = calloc(blocks, sizeof *s->plan);
    s->first = calloc((size_t)options->rules.ranks + 1, sizeof *s->first);
    uint32_t *weights = calloc(blocks, sizeof *weights);
    cached_plan *cache = calloc(CACHE, sizeof *cache);
    bool enough = s->groups && s->group_of && s->plan && s->first && weights && cache;
    if (enough) {
        if (options->bits > 0)
            fit_bits(s, cache, weights);
        deal(s, cache, weights);
        size_frames(s);
    }
    free(weights);
    free(cache);
    if (!enough)
        cst_shared_free(s);
    return enough ? COSET_OK : COSET_ERR_MEMORY;
}

void cst_shared_free(cst_shared *s)
{
    free(s->groups);
    free(s->group_of);
    free(s->plan);
    free(s->first);
    *s = (cst_shared){0};
}
