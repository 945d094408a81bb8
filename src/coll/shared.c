/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/shared.h"

#include "coll/select.h"

/* Up to here data travels in the slot even if the buffers are mapped: no exit barrier, but every rank reads all of it.
 * Measured on two cores (docs/performance.md): direct reads win above 512 bytes with a core per rank, above 4 KiB on shared
 * cores. */
#define FLAT_BYTES              CST_SHARED_FLAT_BYTES
#define FLAT_BYTES_SHARED_CORES ((size_t)4 << 10)
/* Up to here if they are not mapped: beyond, bulk copies win; where ranks share cores every copy between processes costs
 * switches, and they win later. */
#define UNMAPPED_BYTES ((size_t)16 << 10)

static size_t flat_limit(const coset_comm *c)
{
    return c->core_each ? FLAT_BYTES : FLAT_BYTES_SHARED_CORES;
}

static size_t unmapped_limit(const coset_comm *c)
{
    return c->core_each ? UNMAPPED_BYTES : cst_slot_room(c->size);
}

static int may_use_slots(const coset_comm *c, const cst_operation *op)
{
    int algorithm = op->call.algorithm;
    return c->size <= CST_SHARED_RANKS && (algorithm == CST_ALGO_AUTO || algorithm == CST_ALGO_FLAT);
}

coset_status cst_shared_begin(coset_comm *c, cst_operation *op)
{
    int slots = may_use_slots(c, op);
    /* a barrier has no bytes: it must be published whatever the algorithm, which is what "0" does */
    return cst_shared_enter(c, op, slots ? flat_limit(c) : 0, slots ? unmapped_limit(c) : 0);
}

/* Does the direct path write into rank r's receive buffer from another rank? */
static int others_write(const cst_call *call, int r)
{
    return call->kind == CST_ALLREDUCE || (call->kind == CST_REDUCE && r == call->root);
}

cst_path cst_shared_path(const coset_comm *c, const cst_operation *op)
{
    int algorithm = op->call.algorithm;
    if (c->size > CST_SHARED_RANKS ||
        (algorithm != CST_ALGO_AUTO && algorithm != CST_ALGO_FLAT && algorithm != CST_ALGO_DIRECT))
        return CST_PATH_MESSAGE;
    int published = 1, reachable = 1;
    for (int r = 0; r < c->size; r++) {
        const cst_entry_slot *slot = cst_slot_of(c, op, r);
        int sends = cst_call_send_bytes(&op->call, r, c->size) > 0;
        published &= cst_slot_has_payload(slot, c->size) || !sends;
        reachable &= !sends || cst_slot_has_payload(slot, c->size) || cst_location_mapped(&slot->send);
        reachable &= !others_write(&op->call, r) || cst_location_mapped(&slot->recv);
    }
    if (published)
        return CST_PATH_FLAT;
    if (reachable)
        return CST_PATH_DIRECT;
    /* below a slot's size some ranks have published and others not: rare, and not worth a path of its own */
    int is_long = op->call.count * coset_dtype_size(op->call.dtype) > unmapped_limit(c);
    return op->call.kind == CST_ALLREDUCE && is_long ? CST_PATH_BULK : CST_PATH_MESSAGE;
}
