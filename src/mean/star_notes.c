/* SPDX-License-Identifier: Apache-2.0 */
/* What the owners' frames tell beside the means, and what a call teaches about its tensors. */
#include "mean/star_state.h"

/* A mean that waits though nothing was asked for it did not fit: phase 1 had left it too small an error. */
static void note_squeezed(coset_round *round, const cst_parts *frame)
{
    cst_star_call *s = cst_star_of(round);
    for (uint32_t i = 0; i < frame->header.blocks; i++) {
        uint32_t block = frame->header.first_block + i;
        bool waits = frame->parts[i].desc.code == CST_CODE_ABSENT && !s->current[block];
        for (uint32_t k = 0; waits && k < frame->header.requests; k++) {
            cst_request r;
            cst_request_read(frame->requests + (size_t)CST_REQUEST_BYTES * k, &r);
            waits = r.block != block;
        }
        s->events[round->layout.blocks[block].span] |= waits ? CST_STAR_REFINED : 0;
    }
}

void cst_star_note(coset_round *round, int owner, const cst_parts *frame)
{
    cst_star_call *s = cst_star_of(round);
    coset_mean_report *report = &round->report;
    for (uint32_t i = 0; i < frame->header.blocks; i++) {
        const cst_block *b = &round->layout.blocks[frame->header.first_block + i];
        const cst_part *part = &frame->parts[i];
        if (part->desc.code == CST_CODE_ABSENT)
            continue;
        round->tensors[b->span]->stat[b->index] = (cst_block_stat){part->s2, part->r2};
        s->current[frame->header.first_block + i] = 1;
        report->exact += part->desc.code == CST_CODE_EXACT && part->desc.class != CST_CLASS_SAME;
    }
    note_squeezed(round, frame);
    for (uint32_t i = 0; i < frame->header.requests; i++) {
        cst_request r;
        cst_request_read(frame->requests + (size_t)CST_REQUEST_BYTES * i, &r);
        report->refined += r.ask == CST_ASK_REFINE;
        bool missed = r.ask == CST_ASK_DIGITS || r.ask == CST_ASK_PLAIN;
        s->events[round->layout.blocks[r.block].span] |= missed                    ? CST_STAR_REPAIRED
                                                         : r.ask == CST_ASK_REFINE ? CST_STAR_REFINED
                                                                                   : 0;
        if (r.ask != CST_ASK_REFINE)
            report->repaired += r.sender == CST_TO_ALL ? (uint64_t)round->mean->size - 1 : 1;
    }
    s->errors[owner] = frame->header.error;
    s->corrected[owner] = frame->header.corrected;
}

static double owner_coords(const coset_round *round, int owner)
{
    const cst_star_call *s = cst_star_of(round);
    double coords = 0;
    for (uint32_t b = s->shared.first[owner]; b < s->shared.first[owner + 1]; b++)
        coords += round->layout.blocks[b].count;
    return coords;
}

/* What a span's call has taught about its tensor. A first call, by a sketch, says nothing of how the spread moves. */
static void learn(coset_round *round, size_t span)
{
    const cst_star_call *s = cst_star_of(round);
    cst_tensor *t = round->tensors[span];
    if (!s->shared.options.fresh)
        cst_margins_learn(&t->margins, s->events[span] & CST_STAR_REPAIRED,
                          (s->events[span] & CST_STAR_REFINED) && s->shared.options.bits <= 0,
                          t->count < round->layout.coords / 16);
    t->known |= t->count > 0;
    cst_past_keep(&t->past, round->spans[span].recv, t->count, round->dtype);
}

void cst_star_conclude(coset_round *round)
{
    cst_star_call *s = cst_star_of(round);
    double error = 0, spread = 0, energy = 0, coords = (double)round->layout.coords;
    for (int j = 0; j < round->mean->size; j++) {
        error += owner_coords(round, j) * cst_energy_value(s->errors[j], 0);
        round->report.corrected += s->corrected[j];
    }
    for (uint32_t b = 0; b < round->layout.nblocks; b++) {
        const cst_block *block = &round->layout.blocks[b];
        cst_block_stat t = round->tensors[block->span]->stat[block->index];
        spread += block->count * cst_energy_value(t.s2, 0);
        energy += block->count * cst_energy_value(t.r2, 0);
    }
    for (size_t i = 0; i < round->nspans; i++)
        learn(round, i);
    if (coords > 0) {
        round->report.spread2 = spread / coords;
        round->report.mean2 = energy / coords;
        round->report.predicted_excess = spread > 0 ? error / spread * round->mean->size : 0;
    }
    s->at = CST_AT_END;
}
