/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive halving and doubling (patterns/rhd.h), with folding for other N than powers of two.
 *
 * The vector is cut into p chunks. Long chunks are cut into segments, and each segment (of all chunks) goes through all
 * rounds by itself; of short chunks, 2^m neighbours travel in one message, as many as make a segment. Either way a
 * message in one round is a part of, or made of, messages of the round before, so dependencies are kept per chunk.
 * Partial sums are kept in the result buffer; those of 16-bit floats as f32 in scratch memory (inputs travel as they
 * are).
 */
#include "coll/build.h"

#include "coll/patterns/rhd.h"
#include "coll/segment.h"
#include <stdlib.h>

enum { SLOTS = 2 * CST_WAVES };

/* What is known of one chunk in the current segment. */
typedef struct {
    bool summed;    /* there is a partial sum; before, the input stands for it */
    bool final;     /* the sum is complete, in the result buffer */
    int made;       /* the step that made it, -1 for the input */
    int input_sent; /* the step that sent what the result buffer holds (in place: the input), -1 if none */
} cell;

typedef struct {
    cst_schedule *s;
    int n, rank, p;
    cst_cut cut;
    int together;    /* chunks in one message, a power of two */
    cst_slots slots; /* what is received, to be added: a ring of SLOTS */
    int vacant[SLOTS], next_slot;
    cst_place sums; /* 16-bit floats: where partial sums are, */
    int *sum_read;  /* [wave][chunk] and the last step that read or sent one */
    cell *cells;    /* [chunk] */
} rhd;

/* One message: chunks [first, first + chunks), or the current segment of the one chunk `first`. */
typedef struct {
    int first, chunks;
    cst_range range;
} unit;

static int wave(const rhd *h)
{
    return h->s->segment % CST_WAVES;
}
static unit unit_at(const rhd *h, int first, int chunks)
{
    size_t count = h->s->plan.call.count;
    int take = chunks < h->together ? chunks : h->together;
    if (take > 1)
        return (unit){first, take, cst_chunks(count, h->p, first, take)};
    return (unit){first, 1, cst_segment(cst_chunk(count, h->p, first), h->cut, h->s->segment)};
}
static bool exists(const rhd *h, unit u)
{
    return cst_segment_exists(u.range, h->s->segment);
}
static uint32_t tag(const rhd *h, unit u)
{
    return (uint32_t)((h->s->round * h->p + u.first) * h->cut.segments + h->s->segment);
}

static cst_place partial(const rhd *h, unit u)
{
    if (!cst_plan_widens(&h->s->plan))
        return cst_result(&h->s->plan, u.range.begin);
    /* One segment per chunk: a whole vector in order, so that neighbouring chunks are one range. Else cells of a
     * segment each, [wave][chunk]. */
    size_t e = h->cut.segments == 1 ? u.range.begin : (size_t)(wave(h) * h->p + u.first) * h->cut.elements;
    return (cst_place){h->sums.offset + e * sizeof(float), CST_IN_SCRATCH, true};
}

/* Where a unit's value is now. Its chunks are all in the same state. */
static cst_place value(const rhd *h, unit u)
{
    const cell *c = &h->cells[u.first];
    if (c->final)
        return cst_result(&h->s->plan, u.range.begin);
    return c->summed ? partial(h, u) : cst_input(&h->s->plan, u.range.begin);
}

static void wait_until_made(rhd *h, unit u)
{
    for (int c = u.first; c < u.first + u.chunks; c++)
        if (c == u.first || h->cells[c].made != h->cells[c - 1].made)
            cst_after(h->s, h->cells[c].made);
}

static void send_unit(rhd *h, int to, unit u)
{
    int step = cst_add_send(h->s, to, tag(h, u), value(h, u), cst_range_size(u.range));
    wait_until_made(h, u);
    for (int c = u.first; c < u.first + u.chunks; c++) {
        h->cells[c].input_sent = step;
        if (h->cells[c].summed && !h->cells[c].final)
            h->sum_read[wave(h) * h->p + c] = step;
    }
}

/* Takes a finished unit. */
static void receive_unit(rhd *h, int from, unit u)
{
    int step = cst_add_recv(h->s, from, tag(h, u), cst_result(&h->s->plan, u.range.begin), cst_range_size(u.range));
    for (int c = u.first; c < u.first + u.chunks; c++) {
        if (c == u.first || h->cells[c].input_sent != h->cells[c - 1].input_sent)
            cst_after(h->s, h->cells[c].input_sent);
        h->cells[c] = (cell){.summed = true, .final = true, .made = step, .input_sent = -1};
    }
}

/* Receives a unit, an input or a partial sum, and adds it. */
static void add_unit(rhd *h, int from, unit u, bool input, bool last)
{
    cst_schedule *s = h->s;
    int which = h->next_slot++ % SLOTS;
    cst_place got = cst_slot(h->slots, which, !input && cst_plan_widens(&s->plan));
    int recv = cst_add_recv(s, from, tag(h, u), got, cst_range_size(u.range));
    cst_after(s, h->vacant[which]);
    cst_part part[2] = {{h->rank, value(h, u)}, {from, got}};
    cst_place to = last ? cst_result(&s->plan, u.range.begin) : partial(h, u);
    int step = cst_add_reduce(s, to, cst_range_size(u.range), last && cst_plan_divides(&s->plan));
    cst_reads_in_rank_order(s, part, 2);
    cst_after(s, recv);
    wait_until_made(h, u);
    h->vacant[which] = step;
    for (int c = u.first; c < u.first + u.chunks; c++) {
        int *read = &h->sum_read[wave(h) * h->p + c];
        if (!h->cells[c].summed)
            cst_after(s, *read); /* by the segment that used this memory before */
        *read = step;
        h->cells[c] = (cell){.summed = true, .final = last, .made = step, .input_sent = -1};
    }
}

typedef enum { SEND_UNITS, RECEIVE_UNITS, ADD_INPUTS, ADD_SUMS, ADD_LAST_INPUTS, ADD_LAST_SUMS } action;

static void for_units(rhd *h, int peer, int first, int chunks, action what)
{
    for (int c = first; c < first + chunks;) {
        unit u = unit_at(h, c, first + chunks - c);
        c += u.chunks;
        if (!exists(h, u))
            continue;
        if (what == SEND_UNITS)
            send_unit(h, peer, u);
        else if (what == RECEIVE_UNITS)
            receive_unit(h, peer, u);
        else
            add_unit(h, peer, u, what == ADD_INPUTS || what == ADD_LAST_INPUTS, what >= ADD_LAST_INPUTS);
    }
}

static void halve(rhd *h, int k)
{
    cst_rhd_step step = cst_rhd(h->n, h->rank, k);
    bool input = k == 0 && cst_fold(h->n, step.partner) == CST_FOLD_ALONE;
    bool last = k == cst_rhd_halvings(h->n) - 1;
    action add = last ? (input ? ADD_LAST_INPUTS : ADD_LAST_SUMS) : (input ? ADD_INPUTS : ADD_SUMS);
    h->s->round = 1 + k;
    for_units(h, step.partner, step.give_first, step.chunks, SEND_UNITS);
    for_units(h, step.partner, step.keep_first, step.chunks, add);
}

static void double_up(rhd *h, int k)
{
    cst_rhd_step step = cst_rhd(h->n, h->rank, k);
    h->s->round = 2 * cst_rhd_halvings(h->n) - k;
    for_units(h, step.partner, step.keep_first, step.chunks, SEND_UNITS);
    for_units(h, step.partner, step.give_first, step.chunks, RECEIVE_UNITS);
}

static void one_segment(rhd *h)
{
    int halvings = cst_rhd_halvings(h->n), partner = cst_fold_partner(h->n, h->rank);
    cst_fold_role role = cst_fold(h->n, h->rank);
    for (int c = 0; c < h->p; c++)
        h->cells[c] = (cell){.made = -1, .input_sent = -1};
    h->s->round = 0;
    if (role == CST_FOLD_GIVES) {
        for_units(h, partner, 0, h->p, SEND_UNITS);
        h->s->round = 2 * halvings + 1;
        for_units(h, partner, 0, h->p, RECEIVE_UNITS);
        return;
    }
    if (role == CST_FOLD_TAKES)
        for_units(h, partner, 0, h->p, ADD_INPUTS);
    for (int k = 0; k < halvings; k++)
        halve(h, k);
    for (int k = halvings - 1; k >= 0; k--)
        double_up(h, k);
    h->s->round = 2 * halvings + 1;
    if (role == CST_FOLD_TAKES)
        for_units(h, partner, 0, h->p, SEND_UNITS);
}

/* How the vector is cut: chunks into segments, or several chunks together in one. */
static void cut_chunks(rhd *h)
{
    const cst_plan *plan = &h->s->plan;
    size_t longest = 0;
    for (int c = 0; c < h->p; c++) {
        size_t size = cst_range_size(cst_chunk(plan->call.count, h->p, c));
        longest = size > longest ? size : longest;
    }
    h->cut = cst_cut_for(plan, longest, cst_plan_widens(plan) ? sizeof(float) : coset_dtype_size(plan->call.dtype));
    h->together = 1;
    while (h->cut.segments == 1 && 2 * h->together <= h->p && 2 * (size_t)h->together * longest <= h->cut.elements)
        h->together *= 2;
}

void cst_build_rhd(cst_schedule *s)
{
    rhd h = {.s = s, .n = s->plan.size, .rank = s->plan.rank, .p = cst_pow2_floor(s->plan.size)};
    bool widens = cst_plan_widens(&s->plan);
    cut_chunks(&h);
    h.cells = malloc((size_t)h.p * sizeof *h.cells);
    h.sum_read = malloc((size_t)h.p * CST_WAVES * sizeof *h.sum_read);
    if (!h.cells || !h.sum_read) {
        s->status = COSET_ERR_MEMORY;
    } else {
        h.slots = cst_slots_reserve(s, SLOTS, h.cut.longest * (size_t)h.together, widens);
        if (widens)
            h.sums = cst_scratch(s, sizeof(float) * (h.cut.segments == 1 ? s->plan.call.count
                                                                         : h.cut.elements * (size_t)(CST_WAVES * h.p)));
        cst_window_for(s, 4 * h.p);
        for (int i = 0; i < SLOTS; i++)
            h.vacant[i] = -1;
        for (int i = 0; i < CST_WAVES * h.p; i++)
            h.sum_read[i] = -1;
        for (int i = 0; i < h.cut.segments; i++) {
            s->segment = i;
            one_segment(&h);
        }
    }
    free(h.cells);
    free(h.sum_read);
}
