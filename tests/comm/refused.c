/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank is out of memory within an operation: one allocation after the other is refused to rank 1. No rank may wait for
 * another that has given up: each gets an error, or the operation's result, and so in the call after it.
 * usage: refused TRANSPORT
 */
#include "comm/group.h"

#include "refusal.h"

#include <coset_mean.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LONG = 300000 };

typedef enum { ALLOC, FREE, SPLIT, MEAN, ALLREDUCE, IALLREDUCE, ALLGATHER, KINDS } what;
static const char *const names[] = {"alloc", "free", "split", "mean", "allreduce", "iallreduce", "allgather"};

typedef struct {
    what kind;
    long k;
    _Atomic int refused; /* was there a k-th allocation? */
} run;

static coset_status operation(coset_comm *c, what kind, void **memory, float *x, float *y)
{
    coset_comm *sub;
    coset_request *r;
    coset_status status;
    switch (kind) {
    case ALLOC: return coset_alloc(c, 100000, memory);
    case FREE: return coset_free(c, *memory);
    case SPLIT:
        status = coset_comm_split(c, 0, coset_comm_rank(c), &sub);
        if (status == COSET_OK)
            coset_comm_destroy(sub);
        return status;
    case ALLREDUCE: return coset_allreduce(x, y, LONG, COSET_F32, COSET_SUM, c);
    case IALLREDUCE:
        status = coset_iallreduce(x, y, LONG, COSET_F32, COSET_SUM, c, &r);
        return status == COSET_OK ? coset_wait(&r, -1) : status;
    default: return coset_allgather(x, y, LONG, COSET_F32, c);
    }
}

/* What comes before an operation, which is to succeed. */
static int prepare(coset_comm *c, what kind, void **memory, coset_mean **mean, const coset_span *x)
{
    coset_error why = COSET_ERROR_INIT;
    if (kind == FREE)
        return group_want(c, coset_alloc(c, 100000, memory), COSET_OK, "alloc");
    if (kind == MEAN) /* the first call of a mean is an exact one */
        return coset_mean_create(coset_comm_rank(c), coset_comm_size(c), NULL, mean, &why) ||
               group_want(c, coset_mean_allreduce(*mean, x, 1, COSET_F32, c, NULL), COSET_OK, "first mean");
    return 0;
}

static int body(coset_comm *c, void *arg)
{
    run *g = arg;
    void *memory = NULL;
    float *x = calloc(LONG, sizeof *x), *y = calloc(3 * LONG, sizeof *y);
    coset_mean *mean = NULL;
    coset_span span = {1, x, y, LONG};
    if (!x || !y)
        return 1;
    for (int i = 0; i < LONG; i++)
        x[i] = (float)((i * 31 + coset_comm_rank(c) * 17) % 1000);
    if (prepare(c, g->kind, &memory, &mean, &span))
        return 1;
    coset_barrier(c); /* over messages rank 1 may be through, and have failed, before the others are */
    if (coset_comm_rank(c) == 1)
        refuse_allocation(g->k);
    coset_status status = g->kind == MEAN ? coset_mean_allreduce(mean, &span, 1, COSET_F32, c, NULL)
                                          : operation(c, g->kind, &memory, x, y);
    if (coset_comm_rank(c) == 1) {
        atomic_store(&g->refused, allocation_was_refused());
        refuse_allocation(0);
        if ((g->kind == ALLOC || g->kind == IALLREDUCE) && g->k == 1)
            return 0; /* the call could be made again, it has not begun: the others hear that this rank has left */
    }
    coset_barrier(c);
    coset_mean_destroy(mean);
    free(x);
    free(y);
    int unheard = status == COSET_ERR_LATE || status == COSET_ERR_MISMATCH; /* of rank 1's barrier with the operation */
    return unheard ? group_fail(c, "%s, allocation %ld: %s", names[g->kind], g->k, coset_strerror(status)) : 0;
}

int main(int argc, char **argv)
{
    enum { MOST = 200 };
    run *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = argc < 2 || g == MAP_FAILED;
    int kinds = argc > 1 && strcmp(argv[1], "shm") ? MEAN + 1 : KINDS; /* the others take tcp a second each to leave */
    for (int kind = 0; kind < kinds && !bad; kind++) {
        long k = 0;
        do {
            *g = (run){.kind = (what)kind, .k = ++k};
            group ranks = GROUP(argv[1], 3);
            ranks.seconds = 20;
            bad = group_run(&ranks, body, g);
            if (bad)
                fprintf(stderr, "%s: FAILED, allocation %ld\n", names[kind], k);
        } while (g->refused && !bad && k < MOST);
    }
    return bad != 0;
}
