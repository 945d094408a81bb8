/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursive doubling (patterns/rd.h), with folding for other N than powers of two. Each segment goes through all rounds
 * by itself. Round 0 is the gift of the fold, rounds 1 to log2 p the exchanges, the last the return. Both ranks of an
 * exchange add the same two operands in the same order, so all end with the same bits; for 16-bit floats, inputs travel
 * as they are and partial sums as f32.
 */
#include "coll/build.h"

#include "coll/patterns/rd.h"
#include "coll/segment.h"

/* Slots of a wave: what is received, and partial sums, of even and of odd sums. */
enum { GOT_EVEN, GOT_ODD, SUM_EVEN, SUM_ODD, KINDS };

typedef struct {
    cst_schedule *s;
    int n, rank;
    cst_cut cut;
    cst_slots slots;            /* [wave][kind] */
    int read[CST_WAVES][KINDS]; /* the last step that read a slot, */
    int sent[CST_WAVES][KINDS]; /* and the last that sent it */
    /* The segment under construction. */
    cst_range range;
    int wave, sums; /* sums: how many there have been */
    cst_place have; /* the partial sum so far, */
    int have_kind;  /* its slot, -1 for the input, */
    int made;       /* and the step that made it, -1 for the input */
    int input_sent; /* the step that sent the input; in place the result must wait for it */
} rd;

static uint32_t tag(const rd *r, int round)
{
    return (uint32_t)(round * r->cut.segments + r->s->segment);
}

/* The slot's last reader and last sender must be done before the step just added may write it. */
static void wait_for_slot(rd *r, int kind)
{
    cst_after(r->s, r->read[r->wave][kind]);
    cst_after(r->s, r->sent[r->wave][kind]);
}

static int receive(rd *r, int from, int round, bool input)
{
    int kind = GOT_EVEN + r->sums % 2;
    bool wide = !input && cst_plan_widens(&r->s->plan);
    int step = cst_add_recv(r->s, from, tag(r, round), cst_slot(r->slots, r->wave * KINDS + kind, wide),
                            cst_range_size(r->range));
    wait_for_slot(r, kind);
    return step;
}

static void send_sum(rd *r, int to, int round)
{
    int step = cst_add_send(r->s, to, tag(r, round), r->have, cst_range_size(r->range));
    cst_after(r->s, r->made);
    if (r->have_kind >= 0)
        r->sent[r->wave][r->have_kind] = step;
    else
        r->input_sent = step;
}

/* Adds what `recv` brings from `peer` to what there is. The last sum goes to the result. */
static void add_received(rd *r, int peer, int recv, bool input, bool last)
{
    cst_schedule *s = r->s;
    int got = r->wave * KINDS + GOT_EVEN + r->sums % 2, kind = SUM_EVEN + r->sums % 2;
    bool widens = cst_plan_widens(&s->plan);
    cst_place to = last ? cst_result(&s->plan, r->range.begin) : cst_slot(r->slots, r->wave * KINDS + kind, widens);
    cst_part part[2] = {{r->rank, r->have}, {peer, cst_slot(r->slots, got, !input && widens)}};
    int step = cst_add_reduce(s, to, cst_range_size(r->range), last && cst_plan_divides(&s->plan));
    cst_reads_in_rank_order(s, part, 2);
    cst_after(s, recv);
    cst_after(s, r->made);
    if (last)
        cst_after(s, r->input_sent);
    else
        wait_for_slot(r, kind);
    r->read[r->wave][GOT_EVEN + r->sums % 2] = step;
    if (r->have_kind >= 0)
        r->read[r->wave][r->have_kind] = step;
    r->have = to;
    r->have_kind = last ? -1 : kind;
    r->made = step;
    r->sums++;
}

/* The even rank of a pair: gives its input, takes the result. */
static void give(rd *r, int partner, int last_round)
{
    send_sum(r, partner, 0);
    r->s->round = last_round;
    cst_add_recv(r->s, partner, tag(r, last_round), cst_result(&r->s->plan, r->range.begin), cst_range_size(r->range));
    cst_after(r->s, r->input_sent);
}

static void one_segment(rd *r)
{
    cst_schedule *s = r->s;
    int exchanges = cst_rd_exchanges(r->n), partner = cst_fold_partner(r->n, r->rank);
    cst_fold_role role = cst_fold(r->n, r->rank);
    r->have = cst_input(&s->plan, r->range.begin);
    r->sums = 0;
    r->have_kind = r->made = r->input_sent = -1;
    s->round = 0;
    if (role == CST_FOLD_GIVES) {
        give(r, partner, exchanges + 1);
        return;
    }
    if (role == CST_FOLD_TAKES)
        add_received(r, partner, receive(r, partner, 0, true), true, false);
    for (int k = 0; k < exchanges; k++) {
        int peer = cst_rd_partner(r->n, r->rank, k);
        bool input = k == 0 && cst_fold(r->n, peer) == CST_FOLD_ALONE;
        s->round = k + 1;
        int recv = receive(r, peer, k + 1, input);
        send_sum(r, peer, k + 1);
        add_received(r, peer, recv, input, k == exchanges - 1);
    }
    s->round = exchanges + 1;
    if (role == CST_FOLD_TAKES)
        send_sum(r, partner, exchanges + 1);
}

void cst_build_rd(cst_schedule *s)
{
    rd r = {.s = s, .n = s->plan.size, .rank = s->plan.rank};
    bool widens = cst_plan_widens(&s->plan);
    cst_range all = {0, s->plan.call.count};
    r.cut = cst_cut_for(&s->plan, all.end, widens ? sizeof(float) : coset_dtype_size(s->plan.call.dtype));
    r.slots = cst_slots_reserve(s, CST_WAVES * KINDS, r.cut.longest, widens);
    for (int w = 0; w < CST_WAVES; w++)
        for (int kind = 0; kind < KINDS; kind++)
            r.read[w][kind] = r.sent[w][kind] = -1;
    for (int i = 0; i < r.cut.segments; i++) {
        s->segment = i;
        r.wave = i % CST_WAVES;
        r.range = cst_segment(all, r.cut, i);
        one_segment(&r);
    }
}
