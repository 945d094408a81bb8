/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/threads/group.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/flag.h"
#include "transport/agree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Tells processes apart even where process ids do not (containers). */
static struct {
    uint64_t word[2];
} process_mark;
static pthread_once_t mark_once = PTHREAD_ONCE_INIT;

static void make_mark(void)
{
    if (getrandom(&process_mark, sizeof process_mark, 0) != sizeof process_mark)
        process_mark.word[0] = (uintptr_t)&process_mark;
}

typedef struct {
    uint64_t mark[2];
    uint64_t pid; /* a forked child has its parent's mark */
} process_id;

static void free_group(cst_group *g)
{
    for (int r = 0; g && r < g->size; r++) {
        free(g->member[r].area);
        free(g->member[r].control);
        cst_notices_free(&g->member[r].mail);
        pthread_mutex_destroy(&g->member[r].lock);
    }
    free(g);
}

static cst_group *new_group(int size, size_t control_bytes)
{
    cst_group *g = calloc(1, sizeof *g + (size_t)size * sizeof g->member[0]);
    if (!g)
        return NULL;
    g->size = size;
    g->references = size;
    g->layout = cst_layout_for(size, 0, 0);
    g->control_bytes = control_bytes;
    for (int r = 0; r < size; r++) {
        pthread_mutex_init(&g->member[r].lock, NULL);
        cst_notices_init(&g->member[r].mail, 8 * (size_t)size + 64);
    }
    return g;
}

static bool add_member(cst_group *g, int rank)
{
    cst_member *m = &g->member[rank];
    m->area = cst_alloc_aligned(4096, g->layout.bytes);
    m->control = cst_alloc_aligned(CST_LINE, g->control_bytes);
    return m->area && m->control;
}

static coset_status fail(coset_error *why, coset_status status)
{
    return cst_fail(why, status, -1, "transport threads: the ranks did not all meet: %s", coset_strerror(status));
}

/* Are all ranks in this process? The same answer on every rank. */
static coset_status check_process(const coset_oob *oob, int timeout_ms, coset_error *why)
{
    process_id me = {{process_mark.word[0], process_mark.word[1]}, (uint64_t)getpid()};
    cst_room room;
    process_id *all = cst_room_open(&room, oob->size, sizeof *all);
    coset_status status = all ? oob->allgather(oob->ctx, &me, all, sizeof me, timeout_ms) : COSET_ERR_MEMORY;
    if (status)
        fail(why, status);
    for (int r = 1; r < oob->size && !status; r++)
        if (memcmp(&all[r], &all[0], sizeof all[0]))
            status = cst_fail(why, COSET_ERR_UNSUPPORTED, r,
                              "transport threads: rank %d is in another process than rank 0; use shm or tcp", r);
    cst_room_close(&room);
    return status;
}

/* Rank 0 makes the group, the others get its address. */
static coset_status find_group(const coset_oob *oob, size_t control_bytes, int timeout_ms, cst_group **out,
                               coset_error *why)
{
    cst_group *made = oob->rank ? NULL : new_group(oob->size, control_bytes);
    cst_room room;
    uint64_t mine = (uintptr_t)made, *all = cst_room_open(&room, oob->size, sizeof *all);
    coset_status status = all ? oob->allgather(oob->ctx, &mine, all, sizeof mine, timeout_ms) : COSET_ERR_MEMORY;
    /* If the gather fails here it may have succeeded on another rank, which then uses the group: it cannot be freed. */
    if (status)
        fail(why, status);
    else if (!all[0])
        status = cst_fail(why, COSET_ERR_MEMORY, 0, "transport threads: rank 0 is out of memory");
    else
        *out = (cst_group *)(uintptr_t)all[0];
    cst_room_close(&room);
    return status;
}

coset_status cst_group_join(const coset_oob *oob, size_t control_bytes, int timeout_ms, coset_status mine,
                            cst_group **out, coset_error *why)
{
    cst_group *g = NULL;
    pthread_once(&mark_once, make_mark);
    coset_status status = check_process(oob, timeout_ms, why);
    if (!status)
        status = find_group(oob, control_bytes, timeout_ms, &g, why);
    if (status)
        return status;
    status = mine;
    if (!status && !add_member(g, oob->rank))
        status = cst_fail(why, COSET_ERR_MEMORY, -1, "transport threads: out of memory for rank %d", oob->rank);
    status = cst_agree(oob, "transport threads", status, control_bytes, timeout_ms, why);
    if (status)
        cst_group_leave(g);
    else
        *out = g;
    return status;
}

void cst_group_leave(cst_group *g)
{
    if (atomic_fetch_sub(&g->references, 1) == 1)
        free_group(g);
}

void cst_group_ring(cst_group *g, int rank)
{
    cst_bell_ring(&((cst_post *)g->member[rank].area)->bell);
}

void cst_group_mail(cst_group *g, int rank, const coset_notice *notice)
{
    cst_member *m = &g->member[rank];
    pthread_mutex_lock(&m->lock);
    cst_notices_push(&m->mail, notice);
    pthread_mutex_unlock(&m->lock);
    atomic_store(&m->has_mail, true);
    if (cst_channel_rouse(m->area))
        cst_group_ring(g, rank);
}

void cst_group_collect(cst_group *g, int rank, cst_notices *to)
{
    cst_member *m = &g->member[rank];
    if (!atomic_load_explicit(&m->has_mail, memory_order_relaxed))
        return;
    atomic_store(&m->has_mail, false);
    pthread_mutex_lock(&m->lock);
    cst_notices_move(to, &m->mail);
    pthread_mutex_unlock(&m->lock);
}
