/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all ranks know before a call, and the plan that follows from it: codes, owners and frame sizes, agreed without
 * talking. Everything here is computed from tracked statistics in wire form, with portable arithmetic.
 *
 * Blocks are planned in groups of up to 16 neighbours of one tensor and one owner: within a group every block gets the same
 * absolute error, since bits are spent best where the spread is. A group's D1 is kept as an energy index; blocks are planned relative to
 * it, and plans are cached, since few relative values occur.
 */
#ifndef CST_MEAN_SHARED_H
#define CST_MEAN_SHARED_H
#include "mean/layout.h"
#include "mean/plan.h"
#include "mean/track.h"

enum { CST_GROUP = 16 };

/* Rounds 0 to 3: eight transfers at worst. What an owner asks for in round 2 is certain to do (all digits instead of a few,
 * exact elements instead of a code again), and in round 3 there is room for whatever is left; so nothing is missing then. */
enum { CST_LAST_ROUND = 3 };

/* How the ranks of a call plan. */
typedef struct {
    cst_plan_rules rules;
    double beta;       /* budget to plan for */
    double bits;       /* > 0: bits per coordinate over both phases, side information included, instead of a budget */
    double floor;      /* steps are at least this fraction of the rms */
    bool exact;        /* everything is sent exactly */
    bool fresh;        /* some statistics come from sketches: known to 5 % only */
    size_t element[2]; /* bytes of an exact element: up, down */
} cst_plan_options;

typedef struct {
    uint32_t first, end; /* blocks of the call */
    uint16_t d1;         /* energy index of the error per coordinate that phase 1 may add */
    int unit;            /* energies of the group are of the order of 2^(2 unit) */
    double s2, r2;       /* means per coordinate over the group, in units of 2^(2 unit) */
} cst_group;

typedef enum { CST_PLAN_CODED = 0, CST_PLAN_ZERO, CST_PLAN_EXACT, CST_PLAN_WIDE, CST_PLAN_SAME } cst_plan_kind;

typedef struct {
    cst_plan up, down;             /* relative to the group's D1: errors in it, steps in its root */
    double s2, r2;                 /* per padded coordinate, relative to D1 */
    uint8_t kind;                  /* cst_plan_kind */
    uint32_t up_bytes, down_bytes; /* of the payload, expected; entropy codes included */
} cst_block_plan;

typedef struct {
    cst_plan_options options;
    const cst_layout *layout;
    cst_tensor *const *tensors; /* per span */
    cst_group *groups;
    uint32_t ngroups;
    uint32_t *group_of;          /* per block */
    cst_block_plan *plan;        /* per block */
    uint32_t *first;             /* owner j has blocks first[j] .. first[j+1] - 1 */
    double beta;                 /* as used: options.beta, or what options.bits asked for */
    size_t up_bytes, down_bytes; /* frames of the first pair of transfers */
} cst_shared;

/* Plans a call: tensors whose statistics are not known must be small enough to be sent exactly (cst_small_tensor), or
 * have been sketched. layout and tensors stay the caller's. MEMORY. */
coset_status cst_shared_plan(cst_shared *shared, const cst_plan_options *options, const cst_layout *layout,
                             cst_tensor *const *tensors);
void cst_shared_free(cst_shared *shared);

/* A tensor that is not worth a sketch: sent exactly while nothing is known of it. */
static inline bool cst_small_tensor(size_t count)
{
    return count < 1024;
}
/* What streams of so many entropy-coded blocks take beside the codes, bytes. */
double cst_stream_overhead(uint32_t blocks);
/* D1 of a group in units of 2^(2 unit). */
double cst_group_error(const cst_group *group);
#endif
