/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/repair.h"

#include "codec/block.h"
#include "codec/portable.h"

cst_block_desc cst_refinement(cst_block_desc d, uint8_t arg)
{
    double step = cst_step_value(d.step, (int)(d.step >> 10) - 2048); /* 1 .. 2 */
    double finer = cst_exp2(-arg / 4.0) * step;
    uint32_t index = cst_step_index(finer, (int)(d.step >> 10) - 2048);
    /* The residual lies in the cell of the old code: within a step (E8) or half a step (the cube) of zero. */
    double bound = (d.code == CST_CODE_E8 ? 1.0 : 0.5) * step / cst_step_value(index, (int)(d.step >> 10) - 2048);
    unsigned class = cst_class_for((float)(2 * (bound + 1.02)));
    return (cst_block_desc){class ? CST_CODE_Z : CST_CODE_ABSENT, (uint8_t) class, class ? index : 0};
}

size_t cst_answer_bytes(const cst_request *r, cst_block_desc d, uint32_t n)
{
    switch (r->ask) {
    case CST_ASK_DIGITS: return ((size_t)n * r->arg + 7) / 8;
    case CST_ASK_PLAIN: return (size_t)n * (d.code == CST_CODE_WIDE ? 8 : 4);
    case CST_ASK_REFINE: return cst_block_bytes(cst_refinement(d, r->arg), n, n, 0);
    default: return 0;
    }
}
