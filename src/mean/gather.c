/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/gather_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/correct.h"
#include "codec/portable.h"
#include "kernels/pack/pack_scalar.h"
#include "mean/same.h"

#include <math.h>
#include <stdlib.h>

coset_status cst_gathered_init(cst_gathered *g, int ranks, float *floats, float *shared)
{
    size_t n = (size_t)ranks;
    *g = (cst_gathered){.sum = floats, .memory = shared};
    g->x = calloc(n, sizeof *g->x);
    g->error = calloc(n, sizeof *g->error);
    g->step = calloc(n, sizeof *g->step);
    g->base = calloc(n, sizeof *g->base);
    g->code = calloc(n, 1);
    if (g->x && g->error && g->step && g->base && g->code)
        return COSET_OK;
    cst_gathered_free(g);
    return COSET_ERR_MEMORY;
}

void cst_gathered_free(cst_gathered *g)
{
    free(g->x);
    free(g->error);
    free(g->step);
    free(g->base);
    free(g->code);
    free(g->w);
    *g = (cst_gathered){0};
}

int cst_step_unit(uint32_t step)
{
    const int low = -90, high = 60, digits = 12;
    int e = (int)(step >> 10) - 2048;
    return e >= low && e <= high ? 0 : e + digits;
}

/* One unit for all: large enough for the largest that is not zero, so that what is lost in f32 is nothing beside it. */
static void choose_unit(cst_gathering *t)
{
    const cst_own_block *own = &t->l->vector->own[t->block];
    const int none = -3000;
    int unit = own->kind == CST_BLOCK_USUAL ? own->exponent : none;
    bool usual = own->exponent == 0;
    for (int u = 0; u < t->l->shared->options.rules.ranks; u++) {
        const cst_part *base = u == t->l->rank ? NULL : cst_gather_base(t, u);
        if (!base || base->desc.step == 0)
            continue;
        int e = cst_step_unit(base->desc.step);
        usual &= e == 0;
        e = (int)(base->desc.step >> 10) - 2048 + 12;
        unit = e > unit ? e : unit;
    }
    t->g->unit = usual || unit == none ? 0 : unit;
}

void cst_gather_note(cst_gathering *t, int sender, cst_block_desc d)
{
    double factor = cst_rotation_energy(t->n);
    double step = cst_step_value(d.step, t->g->unit);
    t->g->step[sender] = step;
    t->g->code[sender] = d.code == CST_CODE_E8 ? CST_CODE_E8 : CST_CODE_Z;
    t->g->error[sender] = cst_code_error(t->g->code[sender], step) / factor;
}

/* ---- f32 ---- */

static float reference_scale(const cst_gathering *t)
{
    double a = t->plan->kind == CST_PLAN_CODED ? cst_reference_up(t->plan->s2, t->plan->r2, t->known) : 0;
    return (float)(a / t->known);
}

static bool base_colours(const cst_part *base, int32_t *digits)
{
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, base->desc.class, sizeof classes);
    return base->payload && (cst_unpack_scalar(base->payload, base->n, classes, digits), true);
}

/* A colour of modulus q and `bits` bits above it. */
static cst_checksum decode_with_digits(cst_gathering *t, const cst_heard *h, const cst_part *base,
                                       const cst_lattice_block *geometry, float *out, int32_t *points)
{
    int32_t low[CST_BLOCK];
    uint16_t high[CST_BLOCK];
    uint32_t q = (uint32_t)cst_classes[base->desc.class].q, bits = h->digits->desc.class;
    base_colours(base, low);
    cst_digits_unpack(h->digits->payload, t->n, 1u << bits, high);
    for (uint32_t i = 0; i < t->n; i++)
        high[i] = (uint16_t)((uint32_t)low[i] + q * high[i]);
    return cst_block_kernels(t->l->tools, base->desc.code)
        ->decode_digits(geometry, high, q << bits, t->ref, reference_scale(t), out, points);
}

static bool decode_modulo(cst_gathering *t, int sender, float *out)
{
    const cst_heard *h = &t->heard[sender];
    const cst_part *base = cst_gather_base(t, sender);
    cst_block_id id = cst_gather_block(t, sender, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, base->desc);
    const cst_quantise_kernels *kernels = cst_block_kernels(t->l->tools, base->desc.code);
    int32_t points[CST_BLOCK];
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, base->desc.class, sizeof classes);
    float scale = reference_scale(t);
    cst_checksum got;
    int32_t q = cst_classes[base->desc.class].q;
    if (h->digits) {
        got = decode_with_digits(t, h, base, &geometry, out, points);
        q <<= h->digits->desc.class;
    } else {
        got = kernels->decode(&geometry, base->payload, classes, t->ref, scale, out, points);
    }
    if (cst_checksum_equal(got, base->check))
        return true;
    if (!cst_correct(t->l->tools, &geometry, base->desc.code, q, t->ref, scale, out, got, base->check, points))
        return false;
    t->g->corrected++;
    return cst_checksum_equal(kernels->reconstruct(&geometry, points, out), base->check);
}

static bool decode_integers(cst_gathering *t, int sender, float *out, bool *certain)
{
    cst_heard *h = &t->heard[sender];
    const cst_part *base = cst_gather_base(t, sender);
    int32_t points[CST_BLOCK];
    *certain = h->plain != NULL;
    if (h->plain)
        cst_plain_read(h->plain->payload, t->n, points);
    else if (!cst_parts_points(h->frame, t->l->tools->entropy, h->part, points))
        return false;
    cst_block_id id = cst_gather_block(t, sender, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, base->desc);
    cst_checksum got = cst_block_kernels(t->l->tools, base->desc.code)->reconstruct(&geometry, points, out);
    return cst_checksum_equal(got, base->check);
}

/* Adds the sender's refinement to its vector (f32 or f64), if there is one. CORRUPT: nothing but damage explains a wrong
 * checksum. */
coset_status cst_gather_refine(cst_gathering *t, int sender, float *out, double *wide)
{
    const cst_part *r = t->heard[sender].refine;
    const double least = 0x1p-120; /* what a finer step adds, f32 cannot hold beside the other ranks' values */
    if (!r)
        return COSET_OK;
    cst_gather_note(t, sender, r->desc);
    if (cst_step_value(r->desc.step, t->g->unit) < least)
        return COSET_OK;
    float zero[CST_BLOCK] = {0}, rest[CST_BLOCK];
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, r->desc.class, sizeof classes);
    cst_block_id id = cst_gather_block(t, sender, CST_PHASE_REFINE);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, r->desc);
    cst_checksum got = t->l->tools->z->decode(&geometry, r->payload, classes, zero, 0, rest, NULL);
    for (uint32_t i = 0; i < t->n; i++) {
        if (wide)
            wide[i] += rest[i];
        else
            out[i] += rest[i];
    }
    if (cst_checksum_equal(got, r->check))
        return COSET_OK;
    return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "a refinement of rank %d contradicts its checksum", sender);
}

/* How many more bits of each coordinate to ask for. Four where the tail of the distribution or a growth of the spread was
 * not covered; where the own energy has fallen to less than half of the tracked one, the mean may have gone, and with it
 * what steps are scaled by: then enough for any vector of that energy. */
static unsigned bits_wanted(const cst_gathering *t, const cst_part *base, double step)
{
    const unsigned usual = 4;
    const cst_group *g = &t->l->shared->groups[t->l->shared->group_of[t->block]];
    const cst_own_block *block = &t->l->vector->own[t->block];
    double own = cst_scale2(block->energy, 2 * (block->exponent - t->g->unit));
    double tracked = cst_scale2((t->plan->s2 + t->plan->r2) * cst_group_error(g), 2 * (g->unit - t->g->unit));
    if (own > 0.5 * tracked)
        return usual;
    double range = 10 * sqrt(2 * own * cst_rotation_energy(t->n)) / (step * cst_classes[base->desc.class].q);
    double bits = cst_log2(range) + 1;
    return bits > usual ? (unsigned)bits : usual;
}

/* All digits where more do not fit 16 bits, and where a second question would come too late. */
static void ask_for_more(cst_gathering *t, int sender, const cst_part *base)
{
    const cst_heard *h = &t->heard[sender];
    bool modulo = base->desc.code == CST_CODE_Z || base->desc.code == CST_CODE_E8;
    unsigned bits = modulo ? bits_wanted(t, base, t->g->step[sender]) : 0;
    if (modulo && !h->digits && !t->l->last_asks && bits <= 14 &&
        (uint32_t)cst_classes[base->desc.class].q << bits <= 65536)
        cst_gather_ask(t, sender, CST_ASK_DIGITS, bits);
    else
        cst_gather_ask(t, sender, CST_ASK_PLAIN, 0);
}

coset_status cst_gather_decode(cst_gathering *t, int sender, float *out)
{
    const cst_part *base = cst_gather_base(t, sender);
    const cst_heard *h = &t->heard[sender];
    bool certain = false, good;
    cst_gather_note(t, sender, base->desc);
    t->g->base[sender] = t->g->step[sender];
    switch (base->desc.code) {
    case CST_CODE_ZERO:
        memset(out, 0, t->n * sizeof *out);
        t->g->base[sender] = t->g->step[sender] = t->g->error[sender] = 0;
        return COSET_OK;
    case CST_CODE_Z:
    case CST_CODE_E8:
        good = h->plain ? decode_integers(t, sender, out, &certain) : decode_modulo(t, sender, out);
        break;
    case CST_CODE_ENTROPY: good = decode_integers(t, sender, out, &certain); break;
    default: /* ABSENT */ cst_gather_ask(t, sender, CST_ASK_RESEND, 0); return COSET_OK;
    }
    if (!good && certain)
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "whole integers of rank %d contradict their checksum",
                        sender);
    if (!good)
        ask_for_more(t, sender, base);
    return COSET_OK;
}

/* Three passes: who has been decoded before, in that order; the others by position; those of them again who lack digits, since
 * by then more vectors are averaged, so the average is nearer. -1: nobody's turn, -2: the last is over. */
int cst_gather_turn(cst_gathering *t, int turn)
{
    int ranks = t->l->shared->options.rules.ranks, others = ranks - 1, pass = turn / others;
    if (pass > 2)
        return -2;
    int sender = (t->l->rank + 1 + turn % others) % ranks;
    if (pass == 0) {
        bool over = t->decoded < turn; /* no rank has had the order before this one */
        for (sender = over ? ranks : 0; sender < ranks && t->heard[sender].order != turn + 1;)
            sender++;
        if (sender == ranks)
            return -1;
    } else if (t->heard[sender].order || (pass == 2 && (t->asks[sender].ask != CST_ASK_DIGITS || t->known == 1))) {
        return -1;
    }
    t->asks[sender].ask = 0;
    return sender;
}

/* The own vector in the block's unit, perhaps in `room`. */
const float *cst_gather_own(const cst_gathering *t, float *room)
{
    const cst_vector *v = t->l->vector;
    const float *own = cst_vector_rotated(v, t->block, room);
    float scale = (float)cst_vector_scale(v, t->block, t->g->unit);
    if (scale == 1)
        return own;
    for (uint32_t i = 0; i < t->n; i++)
        room[i] = own[i] * scale;
    return room;
}

/* The usual sender in one pass: decoded, added, measured. False if that is not enough for this one. */
static bool add_at_once(cst_gathering *t, int sender, cst_summed *to)
{
    const cst_part *base = cst_gather_base(t, sender);
    const cst_heard *h = &t->heard[sender];
    if (h->digits || h->plain)
        return false;
    const cst_quantise_kernels *kernels = cst_block_kernels(t->l->tools, base->desc.code);
    cst_block_id id = cst_gather_block(t, sender, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, base->desc);
    cst_checksum got;
    if (base->desc.code == CST_CODE_ENTROPY) {
        _Alignas(64) int32_t points[CST_BLOCK];
        if (!cst_parts_points(h->frame, t->l->tools->entropy, h->part, points))
            return false;
        got = kernels->reconstruct_add(&geometry, points, t->ref, to);
    } else if (base->desc.code == CST_CODE_Z || base->desc.code == CST_CODE_E8) {
        uint8_t classes[CST_BLOCK_UNITS];
        memset(classes, base->desc.class, sizeof classes);
        got = kernels->decode_add(&geometry, base->payload, classes, t->ref, reference_scale(t), to, NULL);
    } else {
        return false;
    }
    cst_gather_note(t, sender, base->desc);
    t->g->base[sender] = t->g->step[sender];
    return cst_checksum_equal(got, base->check);
}

/* The same for a vector that was decoded in some other way. */
static void add_vector(const cst_gathering *t, cst_summed *to)
{
    const cst_norm_kernels *norm = t->l->tools->norm;
    float distance[CST_BLOCK];
    for (uint32_t i = 0; i < t->n; i++) {
        distance[i] = to->value[i] - t->ref[i] * to->share;
        to->sum[i] = t->ref[i] + to->value[i];
    }
    to->distance2 = norm->dot(distance, distance, t->n);
    to->energy = norm->dot(to->sum, to->sum, t->n);
}

/* Sums go to and fro between two places, since a decode that fails must leave its reference as it was: between the
 * block's own, where the last one ends, and one that all blocks share. */
typedef struct {
    float *place[2];
    int at; /* where the sum is */
} sums;

static sums sums_begin(cst_gathering *t)
{
    sums s = {{t->g->sum, t->g->memory}, (t->l->shared->options.rules.ranks - 1) % 2};
    t->ref = cst_gather_own(t, s.place[s.at]);
    t->known = 1;
    t->g->spread = 0;
    return s;
}

static cst_summed sums_next(const cst_gathering *t, const sums *s, float *value)
{
    return (cst_summed){.value = value, .sum = s->place[1 - s->at], .share = 1.0f / (float)t->known};
}

static void sums_take(cst_gathering *t, sums *s, const cst_summed *to)
{
    /* from k vectors to k + 1 (B. P. Welford 1962): no difference of large energies */
    t->g->spread += to->distance2 * t->known / (t->known + 1.0);
    t->g->sum_energy = to->energy;
    s->at = 1 - s->at;
    t->ref = s->place[s->at];
    t->known++;
}

static bool any_refined(const cst_gathering *t)
{
    for (int u = 0; u < t->l->shared->options.rules.ranks; u++)
        if (t->heard[u].refine)
            return true;
    return false;
}

/* Only when all are decoded: codes that could be decoded against coarse vectors might not against refined ones. */
static coset_status refine_floats(cst_gathering *t)
{
    int rank = t->l->rank, ranks = t->l->shared->options.rules.ranks;
    sums s = sums_begin(t);
    for (int position = 1; position < ranks; position++) {
        int sender = (rank + position) % ranks;
        coset_status status = cst_gather_refine(t, sender, t->g->x[sender], NULL);
        if (status)
            return status;
        cst_summed to = sums_next(t, &s, t->g->x[sender]);
        add_vector(t, &to);
        sums_take(t, &s, &to);
    }
    return COSET_OK;
}

static coset_status gather_floats(cst_gathering *t)
{
    cst_gathered *g = t->g;
    int rank = t->l->rank, ranks = t->l->shared->options.rules.ranks;
    float *spare = g->memory + CST_BLOCK;
    bool refined = any_refined(t);
    g->kept |= refined;
    sums s = sums_begin(t);
    for (int turn = 0, sender; (sender = cst_gather_turn(t, turn)) > -2; turn++) {
        if (sender < 0)
            continue;
        int position = (sender - rank + ranks) % ranks;
        g->x[sender] = g->kept ? g->sum + (size_t)position * CST_BLOCK : NULL;
        cst_summed to = sums_next(t, &s, g->x[sender]);
        bool at_once = add_at_once(t, sender, &to);
        if (!at_once) {
            to.value = g->kept ? g->x[sender] : spare;
            coset_status status = cst_gather_decode(t, sender, to.value);
            if (status)
                return status;
        }
        cst_gather_turn_over(t, sender);
        if (t->asks[sender].ask)
            continue;
        if (!at_once)
            add_vector(t, &to);
        sums_take(t, &s, &to);
    }
    return refined && t->known == ranks ? refine_floats(t) : COSET_OK;
}

coset_status cst_gather(const cst_listener *l, uint32_t block, uint32_t first, bool keep, cst_gathered *g,
                        cst_request *asks, coset_error *why)
{
    int ranks = l->shared->options.rules.ranks;
    const cst_block *b = &l->shared->layout->blocks[block];
    cst_gathering t = {
        .l = l,
        .block = block,
        .n = b->n,
        .count = b->count,
        .plan = &l->shared->plan[block],
        .heard = l->heard + (size_t)(block - first) * (size_t)ranks,
        .g = g,
        .asks = asks,
        .why = why,
        .ref = g->sum,
    };
    g->block = block;
    g->complete = true;
    g->kept = keep;
    g->same = false;
    g->corrected = 0;
    g->exact = l->vector->own[block].kind == CST_BLOCK_EXACT || t.plan->kind == CST_PLAN_EXACT;
    g->wide = t.plan->kind == CST_PLAN_WIDE;
    for (int u = 0; u < ranks; u++) {
        asks[u].ask = 0;
        g->error[u] = g->step[u] = g->base[u] = 0;
        if (u == l->rank)
            continue;
        g->exact |= cst_gather_base(&t, u)->desc.code == CST_CODE_EXACT;
        g->wide |= cst_gather_base(&t, u)->desc.code == CST_CODE_WIDE;
    }
    choose_unit(&t);
    coset_status status = g->exact ? cst_gather_exact(&t) : g->wide ? cst_gather_wide(&t) : gather_floats(&t);
    g->complete = true;
    for (int u = 0; u < ranks; u++)
        g->complete &= !asks[u].ask;
    return status;
}

bool cst_gather_own_points(const cst_listener *l, uint32_t first, const cst_gathered *g)
{
    int ranks = l->shared->options.rules.ranks;
    const cst_block *b = &l->shared->layout->blocks[g->block];
    const cst_heard *heard = l->heard + (size_t)(g->block - first) * (size_t)ranks;
    for (int u = 0; u < ranks; u++) {
        if (u == l->rank)
            continue;
        cst_block_id id = {l->roots[b->span], b->index, (uint32_t)u, CST_PHASE_UP, b->n, g->unit};
        if (!cst_same_points(l->vector, g->block, &id, &heard[u].frame->parts[heard[u].part]))
            return false;
    }
    return true;
}
