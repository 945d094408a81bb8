/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How chunks are cut into segments, one message each, so that receiving, reducing and sending overlap.
 *
 * All ranks compute the same cut from the plan. Segment 0 of a chunk always exists, be it empty: a message then still
 * carries the entry record, so ranks that disagree about a count notice even when one of them says zero.
 */
#ifndef CST_COLL_SEGMENT_H
#define CST_COLL_SEGMENT_H
#include "coll/plan.h"

typedef struct {
    size_t elements; /* of a segment, but for the last of a chunk */
    size_t longest;  /* elements of the longest segment there is: `elements`, or less if chunks are short */
    int segments;    /* of the longest chunk, at least 1 */
} cst_cut;

/* For chunks of at most `longest` elements, sent in messages of `element_bytes` per element. Segments grow beyond
 * plan->segment_bytes (never beyond max_message) where there would be more than CST_SEGMENTS_MAX, which bounds the memory
 * for a schedule at a thousandth of that of the vector. */
#define CST_SEGMENTS_MAX 1024
cst_cut cst_cut_for(const cst_plan *plan, size_t longest, size_t element_bytes);
/* The same for the chunks that cst_plan_chunk gives; `wide` if messages may carry f32 partial sums of 16-bit floats. */
cst_cut cst_cut_chunks(const cst_plan *plan, bool wide);
/* Segment s of a chunk; empty where the chunk ends before. */
cst_range cst_segment(cst_range chunk, cst_cut cut, int s);
static inline bool cst_segment_exists(cst_range segment, int s)
{
    return s == 0 || segment.end > segment.begin;
}
#endif
