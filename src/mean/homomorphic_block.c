/* SPDX-License-Identifier: Apache-2.0 */
/* One block of codes that add up: its step, its code, its mean, its vote, its statistics. */
#include "codec/correct.h"
#include "codec/portable.h"
#include "mean/gather.h"
#include "mean/homomorphic_state.h"

#include <math.h>

static const double vote_limit = 0x1p26; /* of one rank's squared distance in votes: 2^14 ranks fit below the shift */

/* With step h and C colours the reach is C h / root 2 (E8) or C h / 2 (Z); what must be reached has the variance
 * n^2 (R^2 + s^2/n)(1 - a) of the sum less n a x_v, and n times the code's own error. */
static double step_for(const cst_plan_rules *rules, uint8_t code, double s2, double r2, double a)
{
    const double reach_e8 = 4.9, reach_z = 4.4; /* as in plan.c: one block in 20 to correct at each receiver */
    double n = rules->ranks, v = n * n * (r2 + s2 / n) * (1 - a);
    double reach = code == CST_CODE_E8 ? reach_e8 * 1.4142135623730951 : 2 * reach_z;
    double square = CST_SUMS_COLOURS * CST_SUMS_COLOURS / (reach * reach) - n * cst_code_error(code, 1);
    double least = (r2 + s2) * 0x1p-32; /* squared: |x| / step stays below what the kernels take */
    return square > 0 ? sqrt(fmax(v / square, least)) : 0;
}

void cst_sums_plan(coset_round *round, uint32_t index)
{
    cst_sums_call *s = cst_sums_of(round);
    const cst_block *b = &round->layout.blocks[index];
    const cst_tensor *t = round->tensors[b->span];
    const cst_plan_rules *rules = &round->mean->plan.rules;
    cst_sums_block *k = &s->blocks[index];
    cst_block_stat stat = t->known ? t->stat[b->index] : (cst_block_stat){0, 0};
    if (stat.s2 == 0 && stat.r2 == 0)
        return;
    int unit = ((int)(stat.s2 > stat.r2 ? stat.s2 : stat.r2) - 32768) / 32;
    double share = (double)b->count / b->n, factor = cst_rotation_energy(b->n);
    double s2 = cst_energy_value(stat.s2, unit) * share, r2 = cst_energy_value(stat.r2, unit) * share;
    k->a = cst_reference_down(rules, s2, r2);
    double step = step_for(rules, cst_sums_code(round), s2, r2, k->a);
    if (!(step > 0))
        return;
    k->coded = true;
    k->step = cst_step_index(step * sqrt(factor), unit);
    k->unit = cst_step_unit(k->step);
    k->error = cst_code_error(cst_sums_code(round), cst_step_value(k->step, k->unit)) / factor;
    k->at = s->coded;
    s->coded += b->n;
}

cst_sum_block cst_sums_geometry(const coset_round *round, uint32_t index, int unit)
{
    const cst_block *b = &round->layout.blocks[index];
    const cst_sums_block *k = &cst_sums_of(round)->blocks[index];
    cst_stream_root root = round->roots[b->span];
    return (cst_sum_block){
        .n = b->n,
        .step = (float)cst_step_value(k->step, unit),
        .dither = cst_stream_of(root, CST_USE_DITHER, CST_PHASE_SUM, CST_EVERY_SENDER, b->index),
        .slope = cst_stream_of(root, CST_USE_SLOPE, CST_PHASE_SUM, CST_EVERY_SENDER, b->index),
        .keys = round->mean->tools->keys,
    };
}

const cst_sum_kernels *cst_sums_kernels(const coset_round *round)
{
    return cst_sums_z(round) ? round->mean->tools->sum_z : round->mean->tools->sum_e8;
}

bool cst_sums_codable(const coset_round *round, uint32_t index)
{
    const cst_block *b = &round->layout.blocks[index];
    const cst_sums_block *k = &cst_sums_of(round)->blocks[index];
    const cst_own_block *own = &round->vector.own[index];
    if (own->kind == CST_BLOCK_EXACT)
        return false;
    if (!k->coded)
        return own->kind == CST_BLOCK_ZERO;
    double step = cst_step_value(k->step, cst_sums_own_unit(round, index));
    if (!(step > 0x1p-120 && step < 0x1p120))
        return false;
    const double limit = 0.99 * CST_E8_LIMIT * step;
    if (sqrt(own->energy * b->count * cst_rotation_energy(b->n)) < limit) /* no coordinate is larger than the norm */
        return true;
    float room[CST_BLOCK];
    return round->mean->tools->norm->stats(cst_vector_rotated(&round->vector, index, room), b->n).max < limit;
}

bool cst_sums_decode(coset_round *round, uint32_t index, const float *own, float *mean)
{
    cst_sums_call *s = cst_sums_of(round);
    const cst_tools *tools = round->mean->tools;
    const cst_block *b = &round->layout.blocks[index];
    cst_sums_block *k = &s->blocks[index];
    uint32_t n = (uint32_t)round->mean->size;
    const uint64_t *word = s->word_sums + 1 + (size_t)CST_SUMS_CHECK_WORDS * index;
    cst_checksum want = {{word[0], word[1]}};
    cst_sum_block g = cst_sums_geometry(round, index, k->unit);
    float scale = (float)(k->a * cst_vector_scale(&round->vector, index, k->unit));
    int32_t points[CST_BLOCK];
    cst_checksum got = cst_sums_kernels(round)->decode(&g, s->code_sums + k->at, n, own, scale, mean, points);
    if (cst_checksum_equal(got, want))
        return true;
    /* in steps of the mean, which are n times finer, this is an ordinary decode modulo 256 */
    cst_lattice_block as_block = {.n = b->n, .step = g.step / (float)n, .weight = 1, .keys = g.keys};
    if (!cst_correct(tools, &as_block, cst_sums_code(round), CST_SUMS_COLOURS, own, scale, mean, got, want, points))
        return false;
    s->corrected++;
    return cst_checksum_equal(cst_sums_kernels(round)->reconstruct(&g, points, n, mean), want);
}

uint64_t cst_sums_vote(coset_round *round, uint32_t index, const float *own, const float *mean)
{
    const cst_norm_kernels *norm = round->mean->tools->norm;
    const cst_block *b = &round->layout.blocks[index];
    cst_sums_block *k = &cst_sums_of(round)->blocks[index];
    float scale = (float)cst_vector_scale(&round->vector, index, k->unit);
    double distance2 = norm->distance2(own, scale, mean, b->n) / (cst_rotation_energy(b->n) * b->count);
    k->energy = norm->dot(mean, mean, b->n);
    return (uint64_t)fmin(distance2 / k->error * CST_SUMS_VOTE_SCALE, vote_limit);
}

bool cst_sums_goes_out(const coset_round *round, uint32_t index)
{
    const coset_span *span = &round->spans[round->layout.blocks[index].span];
    return span->send != span->recv;
}

void cst_sums_note(coset_round *round, uint32_t index)
{
    cst_sums_call *s = cst_sums_of(round);
    const cst_sums_block *k = &s->blocks[index];
    const cst_block *b = &round->layout.blocks[index];
    int n = round->mean->size;
    double distances = (double)(s->vote_sums[index] & (((uint64_t)1 << CST_SUMS_VOTE_SHIFT) - 1)) / CST_SUMS_VOTE_SCALE;
    double s2 = fmax((distances - 1) / (n - 1), 0.01) * k->error, factor = cst_rotation_energy(b->n) * b->count;
    double r2 = fmax(k->energy / factor - s2 / n - k->error / n, 0);
    round->tensors[b->span]->stat[b->index] =
        (cst_block_stat){cst_energy_index(s2, k->unit), cst_energy_index(r2, k->unit)};
}
