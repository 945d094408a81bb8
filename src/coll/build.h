/* SPDX-License-Identifier: Apache-2.0 */
/* From a plan to a schedule: one builder per algorithm, each in its own file (build_NAME.c). */
#ifndef CST_COLL_BUILD_H
#define CST_COLL_BUILD_H
#include "coll/schedule.h"
#include "coll/select.h"

/* Fills the schedule with this rank's part of the plan. UNSUPPORTED if no builder has this kind and algorithm (algo as
 * cst_select returns it), with a text in *why (may be NULL); MEMORY. One rank alone copies, whatever the algorithm. */
coset_status cst_build(cst_schedule *s, const cst_plan *plan, cst_algo algo, coset_error *why);

/* Builders, for size >= 2. They fill a schedule that has been reset; s->status tells of missing memory. */
void cst_build_flat(cst_schedule *s);      /* all-reduce (flat, naive), reduce (flat) */
void cst_build_direct(cst_schedule *s);    /* all-reduce, reduce-scatter, all-gather, reduce */
void cst_build_ring(cst_schedule *s);      /* all-reduce, reduce-scatter, all-gather */
void cst_build_rd(cst_schedule *s);        /* all-reduce */
void cst_build_rhd(cst_schedule *s);       /* all-reduce */
void cst_build_tree(cst_schedule *s);      /* all-reduce */
void cst_build_broadcast(cst_schedule *s); /* binomial */
void cst_build_chain(cst_schedule *s);     /* broadcast of long vectors */
void cst_build_reduce(cst_schedule *s);    /* binomial */
void cst_build_pairwise(cst_schedule *s);  /* all-to-all */
void cst_build_barrier(cst_schedule *s);   /* dissemination */
void cst_build_point(cst_schedule *s);     /* send, receive */

/* ---- What builders share. ---- */

/* Segments under way at a time: their scratch memory is used again by the segment this many later. */
#define CST_WAVES 4

/* `count` slots of equal size in scratch memory, each for `elements` elements, wide ones or of the plan's type. */
typedef struct {
    size_t offset, stride;
} cst_slots;
cst_slots cst_slots_reserve(cst_schedule *s, int count, size_t elements, bool wide);
cst_place cst_slot(cst_slots slots, int i, bool wide);

/* One operand of a sum: a slot or an input, and the rank that gave it. */
typedef struct {
    int rank;
    cst_place place;
} cst_part;
/* Adds the parts to the REDUCE just added, lower ranks first. Sorts `part`. */
void cst_reads_in_rank_order(cst_schedule *s, cst_part *part, int parts);

/* Widens the executor's window to hold `steps` steps twice: what one segment needs in one round, and the next. */
void cst_window_for(cst_schedule *s, int steps);

/* Copies segment `range` of the input to its result, unless it is there already. */
void cst_copy_own(cst_schedule *s, cst_range range);
#endif
