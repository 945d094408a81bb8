/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rounds (patterns/direct.h): chunk j of everybody goes to rank j, which sums in rank order; the sums go to
 * everybody. A reduce-scatter is the first round, an all-gather the second; a reduce is the first round, then the sums
 * go to the root. On the wire are elements of the user's type, 16-bit floats included.
 */
#include "coll/build.h"

#include "coll/patterns/direct.h"
#include "coll/segment.h"
#include <stdlib.h>

typedef struct {
    cst_schedule *s;
    int n, rank;
    cst_cut cut;
    cst_slots slots; /* [wave][rank]; slot [wave][own rank] takes the sum where there is no result buffer for it */
    int *sent;       /* [rank]: the step that sent the segment of that rank's chunk */
    int summed[CST_WAVES]; /* after this step the wave's slots are free, */
    int passed[CST_WAVES]; /* and after this one that of the sum */
} direct;

static cst_range segment_of(const direct *d, int chunk)
{
    return cst_segment(cst_plan_chunk(&d->s->plan, chunk), d->cut, d->s->segment);
}
static bool exists(const direct *d, cst_range r)
{
    return cst_segment_exists(r, d->s->segment);
}
static uint32_t tag(const direct *d, int round)
{
    return (uint32_t)(round * d->cut.segments + d->s->segment);
}

static void scatter(direct *d, int wave)
{
    cst_schedule *s = d->s;
    cst_range own = segment_of(d, d->rank);
    for (int k = 0; k < d->n - 1 && exists(d, own); k++) {
        int from = cst_direct_from(d->n, d->rank, k);
        cst_add_recv(s, from, tag(d, 0), cst_slot(d->slots, wave * d->n + from, false), cst_range_size(own));
        cst_after(s, d->summed[wave]);
    }
    for (int k = 0; k < d->n - 1; k++) {
        int to = cst_direct_to(d->n, d->rank, k);
        cst_range r = segment_of(d, to);
        d->sent[to] = -1;
        if (exists(d, r))
            d->sent[to] = cst_add_send(s, to, tag(d, 0), cst_input(&s->plan, r.begin), cst_range_size(r));
    }
}

/* Sums the own chunk's segment, received by n - 1 steps from first_recv on, into `to`; returns the step. */
static int sum(direct *d, int wave, cst_place to, int first_recv)
{
    cst_schedule *s = d->s;
    cst_range own = segment_of(d, d->rank);
    int step = cst_add_reduce(s, to, cst_range_size(own), cst_plan_divides(&s->plan));
    for (int q = 0; q < d->n; q++)
        cst_reads(s, q == d->rank ? cst_input(&s->plan, own.begin) : cst_slot(d->slots, wave * d->n + q, false));
    for (int k = 0; k < d->n - 1; k++)
        cst_after(s, first_recv + k);
    return step;
}

/* The second round. `summed` is the step that made `from`, the own segment; -1 if it was there from the start. */
static void gather(direct *d, cst_place from, int summed)
{
    cst_schedule *s = d->s;
    cst_range own = segment_of(d, d->rank);
    for (int k = 0; k < d->n - 1; k++) {
        int peer = cst_direct_from(d->n, d->rank, k);
        cst_range r = segment_of(d, peer);
        if (!exists(d, r))
            continue;
        cst_add_recv(s, peer, tag(d, 1), cst_result(&s->plan, r.begin), cst_range_size(r));
        cst_after(s, d->sent[peer]); /* in place, this is what was sent */
    }
    for (int k = 0; k < d->n - 1 && exists(d, own); k++) {
        cst_add_send(s, cst_direct_to(d->n, d->rank, k), tag(d, 1), from, cst_range_size(own));
        cst_after(s, summed);
    }
}

/* The second round of a reduce: only the root receives. */
static void gather_to_root(direct *d, cst_place from, int summed, int wave)
{
    cst_schedule *s = d->s;
    cst_range own = segment_of(d, d->rank);
    int root = s->plan.call.root;
    if (d->rank != root && exists(d, own)) {
        d->passed[wave] = cst_add_send(s, root, tag(d, 1), from, cst_range_size(own));
        cst_after(s, summed);
    }
    for (int k = 0; k < d->n - 1 && d->rank == root; k++) {
        int peer = cst_direct_from(d->n, d->rank, k);
        cst_range r = segment_of(d, peer);
        if (!exists(d, r))
            continue;
        cst_add_recv(s, peer, tag(d, 1), cst_result(&s->plan, r.begin), cst_range_size(r));
        cst_after(s, d->sent[peer]);
    }
}

static void one_segment(direct *d, int wave)
{
    cst_schedule *s = d->s;
    cst_kind kind = s->plan.call.kind;
    cst_range own = segment_of(d, d->rank);
    s->round = 0;
    if (kind == CST_ALLGATHER) {
        cst_copy_own(s, own);
        gather(d, cst_input(&s->plan, own.begin), -1);
        return;
    }
    bool here = kind != CST_REDUCE || d->rank == s->plan.call.root;
    cst_place to = here ? cst_result(&s->plan, own.begin) : cst_slot(d->slots, wave * d->n + d->rank, false);
    int first_recv = s->steps, summed = -1;
    scatter(d, wave);
    if (exists(d, own)) {
        summed = sum(d, wave, to, first_recv);
        cst_after(s, d->passed[wave]);
        d->summed[wave] = summed;
    }
    s->round = 1;
    if (kind == CST_ALLREDUCE)
        gather(d, to, summed);
    else if (kind == CST_REDUCE)
        gather_to_root(d, to, summed, wave);
}

void cst_build_direct(cst_schedule *s)
{
    direct d = {.s = s, .n = s->plan.size, .rank = s->plan.rank, .cut = cst_cut_chunks(&s->plan, false)};
    d.sent = malloc((size_t)d.n * sizeof *d.sent);
    if (!d.sent) {
        s->status = COSET_ERR_MEMORY;
        return;
    }
    int waves = d.cut.segments < CST_WAVES ? d.cut.segments : CST_WAVES;
    cst_window_for(s, 4 * d.n);
    if (s->plan.call.kind != CST_ALLGATHER)
        d.slots = cst_slots_reserve(s, waves * d.n, d.cut.longest, false);
    for (int q = 0; q < d.n; q++)
        d.sent[q] = -1;
    for (int w = 0; w < CST_WAVES; w++)
        d.summed[w] = d.passed[w] = -1;
    for (int i = 0; i < d.cut.segments; i++) {
        s->segment = i;
        one_segment(&d, i % CST_WAVES);
    }
    free(d.sent);
}
