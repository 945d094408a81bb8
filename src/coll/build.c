/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/build.h"

#include "base/alloc.h"
#include "base/error.h"
#include "coll/segment.h"

/* Kinds with few algorithms borrow the name that fits best: a broadcast along a chain is a `ring`, down a binomial tree
 * a `tree`; the dissemination barrier is `rd`; pairwise all-to-all and a message are `direct`. */
static const struct {
    cst_kind kind;
    cst_algo algo;
    void (*build)(cst_schedule *s);
} builders[] = {
    {CST_ALLREDUCE, CST_ALGO_FLAT, cst_build_flat},      {CST_ALLREDUCE, CST_ALGO_NAIVE, cst_build_flat},
    {CST_ALLREDUCE, CST_ALGO_DIRECT, cst_build_direct},  {CST_ALLREDUCE, CST_ALGO_RING, cst_build_ring},
    {CST_ALLREDUCE, CST_ALGO_RD, cst_build_rd},          {CST_ALLREDUCE, CST_ALGO_RHD, cst_build_rhd},
    {CST_ALLREDUCE, CST_ALGO_TREE, cst_build_tree},      {CST_REDUCE_SCATTER, CST_ALGO_DIRECT, cst_build_direct},
    {CST_REDUCE_SCATTER, CST_ALGO_RING, cst_build_ring}, {CST_ALLGATHER, CST_ALGO_DIRECT, cst_build_direct},
    {CST_ALLGATHER, CST_ALGO_RING, cst_build_ring},      {CST_ALLTOALL, CST_ALGO_DIRECT, cst_build_pairwise},
    {CST_BROADCAST, CST_ALGO_TREE, cst_build_broadcast}, {CST_BROADCAST, CST_ALGO_RING, cst_build_chain},
    {CST_REDUCE, CST_ALGO_FLAT, cst_build_flat},         {CST_REDUCE, CST_ALGO_DIRECT, cst_build_direct},
    {CST_REDUCE, CST_ALGO_TREE, cst_build_reduce},       {CST_BARRIER, CST_ALGO_RD, cst_build_barrier},
    {CST_SEND, CST_ALGO_DIRECT, cst_build_point},        {CST_RECV, CST_ALGO_DIRECT, cst_build_point},
};

static void build_alone(cst_schedule *s)
{
    if (s->plan.call.kind == CST_BARRIER)
        return;
    cst_range all = {0, cst_plan_elements(&s->plan)};
    cst_cut cut = cst_cut_for(&s->plan, all.end, coset_dtype_size(s->plan.call.dtype));
    for (int i = 0; i < cut.segments; i++) {
        s->segment = i;
        cst_copy_own(s, cst_segment(all, cut, i));
    }
}

coset_status cst_build(cst_schedule *s, const cst_plan *plan, cst_algo algo, coset_error *why)
{
    cst_kind kind = plan->call.kind;
    cst_schedule_reset(s, plan);
    for (size_t i = 0; i < sizeof builders / sizeof builders[0]; i++) {
        if (builders[i].kind != kind || builders[i].algo != algo)
            continue;
        if (plan->size > 1)
            builders[i].build(s);
        else if (kind != CST_SEND && kind != CST_RECV)
            build_alone(s);
        if (s->status != COSET_OK)
            return cst_fail(why, s->status, -1, "no memory for the steps of %s", cst_kind_name(kind));
        return COSET_OK;
    }
    return cst_fail(why, COSET_ERR_UNSUPPORTED, -1, "there is no %s by messages with algorithm %s", cst_kind_name(kind),
                    cst_algo_name(algo));
}

cst_slots cst_slots_reserve(cst_schedule *s, int count, size_t elements, bool wide)
{
    size_t width = wide ? sizeof(float) : coset_dtype_size(s->plan.call.dtype);
    size_t stride = cst_round_up(elements * width, 64);
    return (cst_slots){cst_scratch(s, stride * (size_t)count).offset, stride};
}

cst_place cst_slot(cst_slots slots, int i, bool wide)
{
    return (cst_place){slots.offset + slots.stride * (size_t)i, CST_IN_SCRATCH, wide};
}

void cst_reads_in_rank_order(cst_schedule *s, cst_part *part, int parts)
{
    for (int i = 1; i < parts; i++) {
        cst_part p = part[i];
        int j = i;
        for (; j > 0 && part[j - 1].rank > p.rank; j--)
            part[j] = part[j - 1];
        part[j] = p;
    }
    for (int i = 0; i < parts; i++)
        cst_reads(s, part[i].place);
}

void cst_window_for(cst_schedule *s, int steps)
{
    if (s->window < 2 * steps)
        s->window = 2 * steps;
}

void cst_copy_own(cst_schedule *s, cst_range range)
{
    if (cst_range_size(range) > 0 && !cst_plan_in_place(&s->plan))
        cst_add_copy(s, cst_result(&s->plan, range.begin), cst_input(&s->plan, range.begin), cst_range_size(range));
}
