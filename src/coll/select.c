/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select.h"

#include "base/dtype.h"
#include "base/error.h"
#include "coll/tuning.h"

#include <limits.h>
#include <string.h>

/* ---- Names and preconditions. ---- */

static const struct {
    const char *name;
    bool rank_order; /* sums in rank order, whatever the segments */
    bool narrow;     /* 16-bit floats travel as 16 bits */
    bool hosts;      /* needs several hosts with several ranks on one of them */
} traits[CST_ALGO_COUNT] = {
    [CST_ALGO_AUTO] = {"auto", true, true, false},     [CST_ALGO_FLAT] = {"flat", true, true, false},
    [CST_ALGO_DIRECT] = {"direct", true, true, false}, [CST_ALGO_RING] = {"ring", false, false, false},
    [CST_ALGO_RD] = {"rd", false, false, false},       [CST_ALGO_RHD] = {"rhd", false, false, false},
    [CST_ALGO_TREE] = {"tree", false, false, false},   [CST_ALGO_NAIVE] = {"naive", true, true, false},
    [CST_ALGO_HIER] = {"hier", false, false, true},
};

const char *cst_algo_name(int algo)
{
    return algo >= 0 && algo < CST_ALGO_COUNT ? traits[algo].name : "?";
}

int cst_algo_parse(const char *name)
{
    for (int i = 0; i < CST_ALGO_COUNT; i++)
        if (strcmp(name, traits[i].name) == 0)
            return i;
    return -1;
}

const char *cst_algo_list(void)
{
    return "auto, flat, direct, ring, rd, rhd, tree, naive, hier";
}

coset_status cst_algo_check(cst_algo algo, const cst_plan *plan, coset_error *why)
{
    if (plan->rank_order && !traits[algo].rank_order)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                        "algorithm %s does not sum in rank order, which rank_order (COSET_RANK_ORDER) asks for; use "
                        "auto, direct, flat or naive",
                        traits[algo].name);
    if (traits[algo].hosts && !plan->hosts)
        return cst_fail(why, COSET_ERR_UNSUPPORTED, -1,
                        "algorithm %s needs several hosts with several ranks on one of them; use auto",
                        traits[algo].name);
    return COSET_OK;
}

/* ---- The table. Hosts are not in it: collective.c takes hier where it is worth it, before it asks here. ---- */

#define KIB      ((size_t)1 << 10)
#define NO_LIMIT SIZE_MAX

/* For collectives by messages (where ranks reach each other's memory, shared.c decides): for each kind the first row
 * that fits, ranks and bytes (of the whole vector) up to those given. A row whose algorithm lacks a promise that the plan
 * needs is passed over; the last row of each kind has them all. The rows of all-reduce are in tuning.h, with where they
 * come from; these are from the cost model (docs/algorithms.md). */
static const struct {
    cst_kind kind;
    int ranks;
    size_t bytes;
    cst_algo algo;
} table[] = {
    {CST_REDUCE_SCATTER, 16, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_REDUCE_SCATTER, INT_MAX, 1024 * KIB, CST_ALGO_DIRECT},
    {CST_REDUCE_SCATTER, INT_MAX, NO_LIMIT, CST_ALGO_RING},
    {CST_REDUCE_SCATTER, INT_MAX, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_ALLGATHER, 16, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_ALLGATHER, INT_MAX, 1024 * KIB, CST_ALGO_DIRECT},
    {CST_ALLGATHER, INT_MAX, NO_LIMIT, CST_ALGO_RING},
    {CST_ALLTOALL, INT_MAX, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_BROADCAST, 2, NO_LIMIT, CST_ALGO_TREE},
    {CST_BROADCAST, 8, 1024 * KIB, CST_ALGO_TREE},
    {CST_BROADCAST, 64, 8192 * KIB, CST_ALGO_TREE},
    {CST_BROADCAST, 64, NO_LIMIT, CST_ALGO_RING},
    {CST_BROADCAST, INT_MAX, NO_LIMIT, CST_ALGO_TREE},
    {CST_REDUCE, 8, 16 * KIB, CST_ALGO_FLAT},
    {CST_REDUCE, INT_MAX, 64 * KIB, CST_ALGO_TREE},
    {CST_REDUCE, INT_MAX, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_BARRIER, INT_MAX, NO_LIMIT, CST_ALGO_RD},
    {CST_SEND, INT_MAX, NO_LIMIT, CST_ALGO_DIRECT},
    {CST_RECV, INT_MAX, NO_LIMIT, CST_ALGO_DIRECT},
};

static bool reduces(cst_kind kind)
{
    return kind == CST_ALLREDUCE || kind == CST_REDUCE_SCATTER || kind == CST_REDUCE;
}

static bool keeps_promises(const cst_plan *plan, cst_algo algo)
{
    if (!reduces(plan->call.kind))
        return true;
    return (traits[algo].rank_order || !plan->rank_order) &&
           (traits[algo].narrow || !cst_dtype_is_half(plan->call.dtype));
}

static cst_algo select_allreduce(const cst_plan *plan, size_t bytes)
{
    for (int i = 0; i < cst_tuned_row_count; i++) {
        const cst_tuned_row *row = &cst_tuned_rows[i];
        if (row->network == plan->network && plan->size <= row->ranks && bytes <= row->bytes &&
            keeps_promises(plan, row->algo))
            return row->algo;
    }
    return CST_ALGO_DIRECT;
}

cst_algo cst_select(const cst_plan *plan, cst_algo wanted)
{
    size_t bytes = cst_plan_elements(plan) * coset_dtype_size(plan->call.dtype);
    if (plan->call.kind == CST_ALLREDUCE)
        return wanted == CST_ALGO_AUTO ? select_allreduce(plan, bytes) : wanted;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == plan->call.kind && plan->size <= table[i].ranks && bytes <= table[i].bytes &&
            keeps_promises(plan, table[i].algo))
            return table[i].algo;
    return CST_ALGO_DIRECT;
}
