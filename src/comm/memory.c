/* SPDX-License-Identifier: Apache-2.0 */
/* coset_alloc: memory that all ranks of the host map, where the transport can; plain aligned memory elsewhere. */
#include "base/alloc.h"
#include "base/error.h"
#include "comm/exclusive.h"
#include "transport/agree.h"

#include <stdlib.h>

static int maps(const coset_comm *c)
{
    return (c->caps.flags & COSET_CAN_MAP) != 0;
}

/* Nobody may go on with memory that another rank did not get. */
static coset_status agree(const coset_oob *oob, coset_status mine, int timeout_ms)
{
    cst_room room;
    int32_t value = (int32_t)mine, *all = cst_room_open(&room, oob->size, sizeof *all);
    coset_status status = all ? oob->allgather(oob->ctx, &value, all, sizeof value, timeout_ms) : COSET_ERR_MEMORY;
    for (int r = 0; r < oob->size && status == COSET_OK; r++)
        status = (coset_status)all[r];
    cst_room_close(&room);
    return status;
}

static coset_status alloc_mapped(coset_comm *c, uint64_t sequence, cst_allocation *a, coset_error *why)
{
    cst_members m = cst_members_all(c, sequence);
    coset_oob oob = cst_members_oob(&m);
    a->kind = CST_MEMORY_MAPPED;
    return c->transport->ops->alloc(c->transport, &oob, a->bytes, &a->ptr, why);
}

static coset_status alloc_plain(coset_comm *c, uint64_t sequence, cst_allocation *a)
{
    cst_members m = cst_members_all(c, sequence);
    coset_oob oob = cst_members_oob(&m);
    a->kind = CST_MEMORY_OWN;
    a->ptr = cst_alloc_aligned(64, a->bytes);
    coset_status status = agree(&oob, a->ptr ? COSET_OK : COSET_ERR_MEMORY, c->settings.late_ms);
    if (status != COSET_OK)
        free(a->ptr);
    return status;
}

/* Between hosts nothing can be mapped, but the ranks of one host can still share it (coll/hier.c reduces in it). */
static coset_status alloc_of_node(coset_comm *c, uint64_t sequence, cst_allocation *a)
{
    coset_status status = cst_nodes_make(c, sequence);
    a->kind = CST_MEMORY_OF_NODE;
    return status == COSET_OK ? cst_comm_alloc(c->nodes.node, a->bytes, &a->ptr) : status;
}

static coset_status alloc_body(coset_comm *c, uint64_t sequence, void *arg)
{
    cst_allocation *a = arg;
    coset_error why = COSET_ERROR_INIT;
    coset_status status;
    if (maps(c))
        status = alloc_mapped(c, sequence, a, &why);
    else if (c->nodes.nodes > 1 && c->nodes.most > 1)
        status = alloc_of_node(c, sequence, a);
    else
        status = alloc_plain(c, sequence, a);
    if (status != COSET_OK)
        return cst_comm_note(c, status, "coset_alloc of %zu bytes: %s", a->bytes,
                             why.text[0] ? why.text : coset_strerror(status));
    a->next = c->allocations;
    c->allocations = a;
    return COSET_OK;
}

coset_status cst_comm_alloc(coset_comm *c, size_t bytes, void **ptr)
{
    cst_allocation *a = calloc(1, sizeof *a);
    if (!a)
        return cst_comm_note(c, COSET_ERR_MEMORY, "no memory");
    a->bytes = bytes;
    coset_status status = cst_comm_exclusive(c, CST_ALLOC, bytes, alloc_body, a);
    if (status != COSET_OK) {
        free(a);
        return status;
    }
    *ptr = a->ptr;
    return COSET_OK;
}

static cst_allocation **find(coset_comm *c, const void *ptr)
{
    cst_allocation **place = &c->allocations;
    while (*place && (*place)->ptr != ptr)
        place = &(*place)->next;
    return place;
}

static coset_status free_body(coset_comm *c, uint64_t sequence, void *arg)
{
    cst_allocation **place = find(c, arg);
    if (!*place) /* the caller has looked, but another thread may have freed it meanwhile */
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "coset_free: not a pointer that coset_alloc gave");
    cst_allocation *a = *place;
    coset_status status = COSET_OK;
    if (a->kind == CST_MEMORY_OF_NODE) {
        status = cst_comm_free(c->nodes.node, a->ptr);
        if (status != COSET_OK)
            return status;
    } else if (a->kind == CST_MEMORY_MAPPED) {
        cst_members m = cst_members_all(c, sequence);
        coset_oob oob = cst_members_oob(&m);
        coset_error why = COSET_ERROR_INIT;
        status = c->transport->ops->release(c->transport, &oob, a->ptr, &why);
        if (status != COSET_OK)
            return cst_comm_note(c, status, "coset_free: %s", why.text);
    } else {
        free(a->ptr);
    }
    *place = a->next;
    free(a);
    return status;
}

coset_status cst_comm_free(coset_comm *c, void *ptr)
{
    cst_allocation **place = find(c, ptr);
    if (!*place)
        return cst_comm_note(c, COSET_ERR_ARGUMENT, "coset_free: not a pointer that coset_alloc gave");
    return cst_comm_exclusive(c, CST_FREE, (*place)->bytes, free_body, ptr);
}
