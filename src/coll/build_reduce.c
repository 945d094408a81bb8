/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce up the binomial tree (patterns/binomial.h), segment after segment. For 16-bit floats leaves send inputs as
 * they are, inner nodes f32.
 */
#include "coll/build.h"

#include "coll/patterns/binomial.h"
#include "coll/segment.h"

enum { CHILDREN_MAX = 31 }; /* log2 of the largest int */

typedef struct {
    cst_schedule *s;
    int parent, children;
    cst_cut cut;
    cst_slots slots; /* [wave][child ..., sum] */
    int summed[CST_WAVES], passed[CST_WAVES];
} up;

static cst_place slot(const up *u, int wave, int i, bool wide)
{
    return cst_slot(u->slots, wave * (u->children + 1) + i, wide && cst_plan_widens(&u->s->plan));
}

static int add_children(up *u, int wave, cst_range r, cst_place sum)
{
    cst_schedule *s = u->s;
    int n = s->plan.size, rank = s->plan.rank, root = s->plan.call.root, first = s->steps;
    cst_part part[CHILDREN_MAX + 1] = {{rank, cst_input(&s->plan, r.begin)}};
    for (int j = 0; j < u->children; j++) {
        int child = cst_binomial_child(n, rank, j);
        cst_place to = slot(u, wave, j, cst_binomial_children(n, root, child) > 0);
        cst_add_recv(s, child, (uint32_t)s->segment, to, cst_range_size(r));
        cst_after(s, u->summed[wave]);
        part[j + 1] = (cst_part){child, to};
    }
    u->summed[wave] = cst_add_reduce(s, sum, cst_range_size(r), u->parent < 0 && cst_plan_divides(&s->plan));
    cst_reads_in_rank_order(s, part, u->children + 1);
    for (int j = 0; j < u->children; j++)
        cst_after(s, first + j);
    cst_after(s, u->passed[wave]);
    return u->summed[wave];
}

void cst_build_reduce(cst_schedule *s)
{
    int n = s->plan.size, rank = s->plan.rank, root = s->plan.call.root;
    up u = {.s = s, .parent = cst_binomial_parent(n, root, rank), .children = cst_binomial_children(n, root, rank)};
    bool widens = cst_plan_widens(&s->plan);
    cst_range all = {0, s->plan.call.count};
    u.cut = cst_cut_for(&s->plan, all.end, widens ? sizeof(float) : coset_dtype_size(s->plan.call.dtype));
    if (u.children > 0)
        u.slots = cst_slots_reserve(s, CST_WAVES * (u.children + 1), u.cut.longest, widens);
    for (int w = 0; w < CST_WAVES; w++)
        u.summed[w] = u.passed[w] = -1;
    for (int i = 0; i < u.cut.segments; i++) {
        cst_range r = cst_segment(all, u.cut, i);
        cst_place from = cst_input(&s->plan, r.begin);
        int made = -1, wave = i % CST_WAVES;
        s->segment = i;
        if (u.children > 0) {
            from = u.parent < 0 ? cst_result(&s->plan, r.begin) : slot(&u, wave, u.children, true);
            made = add_children(&u, wave, r, from);
        }
        if (u.parent >= 0) {
            u.passed[wave] = cst_add_send(s, u.parent, (uint32_t)i, from, cst_range_size(r));
            cst_after(s, made);
        }
    }
}
