/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring (patterns/ring.h), segmented: all-reduce, and its two phases alone as reduce-scatter and all-gather.
 *
 * Segments go round in groups; while one segment of a group is reduced the next is on the wire. Partial sums stay in
 * scratch memory, which they do not leave for the cache's sake, and only finished sums are written to the result. For
 * 16-bit floats the partial sums are f32: of the N - 1 messages that carry a chunk to its owner all but the first,
 * which carries an input, are twice as long.
 */
#include "coll/build.h"

#include "coll/patterns/ring.h"
#include "coll/segment.h"
#include <stdlib.h>

enum {
    GROUP = 4, /* segments that go round together: one received, one reduced, one sent, one in reserve */
    GROUPS = 2 /* groups under way */
};
/* What slots are for: partial sums of even and of odd rounds; and inputs received, where they are narrower. */
enum { EVEN, ODD, NARROW, KINDS };

typedef struct {
    cst_schedule *s;
    int n, rank;
    int shift; /* added to the pattern's chunk numbers */
    cst_cut cut;
    cst_slots slots;                  /* [kind][group][segment in group] */
    int vacant[GROUPS][KINDS][GROUP]; /* the step after which a slot is free */
    int ready[GROUP];                 /* the step that made what is sent next */
    int *input_used; /* [round][segment in group]: the step that sent (round 0) or added (round k + 1) an
                                      input; in place the result of that chunk must wait for it */
} ring;

/* A segment on its way through one round. */
typedef struct {
    int group, j; /* which slots */
    int k;        /* round of the phase */
    uint32_t tag;
} at;

static cst_range segment_of(const ring *r, int chunk)
{
    return cst_segment(cst_plan_chunk(&r->s->plan, cst_mod(chunk + r->shift, r->n)), r->cut, r->s->segment);
}
static bool exists(const ring *r, cst_range range)
{
    return cst_segment_exists(range, r->s->segment);
}
static cst_place slot(const ring *r, at a, int kind)
{
    return cst_slot(r->slots, (kind * GROUPS + a.group) * GROUP + a.j, kind != NARROW && cst_plan_widens(&r->s->plan));
}

static void send_partial(ring *r, cst_ring_step step, at a)
{
    cst_schedule *s = r->s;
    cst_range out = segment_of(r, step.send_chunk);
    if (!exists(r, out))
        return;
    if (a.k == 0) {
        r->input_used[a.j] = cst_add_send(s, step.to, a.tag, cst_input(&s->plan, out.begin), cst_range_size(out));
        return;
    }
    int kind = (a.k - 1) % 2;
    r->vacant[a.group][kind][a.j] = cst_add_send(s, step.to, a.tag, slot(r, a, kind), cst_range_size(out));
    cst_after(s, r->ready[a.j]);
}

static void receive_and_add(ring *r, cst_ring_step step, at a, int recv)
{
    cst_schedule *s = r->s;
    cst_range in = segment_of(r, step.recv_chunk);
    int sum = a.k % 2, got = a.k == 0 && cst_plan_widens(&s->plan) ? NARROW : sum;
    bool last = a.k == r->n - 2;
    int step_index = cst_add_reduce(s, last ? cst_result(&s->plan, in.begin) : slot(r, a, sum), cst_range_size(in),
                                    last && cst_plan_divides(&s->plan));
    cst_reads(s, slot(r, a, got));
    cst_reads(s, cst_input(&s->plan, in.begin));
    cst_after(s, recv);
    if (got != sum && !last)
        cst_after(s, r->vacant[a.group][sum][a.j]);
    if (got != sum || last)
        r->vacant[a.group][got][a.j] = step_index;
    r->ready[a.j] = r->input_used[(a.k + 1) * GROUP + a.j] = step_index;
}

static void reduce_round(ring *r, at a)
{
    cst_schedule *s = r->s;
    cst_ring_step step = cst_ring_reduce_scatter(r->n, r->rank, a.k);
    cst_range in = segment_of(r, step.recv_chunk);
    int got = a.k == 0 && cst_plan_widens(&s->plan) ? NARROW : a.k % 2, recv = -1;
    if (exists(r, in)) {
        recv = cst_add_recv(s, step.from, a.tag, slot(r, a, got), cst_range_size(in));
        cst_after(s, r->vacant[a.group][got][a.j]);
    }
    send_partial(r, step, a);
    if (exists(r, in))
        receive_and_add(r, step, a, recv);
}

/* `shift`: as in cst_ring_allgather. */
static void gather_round(ring *r, at a, int shift)
{
    cst_schedule *s = r->s;
    cst_ring_step step = cst_ring_allgather(r->n, r->rank, a.k, shift);
    cst_range in = segment_of(r, step.recv_chunk), out = segment_of(r, step.send_chunk);
    int made = r->ready[a.j];
    if (exists(r, in)) {
        r->ready[a.j] = cst_add_recv(s, step.from, a.tag, cst_result(&s->plan, in.begin), cst_range_size(in));
        if (s->plan.call.kind == CST_ALLREDUCE) /* chunk rank - k: the input used in round k */
            cst_after(s, r->input_used[a.k * GROUP + a.j]);
    }
    if (exists(r, out)) {
        bool input = s->plan.call.kind == CST_ALLGATHER && a.k == 0;
        cst_add_send(s, step.to, a.tag, input ? cst_input(&s->plan, out.begin) : cst_result(&s->plan, out.begin),
                     cst_range_size(out));
        cst_after(s, made);
    }
}

static void one_group(ring *r, int first, int segments)
{
    cst_schedule *s = r->s;
    cst_kind kind = s->plan.call.kind;
    int phase = cst_ring_phase_steps(r->n), begin = kind == CST_ALLGATHER ? phase : 0;
    int end = kind == CST_REDUCE_SCATTER ? phase : 2 * phase;
    for (int j = 0; j < GROUP; j++)
        r->ready[j] = -1;
    for (int i = 0; i < r->n * GROUP; i++)
        r->input_used[i] = -1;
    for (int k = begin; k < end; k++) {
        for (int j = 0; j < segments; j++) {
            s->round = k;
            s->segment = first + j;
            at a = {first / GROUP % GROUPS, j, k % phase, (uint32_t)(k * r->cut.segments + s->segment)};
            if (k < phase)
                reduce_round(r, a);
            else
                gather_round(r, a, kind == CST_ALLGATHER ? 0 : 1);
        }
    }
}

static void copy_own_chunk(ring *r, int first, int segments)
{
    for (int j = 0; j < segments; j++) {
        r->s->segment = first + j;
        cst_copy_own(r->s, segment_of(r, r->rank));
    }
}

void cst_build_ring(cst_schedule *s)
{
    cst_kind kind = s->plan.call.kind;
    bool sums = kind != CST_ALLGATHER;
    /* A reduce-scatter leaves chunk i at rank i, where the pattern leaves chunk i + 1. */
    ring r = {.s = s, .n = s->plan.size, .rank = s->plan.rank, .shift = kind == CST_REDUCE_SCATTER ? -1 : 0};
    bool widens = sums && cst_plan_widens(&s->plan);
    r.input_used = malloc((size_t)(r.n * GROUP) * sizeof *r.input_used);
    if (!r.input_used) {
        s->status = COSET_ERR_MEMORY;
        return;
    }
    r.cut = cst_cut_chunks(&s->plan, widens);
    if (sums)
        r.slots = cst_slots_reserve(s, (widens ? KINDS : NARROW) * GROUPS * GROUP, r.cut.longest, widens);
    for (int g = 0; g < GROUPS; g++)
        for (int kind_of_slot = 0; kind_of_slot < KINDS; kind_of_slot++)
            for (int j = 0; j < GROUP; j++)
                r.vacant[g][kind_of_slot][j] = -1;
    for (int first = 0; first < r.cut.segments; first += GROUP) {
        int segments = r.cut.segments - first < GROUP ? r.cut.segments - first : GROUP;
        one_group(&r, first, segments);
        if (kind == CST_ALLGATHER)
            copy_own_chunk(&r, first, segments);
    }
    free(r.input_used);
}
