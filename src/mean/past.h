/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank remembers, for itself alone, of a tensor's last mean: a few of its coordinates.
 *
 * Where the mean is much larger than the spread (models that are averaged again and again), a vector's energy says nothing
 * of how the spread has changed since the last call; its distance from the last mean does. That distance is that of the
 * common movement and the own deviation, whose ratio changes slowly.
 *
 * The coordinates are the same on all ranks, the distance is each rank's own. A rank that loads what another has saved takes
 * that one's distance for its own, which is as good a guess as there is.
 */
#ifndef CST_MEAN_PAST_H
#define CST_MEAN_PAST_H
#include "codec/bytes.h"

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

/* Between calls, of a tensor of `count` coordinates: bytes of the saved form, 0 if nothing is kept; the form itself; back
 * again, from untrusted bytes: CORRUPT, MEMORY. */
size_t cst_past_bytes(const cst_past *past, size_t count);
void cst_past_write(const cst_past *past, size_t count, cst_writer *w);
coset_status cst_past_read(cst_past *past, size_t count, cst_reader *r);
#endif
