/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that go round: flags compare modulo 2^31, so one that has not moved for 2^30 operations would count as raised.
 * usage: wrap TRANSPORT, which shares memory
 */
#include "comm/group.h"

#include "comm/comm.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 3, LONG = 100003 };

/* Where all ranks wait for each other without the communicator. */
typedef struct {
    _Atomic int here;
    uint64_t number;
} meeting;

static void meet(meeting *m, int times)
{
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < RANKS * times)
        sched_yield();
}

/* As if `number` operations had been made, and the last one that needed an exit barrier long ago. */
static void jump(coset_comm *c, meeting *m)
{
    const uint64_t step = UINT64_C(1) << 17; /* the ticket's number starts there: drive.c */
    meet(m, 1);
    uint64_t next = atomic_load(&c->queue.ticket) / step + m->number;
    atomic_store(&c->queue.ticket, next * step);
    cst_control *own = c->control[c->rank];
    for (uint64_t past = next - 2; past < next; past++)
        cst_flag_post(&own->slot[past & 1].entered, (uint32_t)past + 1);
    if (c->staging.mine) {
        c->staging.epoch += (uint32_t)m->number;
        cst_flag_post(&own->given.word, c->staging.epoch);
        cst_flag_post(&own->reduced.word, c->staging.epoch);
    }
    meet(m, 2);
}

static int sums(coset_comm *c, int32_t *x, int32_t *y, size_t n, const char *memory)
{
    for (int turn = 1; turn <= 8; turn++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (int32_t)i * turn + c->rank;
        memset(y, 0, n * sizeof *y);
        if (group_want(c, coset_allreduce(x, y, n, COSET_I32, COSET_SUM, c), COSET_OK, memory))
            return 1;
        for (size_t i = 0; i < n; i++)
            if (y[i] != (int32_t)i * turn * RANKS + RANKS * (RANKS - 1) / 2)
                return group_fail(c, "%s memory, turn %d: element %zu of %zu is %d", memory, turn, i, n, y[i]);
    }
    return 0;
}

static int body(coset_comm *c, void *arg)
{
    int32_t *x = malloc(LONG * sizeof *x), *y = malloc(LONG * sizeof *y), *mapped;
    if (!x || !y || group_want(c, coset_alloc(c, 2 * LONG * sizeof *x, (void **)&mapped), COSET_OK, "alloc"))
        return 1;
    int bad = sums(c, x, y, LONG, "ordinary"); /* makes the staging memory */
    if (!bad)
        jump(c, arg);
    bad = bad || sums(c, mapped, mapped + LONG, LONG, "mapped") || sums(c, x, y, 10, "small") ||
          sums(c, x, y, LONG, "ordinary");
    coset_barrier(c);
    free(x);
    free(y);
    return bad;
}

int main(int argc, char **argv)
{
    static const uint64_t numbers[] = {(1u << 30) + 5, (1u << 31) - 20, (3u << 30) + 1, UINT32_MAX - 20};
    char transport[32];
    int bad = 0;
    if (argc < 2)
        return 2;
    snprintf(transport, sizeof transport, "fault:%s", argv[1]);
    setenv("COSET_FAULT", "rank=1,at=map,times=0,do=delay:1",
           1); /* the others would leave before it has done its part */
    meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && m != MAP_FAILED; i++) {
        group g = GROUP(transport, RANKS);
        *m = (meeting){0, numbers[i]};
        int failed = group_run(&g, body, m);
        if (failed)
            fprintf(stderr, "FAILED: after %llu operations\n", (unsigned long long)numbers[i]);
        bad += failed;
    }
    return bad != 0;
}
