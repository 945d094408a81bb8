/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/gather.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/correct.h"
#include "codec/portable.h"
#include "codec/wide.h"
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

typedef struct {
    const cst_listener *l;
    uint32_t block, n, count;
    const cst_block_plan *plan;
    cst_heard *heard; /* [sender] */
    cst_gathered *g;
    cst_request *asks;
    coset_error *why;
    int known;        /* vectors in *ref */
    const float *ref; /* their sum: the own vector, then g->sum */
} gathering;

static void ask(gathering *t, int sender, cst_ask what, unsigned arg)
{
    t->asks[sender] = (cst_request){t->block, (uint16_t)sender, (uint8_t)what, (uint8_t)arg};
}

static const cst_part *base_of(const gathering *t, int sender)
{
    return &t->heard[sender].frame->parts[t->heard[sender].part];
}

static cst_block_id block_of(const gathering *t, int sender, uint32_t phase)
{
    const cst_block *b = &t->l->shared->layout->blocks[t->block];
    return (cst_block_id){t->l->roots[b->span], b->index, (uint32_t)sender, phase, b->n, t->g->unit};
}

/* One unit for all: large enough for the largest, so that what is lost in f32 is nothing beside it. */
static void choose_unit(gathering *t)
{
    const cst_block *b = &t->l->shared->layout->blocks[t->block];
    int own = t->l->vector->exponents[b->span], unit = own;
    bool usual = own == 0;
    for (int u = 0; u < t->l->shared->options.rules.ranks; u++) {
        const cst_part *base = u == t->l->rank ? NULL : base_of(t, u);
        if (!base || base->desc.step == 0)
            continue;
        int e = cst_step_unit(base->desc.step);
        usual &= e == 0;
        e = (int)(base->desc.step >> 10) - 2048 + 12;
        unit = e > unit ? e : unit;
    }
    t->g->unit = usual ? 0 : unit;
}

static void note(gathering *t, int sender, cst_block_desc d)
{
    double factor = cst_rotation_energy(t->n);
    double step = cst_step_value(d.step, t->g->unit);
    t->g->step[sender] = step;
    t->g->code[sender] = d.code == CST_CODE_E8 ? CST_CODE_E8 : CST_CODE_Z;
    t->g->error[sender] = cst_code_error(t->g->code[sender], step) / factor;
}

/* ---- f32 ---- */

static float reference_scale(const gathering *t)
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
static cst_checksum decode_with_digits(gathering *t, const cst_heard *h, const cst_part *base,
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

static bool decode_modulo(gathering *t, int sender, float *out)
{
    const cst_heard *h = &t->heard[sender];
    const cst_part *base = base_of(t, sender);
    cst_block_id id = block_of(t, sender, CST_PHASE_UP);
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

static bool decode_integers(gathering *t, int sender, float *out, bool *certain)
{
    cst_heard *h = &t->heard[sender];
    const cst_part *base = base_of(t, sender);
    int32_t points[CST_BLOCK];
    *certain = h->plain != NULL;
    if (h->plain)
        cst_plain_read(h->plain->payload, t->n, points);
    else if (!cst_parts_points(h->frame, t->l->tools->entropy, h->part, points))
        return false;
    cst_block_id id = block_of(t, sender, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, base->desc);
    cst_checksum got = cst_block_kernels(t->l->tools, base->desc.code)->reconstruct(&geometry, points, out);
    return cst_checksum_equal(got, base->check);
}

/* Adds the refinement to out (f32 or f64). False: its checksum is wrong, which nothing explains but damage. */
static bool add_refinement(gathering *t, int sender, float *out, double *wide)
{
    const cst_part *r = t->heard[sender].refine;
    float zero[CST_BLOCK] = {0}, rest[CST_BLOCK];
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, r->desc.class, sizeof classes);
    cst_block_id id = block_of(t, sender, CST_PHASE_REFINE);
    cst_lattice_block geometry = cst_block_geometry(t->l->tools, &id, r->desc);
    cst_checksum got = t->l->tools->z->decode(&geometry, r->payload, classes, zero, 0, rest, NULL);
    for (uint32_t i = 0; i < t->n; i++) {
        if (wide)
            wide[i] += rest[i];
        else
            out[i] += rest[i];
    }
    note(t, sender, r->desc);
    return cst_checksum_equal(got, r->check);
}

/* How many more bits of each coordinate to ask for. Four where the tail of the distribution or a growth of the spread was
 * not covered; where the own energy has fallen to less than half of the tracked one, the mean may have gone, and with it
 * what steps are scaled by: then enough for any vector of that energy. */
static unsigned bits_wanted(const gathering *t, const cst_part *base, double step)
{
    const unsigned usual = 4;
    const cst_group *g = &t->l->shared->groups[t->l->shared->group_of[t->block]];
    const cst_block *b = &t->l->shared->layout->blocks[t->block];
    int own_unit = t->l->vector->exponents[b->span];
    double own = cst_scale2(t->l->vector->own[t->block].energy, 2 * (own_unit - t->g->unit));
    double tracked = cst_scale2((t->plan->s2 + t->plan->r2) * cst_group_error(g), 2 * (g->unit - t->g->unit));
    if (own > 0.5 * tracked)
        return usual;
    double range = 10 * sqrt(2 * own * cst_rotation_energy(t->n)) / (step * cst_classes[base->desc.class].q);
    double bits = cst_log2(range) + 1;
    return bits > usual ? (unsigned)bits : usual;
}

/* All digits where more do not fit 16 bits. */
static void ask_for_more(gathering *t, int sender, const cst_part *base)
{
    const cst_heard *h = &t->heard[sender];
    bool modulo = base->desc.code == CST_CODE_Z || base->desc.code == CST_CODE_E8;
    unsigned bits = modulo ? bits_wanted(t, base, t->g->step[sender]) : 0;
    if (modulo && !h->digits && bits <= 14 && (uint32_t)cst_classes[base->desc.class].q << bits <= 65536)
        ask(t, sender, CST_ASK_DIGITS, bits);
    else
        ask(t, sender, CST_ASK_PLAIN, 0);
}

static coset_status decode_sender(gathering *t, int sender, float *out)
{
    const cst_part *base = base_of(t, sender);
    const cst_heard *h = &t->heard[sender];
    bool certain = false, good;
    note(t, sender, base->desc);
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
    default: /* ABSENT */ ask(t, sender, CST_ASK_RESEND, 0); return COSET_OK;
    }
    if (good && h->refine && !add_refinement(t, sender, out, NULL))
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "a refinement of rank %d contradicts its checksum", sender);
    if (!good && certain)
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "whole integers of rank %d contradict their checksum",
                        sender);
    if (!good)
        ask_for_more(t, sender, base);
    return COSET_OK;
}

/* Three passes over the positions: who is not late; those of them again who could not be decoded, since by then more vectors
 * are averaged, so the average is nearer; who is late. -1: nobody's turn, -2: the last is over. */
static int sender_of_turn(gathering *t, int turn)
{
    int ranks = t->l->shared->options.rules.ranks, others = ranks - 1, pass = turn / others;
    int sender = (t->l->rank + 1 + turn % others) % ranks;
    if (pass > 2)
        return -2;
    if (t->heard[sender].late != (pass == 2) || (pass == 1 && (t->asks[sender].ask != CST_ASK_DIGITS || t->known == 1)))
        return -1;
    t->asks[sender].ask = 0;
    return sender;
}

/* The own vector in the block's unit, perhaps in `room`. */
static const float *own_vector(const gathering *t, float *room)
{
    const cst_vector *v = t->l->vector;
    int exponent = v->exponents[t->l->shared->layout->blocks[t->block].span];
    const float *own = cst_vector_rotated(v, t->block, room);
    if (exponent == t->g->unit)
        return own;
    float scale = (float)cst_scale2(1, exponent - t->g->unit);
    for (uint32_t i = 0; i < t->n; i++)
        room[i] = own[i] * scale;
    return room;
}

/* The usual sender in one pass: decoded, added, measured. False if that is not enough for this one. */
static bool add_at_once(gathering *t, int sender, cst_summed *to)
{
    const cst_part *base = base_of(t, sender);
    const cst_heard *h = &t->heard[sender];
    if (h->digits || h->plain || h->refine)
        return false;
    const cst_quantise_kernels *kernels = cst_block_kernels(t->l->tools, base->desc.code);
    cst_block_id id = block_of(t, sender, CST_PHASE_UP);
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
    note(t, sender, base->desc);
    t->g->base[sender] = t->g->step[sender];
    return cst_checksum_equal(got, base->check);
}

/* The same for a vector that was decoded in some other way. */
static void add_vector(const gathering *t, cst_summed *to)
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
static coset_status gather_floats(gathering *t)
{
    cst_gathered *g = t->g;
    int rank = t->l->rank, ranks = t->l->shared->options.rules.ranks;
    float *place[2] = {g->sum, g->memory}, *spare = g->memory + CST_BLOCK;
    int at = (ranks - 1) % 2;
    t->ref = own_vector(t, place[at]);
    t->known = 1;
    g->spread = 0;
    for (int turn = 0, sender; (sender = sender_of_turn(t, turn)) > -2; turn++) {
        if (sender < 0)
            continue;
        int position = (sender - rank + ranks) % ranks;
        g->x[sender] = g->kept ? g->sum + (size_t)position * CST_BLOCK : NULL;
        cst_summed to = {.value = g->x[sender], .sum = place[1 - at], .share = 1.0f / (float)t->known};
        if (!add_at_once(t, sender, &to)) {
            to.value = g->kept ? g->x[sender] : spare;
            coset_status status = decode_sender(t, sender, to.value);
            if (status)
                return status;
            if (t->asks[sender].ask)
                continue;
            add_vector(t, &to);
        }
        /* from k vectors to k + 1 (B. P. Welford 1962): no difference of large energies */
        g->spread += to.distance2 * t->known / (t->known + 1.0);
        g->sum_energy = to.energy;
        at = 1 - at;
        t->ref = place[at];
        t->known++;
    }
    return COSET_OK;
}

/* ---- f64 ---- */

static bool room_for_doubles(gathering *t)
{
    if (!t->g->w)
        t->g->w = malloc((size_t)t->l->shared->options.rules.ranks * CST_BLOCK * sizeof *t->g->w);
    return t->g->w != NULL;
}

/* A sender among others that are wide: its own code may be any. */
static coset_status decode_wide(gathering *t, int sender, const double *sum, double *out)
{
    const cst_part *base = base_of(t, sender);
    const cst_heard *h = &t->heard[sender];
    if (base->desc.code != CST_CODE_WIDE) {
        /* sum as f32 is reference enough for a code that f32 could make */
        float narrow[CST_BLOCK];
        for (uint32_t i = 0; i < t->n; i++)
            t->g->sum[i] = (float)sum[i];
        coset_status status = decode_sender(t, sender, narrow);
        for (uint32_t i = 0; i < t->n; i++)
            out[i] = narrow[i];
        return status;
    }
    note(t, sender, base->desc);
    t->g->base[sender] = t->g->step[sender];
    cst_block_id id = block_of(t, sender, CST_PHASE_UP);
    cst_checksum got;
    if (h->plain) {
        got = cst_wide_plain(t->l->tools, &id, base->desc, h->plain->payload, out);
    } else {
        double a = t->plan->r2 > 0 ? cst_reference_up(t->plan->s2, t->plan->r2, t->known) : 1;
        for (uint32_t i = 0; i < t->n; i++)
            out[i] = sum[i] * (a / t->known);
        got = cst_wide_decode(t->l->tools, &id, base->desc, base->payload, out, out);
    }
    bool good = cst_checksum_equal(got, base->check);
    if (!good && h->plain)
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "whole integers of rank %d contradict their checksum",
                        sender);
    if (!good)
        ask(t, sender, CST_ASK_PLAIN, 0);
    else if (h->refine && !add_refinement(t, sender, NULL, out))
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "a refinement of rank %d contradicts its checksum", sender);
    return COSET_OK;
}

static coset_status gather_wide(gathering *t)
{
    const cst_listener *l = t->l;
    if (!room_for_doubles(t))
        return COSET_ERR_MEMORY;
    double *own = t->g->w + (size_t)l->rank * t->n, sum[CST_BLOCK];
    cst_vector_wide(l->vector, t->block, t->g->unit, own);
    memcpy(sum, own, t->n * sizeof *own);
    t->known = 1;
    for (int turn = 0, sender; (sender = sender_of_turn(t, turn)) > -2; turn++) {
        if (sender < 0)
            continue;
        double *x = t->g->w + (size_t)sender * t->n;
        coset_status status = decode_wide(t, sender, sum, x);
        if (status)
            return status;
        if (t->asks[sender].ask)
            continue;
        for (uint32_t i = 0; i < t->n; i++)
            sum[i] += x[i];
        t->known++;
    }
    return COSET_OK;
}

/* ---- original domain, where a block is exact ---- */

static void to_original(const gathering *t, float *rotated, double *out)
{
    const cst_listener *l = t->l;
    uint32_t signs[CST_SIGN_WORDS];
    cst_block_signs(l->vector, t->block, signs);
    l->tools->hadamard->unrotate(rotated, rotated, t->n, signs, NULL, false);
    for (uint32_t i = 0; i < t->count; i++)
        out[i] = cst_scale2(rotated[i], t->g->unit);
}

/* A coded sender among exact ones, decoded against those known and brought to the original domain. */
static coset_status decode_to_original(gathering *t, int sender, double *x)
{
    const cst_listener *l = t->l;
    coset_status status;
    if (base_of(t, sender)->desc.code == CST_CODE_WIDE) {
        double rotated[CST_BLOCK];
        for (uint32_t i = 0; i < t->n; i++)
            rotated[i] = t->g->sum[i];
        status = decode_wide(t, sender, rotated, rotated);
        uint32_t signs[CST_SIGN_WORDS];
        cst_block_signs(l->vector, t->block, signs);
        cst_unrotate_f64(rotated, t->n, signs);
        for (uint32_t i = 0; i < t->count; i++)
            x[i] = cst_scale2(rotated[i], t->g->unit);
        return status;
    }
    float rotated[CST_BLOCK] = {0};
    status = decode_sender(t, sender, rotated);
    if (!status && !t->asks[sender].ask) {
        for (uint32_t i = 0; i < t->n; i++)
            t->g->sum[i] += rotated[i];
        t->known++;
    }
    to_original(t, rotated, x);
    return status;
}

static bool is_same(const gathering *t, int sender)
{
    const cst_part *base = base_of(t, sender);
    return base->desc.code == CST_CODE_EXACT && base->desc.class == CST_CLASS_SAME;
}

static coset_status read_exact(gathering *t, int sender, double *x)
{
    const cst_part *base = base_of(t, sender);
    if (is_same(t, sender)) {
        if (cst_checksum_equal(base->check, cst_same_check(t->l->vector, t->block)))
            cst_exact_read(t->l->dtype, cst_vector_elements(t->l->vector, t->block), t->count, x);
        else
            ask(t, sender, CST_ASK_RESEND, 0);
        return COSET_OK;
    }
    size_t bytes = t->count * cst_exact_bytes(t->l->dtype, false);
    cst_checksum got = {{cst_bytes_hash(base->payload, bytes, 1), cst_bytes_hash(base->payload, bytes, 2)}};
    if (!cst_checksum_equal(got, base->check))
        return cst_fail(t->why, COSET_ERR_CORRUPT, sender, "an exact block of rank %d is damaged", sender);
    cst_exact_read(t->l->dtype, base->payload, t->count, x);
    return COSET_OK;
}

/* Have all senders what this rank has? */
static bool all_same(const gathering *t)
{
    int ranks = t->l->shared->options.rules.ranks;
    for (int u = 0; u < ranks; u++)
        if (u != t->l->rank && !is_same(t, u))
            return false;
    cst_checksum own = cst_same_check(t->l->vector, t->block);
    for (int u = 0; u < ranks; u++)
        if (u != t->l->rank && !cst_checksum_equal(base_of(t, u)->check, own))
            return false;
    return true;
}

static coset_status gather_exact(gathering *t)
{
    const cst_listener *l = t->l;
    int ranks = l->shared->options.rules.ranks;
    t->g->same = all_same(t);
    if (t->g->same)
        return COSET_OK;
    if (!room_for_doubles(t))
        return COSET_ERR_MEMORY;
    cst_exact_read(l->dtype, cst_vector_elements(l->vector, t->block), t->count, t->g->w + (size_t)l->rank * t->count);
    own_vector(t, t->g->sum); /* zeros if the own block is exact */
    t->known = 1;
    for (int position = 1; position < ranks; position++) {
        int sender = (l->rank + position) % ranks;
        double *x = t->g->w + (size_t)sender * t->count;
        bool is_exact = base_of(t, sender)->desc.code == CST_CODE_EXACT;
        coset_status status = is_exact ? read_exact(t, sender, x) : decode_to_original(t, sender, x);
        if (status)
            return status;
    }
    return COSET_OK;
}

coset_status cst_gather(const cst_listener *l, uint32_t block, uint32_t first, bool keep, cst_gathered *g,
                        cst_request *asks, coset_error *why)
{
    int ranks = l->shared->options.rules.ranks;
    const cst_block *b = &l->shared->layout->blocks[block];
    gathering t = {
        l,    block, b->n, b->count, &l->shared->plan[block], l->heard + (size_t)(block - first) * (size_t)ranks, g,
        asks, why,   0,    g->sum};
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
        g->exact |= base_of(&t, u)->desc.code == CST_CODE_EXACT;
        g->wide |= base_of(&t, u)->desc.code == CST_CODE_WIDE;
    }
    choose_unit(&t);
    coset_status status = g->exact ? gather_exact(&t) : g->wide ? gather_wide(&t) : gather_floats(&t);
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
