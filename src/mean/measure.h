/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an owner sees of a gathered block: spread and energy of the mean as they are in this call, what quantisation added to
 * them, and whether all ranks have the block alike.
 */
#ifndef CST_MEAN_MEASURE_H
#define CST_MEAN_MEASURE_H
#include "codec/portable.h"
#include "mean/owner.h"

/* What a block says of itself now. Energies per coordinate (original domain), in units of 2^(2 unit). */
typedef struct {
    cst_gathered *g;
    const cst_block *layout;
    bool measured, alike; /* alike: as far as the codes can tell, all ranks have the same */
    double s2, r2;
    double mean_error;   /* phase 1's, in the mean */
    double largest_step; /* of phase 1 as it is now, and of the base codes that refinements refer to */
    double largest_base;
    double average_error;
    double mean_energy; /* of all n coordinates in the rotated domain */
    cst_plan plan;      /* for d2 = planned_d2 */
    double planned_d2;
} cst_block_now;

static inline double cst_in_unit(double energy, int from, int to)
{
    return cst_scale2(energy, 2 * (from - to));
}

/* Measures a complete block. The mean of blocks that are exact or wide goes into mean[CST_BLOCK]; that of others is
 * g->sum / ranks. `measured` stays false where there is nothing to measure (NaN, Inf). */
void cst_measure(const cst_owner *o, cst_block_now *b, double *mean);
/* Decodes a complete block once more if the others' vectors have not been kept. */
bool cst_keep_vectors(const cst_owner *o, cst_gathered *g);
/* What is tracked as s^2 of a block that looks alike: nothing, so that it is compared next time; what was, if that is so little
 * that it has been compared already. */
uint16_t cst_alike_index(const cst_owner *o, const cst_block_now *b);
#endif
