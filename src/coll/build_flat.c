/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody sends its whole vector to everybody (patterns/naive.h), and everybody sums all in rank order: all-reduce
 * `flat` and `naive`. As a reduce: everybody sends to the root.
 */
#include "coll/build.h"

#include "coll/patterns/naive.h"
#include "coll/segment.h"

typedef struct {
    cst_schedule *s;
    int n, rank;
    cst_cut cut;
    cst_slots slots;       /* [wave][rank] */
    int summed[CST_WAVES]; /* after this step the wave's slots are free */
} flat;

static bool takes(const flat *f)
{
    return f->s->plan.call.kind == CST_ALLREDUCE || f->rank == f->s->plan.call.root;
}

static void send_all(flat *f, cst_range r)
{
    const cst_plan *plan = &f->s->plan;
    if (plan->call.kind == CST_REDUCE) {
        if (f->rank != plan->call.root)
            cst_add_send(f->s, plan->call.root, (uint32_t)f->s->segment, cst_input(plan, r.begin), cst_range_size(r));
        return;
    }
    for (int k = 0; k < f->n - 1; k++)
        cst_add_send(f->s, cst_naive_to(f->n, f->rank, k), (uint32_t)f->s->segment, cst_input(plan, r.begin),
                     cst_range_size(r));
}

static void one_segment(flat *f, cst_range r, int wave)
{
    cst_schedule *s = f->s;
    int first = s->steps;
    for (int k = 0; k < f->n - 1 && takes(f); k++) {
        int from = cst_naive_from(f->n, f->rank, k);
        cst_add_recv(s, from, (uint32_t)s->segment, cst_slot(f->slots, wave * f->n + from, false), cst_range_size(r));
        cst_after(s, f->summed[wave]);
    }
    send_all(f, r);
    int last = s->steps;
    if (!takes(f))
        return;
    f->summed[wave] = cst_add_reduce(s, cst_result(&s->plan, r.begin), cst_range_size(r), cst_plan_divides(&s->plan));
    for (int q = 0; q < f->n; q++)
        cst_reads(s, q == f->rank ? cst_input(&s->plan, r.begin) : cst_slot(f->slots, wave * f->n + q, false));
    /* The receives; and the sends too, for in place the sum overwrites what they send. */
    for (int step = first; step < last; step++)
        cst_after(s, step);
}

void cst_build_flat(cst_schedule *s)
{
    flat f = {.s = s, .n = s->plan.size, .rank = s->plan.rank};
    cst_range all = {0, s->plan.call.count};
    f.cut = cst_cut_for(&s->plan, all.end, coset_dtype_size(s->plan.call.dtype));
    int waves = f.cut.segments < CST_WAVES ? f.cut.segments : CST_WAVES;
    cst_window_for(s, 2 * f.n);
    if (takes(&f))
        f.slots = cst_slots_reserve(s, waves * f.n, f.cut.longest, false);
    for (int w = 0; w < CST_WAVES; w++)
        f.summed[w] = -1;
    for (int i = 0; i < f.cut.segments; i++) {
        s->segment = i;
        one_segment(&f, cst_segment(all, f.cut, i), i % CST_WAVES);
    }
}
