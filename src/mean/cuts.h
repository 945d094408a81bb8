/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long call cut into segments, each a call of its own, so that one can be encoded or decoded while another is on the
 * wire. Pure arithmetic, the same on every rank.
 *
 * Only a tensor's own length decides where it is cut, so its pieces are the same in whatever company it comes: what is
 * tracked from call to call belongs to pieces. The first piece keeps the tensor's id.
 */
#ifndef CST_MEAN_CUTS_H
#define CST_MEAN_CUTS_H
#include <coset_mean.h>

typedef struct {
    coset_span *spans; /* of all segments, one after another */
    size_t *first;     /* segment k has spans first[k] .. first[k + 1] - 1 */
    size_t count;      /* of segments, at least 1 */
} cst_cuts;

/* Coordinates of a segment: those wished for, or as many as each of the owners needs to fill its entropy coder's streams.
 * 0: not cut. */
size_t cst_cut_length(size_t wished, int owners);
/* Cuts into pieces and segments of about `length` coordinates (a multiple of a block's 4096); length 0: one segment, the
 * spans as they are. Spans with NULL buffers are passed on uncut, for the call to refuse. MEMORY. */
coset_status cst_cuts_make(cst_cuts *s, const coset_span *spans, size_t nspans, coset_dtype dtype, size_t length);
void cst_cuts_free(cst_cuts *s);
#endif
