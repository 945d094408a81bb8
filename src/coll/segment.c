/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/segment.h"

enum { ALIGN = 64 }; /* elements: whole cache lines, whole vectors */

cst_cut cst_cut_for(const cst_plan *plan, size_t longest, size_t element_bytes)
{
    size_t wanted = plan->segment_bytes ? plan->segment_bytes : CST_SEGMENT_BYTES;
    size_t elements = wanted / element_bytes;
    if (longest / CST_SEGMENTS_MAX >= elements)
        elements = longest / CST_SEGMENTS_MAX + 1;
    if (elements > ALIGN)
        elements = (elements + ALIGN - 1) / ALIGN * ALIGN;
    size_t limit = plan->max_message ? plan->max_message / element_bytes : elements;
    if (elements > limit)
        elements = limit > ALIGN ? limit / ALIGN * ALIGN : limit;
    if (elements == 0)
        elements = 1;
    size_t segments = longest / elements + (longest % elements != 0);
    return (cst_cut){elements, longest < elements ? longest : elements, segments == 0 ? 1 : (int)segments};
}

cst_cut cst_cut_chunks(const cst_plan *plan, bool wide)
{
    size_t longest = 0;
    for (int i = 0; i < plan->size; i++) {
        size_t size = cst_range_size(cst_plan_chunk(plan, i));
        longest = size > longest ? size : longest;
    }
    return cst_cut_for(plan, longest, wide ? sizeof(float) : coset_dtype_size(plan->call.dtype));
}

cst_range cst_segment(cst_range chunk, cst_cut cut, int s)
{
    size_t size = cst_range_size(chunk), skip = cut.elements * (size_t)s;
    if (skip > size)
        skip = size;
    size_t take = size - skip < cut.elements ? size - skip : cut.elements;
    return (cst_range){chunk.begin + skip, chunk.begin + skip + take};
}
