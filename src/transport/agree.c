/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/agree.h"

#include "base/error.h"

#include <stdlib.h>

typedef struct {
    uint64_t status, value;
} vote;

void *cst_room_open(cst_room *room, int size, size_t bytes)
{
    room->memory = (size_t)size <= CST_ROOM_BYTES / bytes ? NULL : malloc((size_t)size * bytes);
    return (size_t)size <= CST_ROOM_BYTES / bytes ? room->own : room->memory;
}

void cst_room_close(cst_room *room)
{
    free(room->memory);
}

static coset_status judge(const vote *all, int size, const char *what, uint64_t value, coset_error *why)
{
    for (int r = 0; r < size; r++)
        if (all[r].status) {
            /* the caller's own mistake there, a disagreement here */
            coset_status s = all[r].status == COSET_ERR_ARGUMENT ? COSET_ERR_MISMATCH : (coset_status)all[r].status;
            return cst_fail(why, s, r, "%s: rank %d failed: %s", what, r, coset_strerror((coset_status)all[r].status));
        }
    for (int r = 0; r < size; r++)
        if (all[r].value != value)
            return cst_fail(why, COSET_ERR_MISMATCH, r, "%s: ranks disagree: %llu here, %llu on rank %d", what,
                            (unsigned long long)value, (unsigned long long)all[r].value, r);
    return COSET_OK;
}

coset_status cst_agree(const coset_oob *oob, const char *what, coset_status mine, uint64_t value, int timeout_ms,
                       coset_error *why)
{
    vote me = {(uint64_t)mine, value};
    cst_room room;
    vote *all = cst_room_open(&room, oob->size, sizeof *all);
    if (!all)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "%s: out of memory", what);
    coset_status status = oob->allgather(oob->ctx, &me, all, sizeof me, timeout_ms);
    if (mine)
        status = mine; /* whether the others have heard of it or gone already */
    else if (status)
        cst_fail(why, status, -1, "%s: the ranks did not all take part: %s", what, coset_strerror(status));
    else
        status = judge(all, oob->size, what, value, why);
    cst_room_close(&room);
    return status;
}
