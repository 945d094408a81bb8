/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two binary trees (patterns/tree.h), each with one half of the vector: sums go up, results come down, segment after
 * segment, so that all links are busy at once. For 16-bit floats leaves send inputs as they are, inner nodes f32.
 */
#include "coll/build.h"

#include "coll/patterns/tree.h"
#include "coll/segment.h"

enum { CHILDREN = 2 };
enum { UP, DOWN, WAYS };

typedef struct {
    cst_schedule *s;
    int n, rank;
    cst_cut cut;
    cst_slots slots;                  /* [tree][wave][child 0, child 1, sum] */
    int summed[CST_TREES][CST_WAVES]; /* after this step the children's slots are free, */
    int passed[CST_TREES][CST_WAVES]; /* and after this one that of the sum */
} tree;

static cst_place slot(const tree *t, int which, int wave, int i, bool wide)
{
    return cst_slot(t->slots, (which * CST_WAVES + wave) * (CHILDREN + 1) + i, wide && cst_plan_widens(&t->s->plan));
}
static uint32_t tag(const tree *t, int which, int way)
{
    return (uint32_t)((which * WAYS + way) * t->cut.segments + t->s->segment);
}
static bool is_leaf(const tree *t, int which, int rank)
{
    cst_tree_node node = cst_tree(t->n, which, rank);
    return node.child[0] < 0 && node.child[1] < 0;
}

/* Receives from the children and adds to the own input; returns the step, and in *sum where it puts the sum. */
static int add_children(tree *t, int which, int wave, cst_tree_node node, cst_range r, cst_place *sum)
{
    cst_schedule *s = t->s;
    bool root = node.parent < 0;
    cst_part part[CHILDREN + 1] = {{t->rank, cst_input(&s->plan, r.begin)}};
    int parts = 1, recv[CHILDREN] = {-1, -1};
    for (int j = 0; j < CHILDREN; j++) {
        if (node.child[j] < 0)
            continue;
        cst_place to = slot(t, which, wave, j, !is_leaf(t, which, node.child[j]));
        recv[j] = cst_add_recv(s, node.child[j], tag(t, which, UP), to, cst_range_size(r));
        cst_after(s, t->summed[which][wave]);
        part[parts++] = (cst_part){node.child[j], to};
    }
    *sum = root ? cst_result(&s->plan, r.begin) : slot(t, which, wave, CHILDREN, true);
    int step = cst_add_reduce(s, *sum, cst_range_size(r), root && cst_plan_divides(&s->plan));
    cst_reads_in_rank_order(s, part, parts);
    cst_after(s, recv[0]);
    cst_after(s, recv[1]);
    cst_after(s, t->passed[which][wave]);
    t->summed[which][wave] = step;
    return step;
}

static void one_segment(tree *t, int which, int wave, cst_range r)
{
    cst_schedule *s = t->s;
    cst_tree_node node = cst_tree(t->n, which, t->rank);
    cst_place sum = cst_input(&s->plan, r.begin);
    int made = is_leaf(t, which, t->rank) ? -1 : add_children(t, which, wave, node, r, &sum);
    if (node.parent >= 0) {
        int sent = cst_add_send(s, node.parent, tag(t, which, UP), sum, cst_range_size(r));
        cst_after(s, made);
        t->passed[which][wave] = sent;
        s->round = DOWN;
        made = cst_add_recv(s, node.parent, tag(t, which, DOWN), cst_result(&s->plan, r.begin), cst_range_size(r));
        cst_after(s, sent); /* in place, a leaf sent this very memory */
    }
    for (int j = 0; j < CHILDREN; j++) {
        if (node.child[j] < 0)
            continue;
        cst_add_send(s, node.child[j], tag(t, which, DOWN), cst_result(&s->plan, r.begin), cst_range_size(r));
        cst_after(s, made);
    }
}

void cst_build_tree(cst_schedule *s)
{
    tree t = {.s = s, .n = s->plan.size, .rank = s->plan.rank};
    bool widens = cst_plan_widens(&s->plan);
    size_t count = s->plan.call.count, half = cst_range_size(cst_chunk(count, CST_TREES, 0));
    if (count - half > half)
        half = count - half;
    t.cut = cst_cut_for(&s->plan, half, widens ? sizeof(float) : coset_dtype_size(s->plan.call.dtype));
    t.slots = cst_slots_reserve(s, CST_TREES * CST_WAVES * (CHILDREN + 1), t.cut.longest, widens);
    /* A segment comes back down after a way up and down the tree; until then others must be able to start. */
    cst_window_for(s, CST_TREES * 7 * (cst_tree_steps(t.n) + 1));
    for (int which = 0; which < CST_TREES; which++)
        for (int w = 0; w < CST_WAVES; w++)
            t.summed[which][w] = t.passed[which][w] = -1;
    for (int i = 0; i < t.cut.segments; i++) {
        for (int which = 0; which < CST_TREES; which++) {
            cst_range r = cst_segment(cst_chunk(count, CST_TREES, which), t.cut, i);
            s->segment = i;
            s->round = UP;
            if (cst_segment_exists(r, i))
                one_segment(&t, which, i % CST_WAVES, r);
        }
    }
}
