/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank remembers, for itself alone, of a tensor's last mean: a few of its coordinates.
 *
 * Where the mean is much larger than the spread (models that are averaged again and again), a vector's energy says nothing
 * of how the spread has changed since the last call; its distance from the last mean does. That distance is that of the
 * common movement and the own deviation, whose ratio changes slowly.
 */
#ifndef CST_MEAN_PAST_H
#define CST_MEAN_PAST_H
#include <coset.h>

typedef struct {
    float *last;   /* coordinates of the last mean; NULL: none kept */
    double before; /* squared distance of the own vector from the mean before, in the call of `last`; 0: not known */
    double now;    /* the same in this call */
    double gain;   /* now over before: what the spread has grown by, as far as this rank can see; 0: it cannot */
} cst_past;

void cst_past_forget(cst_past *past);
/* At the begin of a call: compares `x` with the last mean. */
void cst_past_look(cst_past *past, const void *x, size_t count, coset_dtype dtype);
/* At its end. Without memory nothing is kept. */
void cst_past_keep(cst_past *past, const void *mean, size_t count, coset_dtype dtype);
#endif
