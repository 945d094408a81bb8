/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/sender.h"

#include "codec/model.h"
#include "codec/portable.h"
#include "codec/wide.h"
#include "mean/same.h"

#include <math.h>
#include <stdlib.h>

/* An energy that differs from the tracked one by more than this says that the statistics mean nothing any more. */
static const double strange_gain = 0x1p40;
/* How much larger than the modulus was made for a residual may be expected to be before the modulus is raised. A mean that
 * changes from call to call makes a block's energy vary by a few percent that say nothing about the spread. */
static const double tolerance = 1.12;

static double own_energy(const cst_sender *s, uint32_t block, int unit)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    return cst_scale2(s->vector->own[block].energy, 2 * (s->vector->exponents[b->span] - unit));
}

static double group_gain(const cst_sender *s, const cst_group *g)
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

coset_status cst_sender_init(cst_sender *s, const cst_tools *tools, const cst_shared *shared, const cst_vector *vector,
                             const cst_stream_root *roots, int rank)
{
    *s = (cst_sender){tools, shared, vector, roots, rank, NULL, NULL};
    s->gain = calloc(shared->ngroups ? shared->ngroups : 1, sizeof *s->gain);
    s->desc = calloc(shared->layout->nblocks ? shared->layout->nblocks : 1, sizeof *s->desc);
    if (!s->gain || !s->desc) {
        cst_sender_free(s);
        return COSET_ERR_MEMORY;
    }
    for (uint32_t g = 0; g < shared->ngroups; g++)
        s->gain[g] = group_gain(s, &shared->groups[g]);
    return COSET_OK;
}

void cst_sender_free(cst_sender *s)
{
    free(s->gain);
    free(s->desc);
    *s = (cst_sender){0};
}

cst_block_id cst_sender_block(const cst_sender *s, uint32_t block, uint32_t phase)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    return (cst_block_id){s->roots[b->span], b->index, (uint32_t)s->rank, phase, b->n, s->vector->exponents[b->span]};
}

/* ---- which code, modulus and step ---- */

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
    return cst_scale2(relative * sqrt(d * cst_rotation_energy(b->n)), unit - s->vector->exponents[b->span]);
}

static cst_block_desc with_step(const cst_sender *s, uint32_t block, uint8_t code, unsigned class, double step)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    return (cst_block_desc){code, (uint8_t) class, cst_step_index(step, s->vector->exponents[b->span])};
}

/* Variance of the rotated block in steps: its model. */
static cst_block_desc entropy_code(const cst_sender *s, uint32_t block, double step)
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
    return entropy_code(s, block, sqrt(12 * d * cst_rotation_energy(b->n)));
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
    return class ? with_step(s, block, p->up.code, class, step) : entropy_code(s, block, step);
}

static cst_block_desc wide_code(const cst_sender *s, uint32_t block, double gain)
{
    const cst_block_plan *p = &s->shared->plan[block];
    const cst_group *g = &s->shared->groups[s->shared->group_of[block]];
    double step = own_step(s, block, sqrt(12.0), cst_group_error(g) * gain, g->unit);
    unsigned class = p->up.class;
    if (p->kind != CST_PLAN_WIDE)
        class = (unsigned)(cst_log2(12 * sqrt(2 * p->s2 + 1) / sqrt(12.0)) + 1.5);
    return with_step(s, block, CST_CODE_WIDE, class ? class : 1, step);
}

static cst_block_desc choose(const cst_sender *s, uint32_t block, int owner)
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
    cst_block_desc d = p->up.code == CST_CODE_ENTROPY
                           ? entropy_code(s, block, own_step(s, block, p->up.step, cst_group_error(g) * gain, g->unit))
                           : modulo_code(s, block, position, gain);
    const cst_block *b = &s->shared->layout->blocks[block];
    double step = cst_step_value(d.step, s->vector->exponents[b->span]);
    float limit = d.code == CST_CODE_E8 ? CST_E8_LIMIT : CST_Z_LIMIT;
    return largest_in_steps(s, block, step) < below * limit ? d : wide_code(s, block, gain);
}

/* ---- payloads ---- */

static bool pack_modulo(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, d.class, sizeof classes);
    uint8_t *out = cst_packer_room(packer, cst_packed_bytes(classes, b->n / CST_UNIT));
    if (!out)
        return false;
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    _Alignas(64) float room[CST_BLOCK];
    cst_checksum sum = cst_block_kernels(s->tools, d.code)
                           ->encode(&geometry, cst_vector_rotated(s->vector, block, room), classes, out, NULL);
    cst_packer_set(packer, part, d, sum);
    return true;
}

static void pack_entropy(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    int32_t *points = cst_packer_points(packer);
    if (!points)
        return; /* cst_packer_flush says so */
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    _Alignas(64) float room[CST_BLOCK];
    const float *x = cst_vector_rotated(s->vector, block, room);
    cst_packer_entropy(packer, part, d, s->tools->z->quantise(&geometry, x, points), b->n);
}

static cst_checksum wide_integers(const cst_sender *s, uint32_t block, cst_block_desc d, int64_t *k)
{
    double x[CST_BLOCK];
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_vector_wide(s->vector, block, id.exponent, x);
    return cst_wide_quantise(s->tools, &id, d, x, k, NULL);
}

static bool pack_wide(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    uint8_t *out = cst_packer_room(packer, cst_block_bytes(d, b->n, b->count, 0));
    if (!out)
        return false;
    int64_t k[CST_BLOCK];
    cst_packer_set(packer, part, d, wide_integers(s, block, d, k));
    cst_wide_pack(k, b->n, d.class, out);
    return true;
}

static bool pack_exact(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    size_t bytes = b->count * s->shared->options.element[0];
    uint8_t *out = cst_packer_room(packer, bytes);
    if (!out)
        return false;
    memcpy(out, cst_vector_elements(s->vector, block), bytes);
    cst_checksum sum = {{cst_bytes_hash(out, bytes, 1), cst_bytes_hash(out, bytes, 2)}};
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_EXACT, 0, 0}, sum);
    return true;
}

/* False if the block did not fit. (What an entropy code takes turns out at the end of its stream.) */
static bool pack_block(const cst_sender *s, uint32_t block, cst_packer *packer, uint32_t part, cst_block_desc d)
{
    switch (d.code) {
    case CST_CODE_ZERO: cst_packer_set(packer, part, d, (cst_checksum){{0}}); return true;
    case CST_CODE_EXACT:
        if (d.class != CST_CLASS_SAME)
            return pack_exact(s, block, packer, part);
        cst_packer_set(packer, part, d, cst_same_check(s->vector, block));
        return true;
    case CST_CODE_ENTROPY: pack_entropy(s, block, packer, part, d); return true;
    case CST_CODE_WIDE: return pack_wide(s, block, packer, part, d);
    default: return pack_modulo(s, block, packer, part, d);
    }
}

/* ---- rate control ---- */

/* What the entropy codes of a frame will take, in bits, with the steps as they are. */
static double entropy_bits(const cst_sender *s, uint32_t first, uint32_t end, double *coords, uint32_t *blocks)
{
    double bits = 0;
    *coords = 0;
    *blocks = 0;
    for (uint32_t b = first; b < end; b++) {
        if (s->desc[b].code != CST_CODE_ENTROPY)
            continue;
        const cst_block *block = &s->shared->layout->blocks[b];
        double step = cst_step_value(s->desc[b].step, s->vector->exponents[block->span]);
        double share = (double)block->count / block->n * cst_rotation_energy(block->n);
        bits += block->n * cst_model_bits(s->vector->own[b].energy * share / (step * step));
        *coords += block->n;
        ++*blocks;
    }
    return bits;
}

/* The frame has an agreed size. If the entropy codes would not fit, all their steps grow a little (the owner makes up for
 * it in phase 2); by a tenth at most, beyond that blocks are left out. */
static void fit_steps(const cst_sender *s, uint32_t first, uint32_t end, size_t capacity)
{
    uint32_t blocks;
    double coords, bits = entropy_bits(s, first, end, &coords, &blocks);
    if (coords == 0)
        return;
    double room = (double)capacity - CST_FRAME_HEADER - (4 + CST_CHECK_BYTES) * (double)(end - first) -
                  cst_stream_overhead(blocks);
    for (uint32_t b = first; b < end; b++) {
        const cst_block *block = &s->shared->layout->blocks[b];
        room -= (double)cst_block_bytes(s->desc[b], block->n, block->count, s->shared->options.element[0]);
    }
    double over = (bits + 3 * sqrt(coords) - 8 * room) / coords;
    if (over <= 0 && s->shared->options.bits <= 0)
        return;
    double factor = cst_exp2(fmin(fmax(over, -0.14), 0.14)); /* bits that are given are used */
    for (uint32_t b = first; b < end; b++) {
        if (s->desc[b].code != CST_CODE_ENTROPY)
            continue;
        int unit = s->vector->exponents[s->shared->layout->blocks[b].span];
        s->desc[b] = entropy_code(s, b, cst_step_value(s->desc[b].step, unit) * factor);
    }
}

coset_status cst_sender_frame(const cst_sender *s, int owner, cst_packer *packer, const cst_frame_header *header,
                              uint8_t *frame, size_t capacity)
{
    uint32_t first = s->shared->first[owner], end = s->shared->first[owner + 1];
    cst_packer_begin(packer, frame, capacity, header, s->tools->entropy);
    for (uint32_t b = first; b < end; b++)
        s->desc[b] = choose(s, b, owner);
    fit_steps(s, first, end, capacity);
    size_t missing = 0;
    for (uint32_t b = first; b < end; b++) {
        cst_block_desc d = s->desc[b];
        const cst_block *layout = &s->shared->layout->blocks[b];
        if (!pack_block(s, b, packer, b - first, d))
            missing += cst_block_bytes(d, layout->n, layout->count, s->shared->options.element[0]);
    }
    if (!cst_packer_flush(packer))
        return COSET_ERR_MEMORY;
    /* Absent streams are built anew when asked for, perhaps cut differently: a stream's states more. */
    missing += packer->dropped + (packer->dropped ? 2 * CST_ENTROPY_STATES_BYTES + 64 : 0);
    packer->header.need_up = missing;
    return cst_packer_finish(packer) ? COSET_OK : COSET_ERR_MEMORY;
}

/* ---- answers ---- */

/* The points as they were sent; and what they leave of the vector, unless rest is NULL. */
static cst_checksum points_again(const cst_sender *s, uint32_t block, cst_block_desc d, int32_t *points, float *rest)
{
    float room[CST_BLOCK];
    const float *x = cst_vector_rotated(s->vector, block, room);
    const cst_quantise_kernels *kernels = cst_block_kernels(s->tools, d.code);
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, d);
    if (!rest)
        return kernels->quantise(&geometry, x, points);
    cst_checksum sum = kernels->quantise_both(&geometry, x, 1, points, rest);
    for (uint32_t i = 0; i < id.n; i++)
        rest[i] = x[i] - rest[i];
    return sum;
}

static bool answer_digits(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer,
                          uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    uint32_t q = (uint32_t)cst_classes[d.class].q, wide = q << r->arg;
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out)
        return false;
    int32_t points[CST_BLOCK];
    uint16_t digits[CST_BLOCK];
    cst_checksum sum = points_again(s, r->block, d, points, NULL);
    if (d.code == CST_CODE_E8)
        cst_colour_e8(points, b->n, wide, digits);
    else
        cst_colour_z(points, b->n, wide, digits);
    for (uint32_t i = 0; i < b->n; i++)
        digits[i] = (uint16_t)(digits[i] / q);
    cst_digits_pack(digits, b->n, 1u << r->arg, out);
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_PLAIN, r->arg, d.step}, sum);
    return true;
}

static bool answer_plain(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer, uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out)
        return false;
    cst_checksum sum;
    if (d.code == CST_CODE_WIDE) {
        int64_t k[CST_BLOCK];
        sum = wide_integers(s, r->block, d, k);
        cst_wide_plain_write(k, b->n, out);
    } else {
        int32_t points[CST_BLOCK];
        sum = points_again(s, r->block, d, points, NULL);
        cst_plain_write(points, b->n, out);
    }
    uint8_t class = d.code == CST_CODE_WIDE ? 64 : 32;
    cst_packer_set(packer, part, (cst_block_desc){CST_CODE_PLAIN, class, d.step}, sum);
    return true;
}

/* The residual x - x^ as the owner will see it, in the vector's units. */
static void residual(const cst_sender *s, uint32_t block, cst_block_desc d, float *out)
{
    const cst_block *b = &s->shared->layout->blocks[block];
    cst_block_id id = cst_sender_block(s, block, CST_PHASE_UP);
    if (d.code == CST_CODE_WIDE) {
        double x[CST_BLOCK], value[CST_BLOCK];
        int64_t k[CST_BLOCK];
        cst_vector_wide(s->vector, block, id.exponent, x);
        cst_wide_quantise(s->tools, &id, d, x, k, value);
        for (uint32_t i = 0; i < b->n; i++)
            out[i] = (float)(x[i] - value[i]);
        return;
    }
    int32_t points[CST_BLOCK];
    points_again(s, block, d, points, out);
}

static bool answer_refine(const cst_sender *s, const cst_request *r, cst_block_desc d, cst_packer *packer,
                          uint32_t part)
{
    const cst_block *b = &s->shared->layout->blocks[r->block];
    cst_block_desc finer = cst_refinement(d, r->arg);
    uint8_t classes[CST_BLOCK_UNITS];
    memset(classes, finer.class, sizeof classes);
    uint8_t *out = cst_packer_room(packer, cst_answer_bytes(r, d, b->n));
    if (!out || finer.code != CST_CODE_Z)
        return false;
    float rest[CST_BLOCK];
    residual(s, r->block, d, rest);
    cst_block_id id = cst_sender_block(s, r->block, CST_PHASE_REFINE);
    cst_lattice_block geometry = cst_block_geometry(s->tools, &id, finer);
    cst_packer_set(packer, part, finer, s->tools->z->encode(&geometry, rest, classes, out, NULL));
    return true;
}

coset_status cst_sender_answers(const cst_sender *s, const cst_request *requests, uint32_t nrequests,
                                cst_packer *packer, const cst_frame_header *header, uint8_t *frame, size_t capacity)
{
    cst_packer_begin(packer, frame, capacity, header, s->tools->entropy);
    uint32_t part = 0;
    for (uint32_t i = 0; i < nrequests; i++) {
        const cst_request *r = &requests[i];
        if (r->sender != s->rank && r->sender != CST_TO_ALL)
            continue;
        cst_block_desc d = s->desc[r->block];
        if (r->ask == CST_ASK_RESEND && header->round == CST_LAST_ROUND)
            s->desc[r->block] = d = (cst_block_desc){CST_CODE_EXACT, 0, 0}; /* a code might not be decoded */
        if (r->ask == CST_ASK_RESEND && d.code == CST_CODE_EXACT)
            s->desc[r->block].class = d.class = 0; /* not the same after all */
        bool lattice =
            d.code == CST_CODE_Z || d.code == CST_CODE_E8 || d.code == CST_CODE_ENTROPY || d.code == CST_CODE_WIDE;
        if (r->ask == CST_ASK_RESEND)
            pack_block(s, r->block, packer, part, d);
        else if (lattice && r->ask == CST_ASK_PLAIN)
            answer_plain(s, r, d, packer, part);
        else if (lattice && r->ask == CST_ASK_REFINE)
            answer_refine(s, r, d, packer, part);
        else if ((d.code == CST_CODE_Z || d.code == CST_CODE_E8) && r->ask == CST_ASK_DIGITS)
            answer_digits(s, r, d, packer, part);
        part++;
    }
    return cst_packer_finish(packer) ? COSET_OK : COSET_ERR_MEMORY;
}
