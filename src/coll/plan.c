/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/plan.h"

#include "base/dtype.h"

static bool cut_by_rank(const cst_plan *plan)
{
    return plan->call.kind == CST_REDUCE_SCATTER || plan->call.kind == CST_ALLGATHER || plan->call.kind == CST_ALLTOALL;
}

bool cst_plan_widens(const cst_plan *plan)
{
    return cst_dtype_is_half(plan->call.dtype);
}

bool cst_plan_divides(const cst_plan *plan)
{
    return plan->call.op == COSET_AVG;
}

size_t cst_plan_elements(const cst_plan *plan)
{
    return cut_by_rank(plan) ? plan->call.count * (size_t)plan->size : plan->call.count;
}

cst_range cst_plan_chunk(const cst_plan *plan, int chunk)
{
    if (!cut_by_rank(plan))
        return cst_chunk(plan->call.count, plan->size, chunk);
    size_t begin = plan->call.count * (size_t)chunk;
    return (cst_range){begin, begin + plan->call.count};
}

static cst_place place_at(const cst_plan *plan, cst_buffer buffer, size_t e)
{
    return (cst_place){e * coset_dtype_size(plan->call.dtype), buffer, false};
}

cst_place cst_input(const cst_plan *plan, size_t e)
{
    if (plan->call.kind == CST_ALLGATHER)
        e -= plan->call.count * (size_t)plan->rank;
    return place_at(plan, CST_IN_SEND, e);
}

cst_place cst_result(const cst_plan *plan, size_t e)
{
    if (plan->call.kind == CST_REDUCE_SCATTER)
        e -= plan->call.count * (size_t)plan->rank;
    return place_at(plan, CST_IN_RECV, e);
}

bool cst_plan_in_place(const cst_plan *plan)
{
    const cst_call *call = &plan->call;
    size_t own = call->count * (size_t)plan->rank * coset_dtype_size(call->dtype);
    const char *send = call->send, *recv = call->recv;
    if (call->kind == CST_REDUCE_SCATTER)
        return recv == send + own;
    if (call->kind == CST_ALLGATHER)
        return send == recv + own;
    return send == recv;
}
