/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the protocol homomorphic: what homomorphic.c (the order of transfers), homomorphic_block.c (the arithmetic of a
 * block) and homomorphic_repair.c share.
 */
#ifndef CST_MEAN_HOMOMORPHIC_STATE_H
#define CST_MEAN_HOMOMORPHIC_STATE_H
#include "kernels/quantise/sum.h"
#include "mean/internal.h"
#include "mean/sketch.h"

typedef enum {
    CST_SUMS_AT_START,
    CST_SUMS_AT_SKETCHES,
    CST_SUMS_AT_STATISTICS,
    CST_SUMS_AT_CODES,
    CST_SUMS_AT_CHECKS,
    CST_SUMS_AT_VOTES,
    CST_SUMS_AT_POINTS,
    CST_SUMS_AT_MORE_VOTES,
    CST_SUMS_AT_EXACT,
    CST_SUMS_AT_END
} cst_sums_stage;

enum {
    CST_SUMS_COLOURS = 256,
    CST_SUMS_CHECK_WORDS = 3,
    CST_SUMS_NONZERO_SHIFT = 32,
    CST_SUMS_VOTE_SHIFT = 40,
    CST_SUMS_VOTE_SCALE = 64
};

typedef struct {
    bool coded;      /* else: zero until somebody says otherwise */
    uint32_t step;   /* index; in the rotated domain */
    double a;        /* multiple of the own vector that is nearest to the mean */
    double error;    /* of one rank's code, per coordinate, in units of 2^(2 unit) */
    int unit;        /* of the mean and of errors: cst_step_unit */
    double energy;   /* of the mean: sum of squares of its rotated values */
    size_t at;       /* its first coordinate in codes and means */
    bool exact;      /* some rank cannot code it */
    bool zero;       /* coded, but all ranks have it zero */
    bool unresolved; /* this rank could not decode it */
    bool repair;     /* some rank could not */
} cst_sums_block;

typedef struct {
    cst_sums_stage at;
    cst_sketch sketch;
    uint8_t *buffers[2]; /* sketches: send, recv */
    cst_sums_block *blocks;
    size_t coded; /* coordinates of coded blocks */
    uint8_t *codes, *code_sums;
    uint64_t *words, *word_sums; /* checks, CST_SUMS_CHECK_WORDS per block after the first word */
    uint64_t *votes, *vote_sums; /* one per block */
    float *means;                /* rotated, of coded blocks */
    uint32_t *points, *point_sums;
    uint8_t *elements, *all_elements;
    uint64_t repaired, corrected, exact;
} cst_sums_call;

static inline cst_sums_call *cst_sums_of(const coset_round *round)
{
    return round->state;
}

static inline bool cst_sums_z(const coset_round *round)
{
    return round->mean->plan.rules.may == CST_MAY_Z;
}

static inline uint8_t cst_sums_code(const coset_round *round)
{
    return cst_sums_z(round) ? CST_CODE_Z : CST_CODE_E8;
}

static inline int cst_sums_own_unit(const coset_round *round, uint32_t index)
{
    return round->vector.own[index].exponent;
}

/* ---- homomorphic_block.c ---- */

/* Step, multiple of the own vector and place of a block, from tracked statistics; left zero if there are none. */
void cst_sums_plan(coset_round *round, uint32_t index);
/* The block as its kernels take it, in units of 2^unit. */
cst_sum_block cst_sums_geometry(const coset_round *round, uint32_t index, int unit);
const cst_sum_kernels *cst_sums_kernels(const coset_round *round);
/* Can this rank code its block with that step? */
bool cst_sums_codable(const coset_round *round, uint32_t index);
/* The mean of a block against the own rotated vector, into mean[n], from the sums of codes and checks. False: out of reach. */
bool cst_sums_decode(coset_round *round, uint32_t index, const float *own, float *mean);
/* Squared distance of the own vector from the mean, per coordinate, over the code's error; notes the energy of the mean. */
uint64_t cst_sums_vote(coset_round *round, uint32_t index, const float *own, const float *mean);
/* Where a block's mean waits until all can decode it: the output, unless it lies over the input, which a repair needs. */
bool cst_sums_goes_out(const coset_round *round, uint32_t index);
/* The spread of a block, from the sum of the ranks' votes, into what is tracked. */
void cst_sums_note(coset_round *round, uint32_t index);

/* ---- homomorphic_repair.c: transfers, and what comes of them. CORRUPT, MEMORY. ---- */

/* Rotated coordinates of the blocks that some rank could not decode; bytes of a frame of those that some could not code. */
size_t cst_sums_repair_coords(const coset_round *round);
size_t cst_sums_exact_bytes(const coset_round *round);
coset_status cst_sums_send_points(coset_round *round, size_t coords, coset_xfer *xfer);
coset_status cst_sums_take_points(coset_round *round);
/* The blocks that were repaired have no votes yet. */
coset_status cst_sums_send_more_votes(coset_round *round, coset_xfer *xfer);
void cst_sums_take_more_votes(coset_round *round);
coset_status cst_sums_send_exact(coset_round *round, size_t bytes, coset_xfer *xfer);
coset_status cst_sums_take_exact(coset_round *round);
#endif
