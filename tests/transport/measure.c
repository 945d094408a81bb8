/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not a test: prints what a message costs between two ranks of this host, to choose thresholds by.
 *
 *     transport_measure [BYTES...]
 *
 * A line per transport, memory and size: half the time of a round
 * trip, or the time to write a message and exchange it in both directions; the least and the median
 * of the samples (on a busy machine the least says more), and bytes per second. "flag" is
 * the bound for small messages: a word written by one side and seen by the other; "memcpy" for large ones.
 */
#include "transport/conformance.h"
#include "transport/drive.h"

#include "base/clock.h"
#include "base/flag.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 21, MOST_BYTES = 64 << 20 };

typedef struct {
    const char *label, *method;
    int sizes;
    size_t size[32];
} plan;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *label, const char *memory, size_t bytes, double *sample)
{
    qsort(sample, SAMPLES, sizeof *sample, compare);
    double least = sample[0], median = sample[SAMPLES / 2];
    printf("%-10s %-17s %9zu B  least %10.2f us %6.2f GB/s  median %10.2f us %6.2f GB/s\n", label, memory, bytes,
           least / 1e3, (double)bytes / least, median / 1e3, (double)bytes / median);
}

static void wait_done(rank_env *e, coset_msg *m)
{
    while (m->status == COSET_IN_PROGRESS)
        if (e->ops->progress(e->t) == COSET_IN_PROGRESS)
            e->ops->idle(e->t, 50);
    CHECK_INT(m->status, COSET_OK);
}

static void one_way(rank_env *e, bool sends, uint64_t op, char *memory, size_t bytes)
{
    coset_entry entry = {{0}};
    struct iovec v = {memory, bytes};
    coset_msg m = {.peer = !e->rank, .op = op, .entry = &entry, .iov = &v, .iovcnt = 1};
    if (sends)
        e->ops->isend(e->t, &m);
    else
        e->ops->irecv(e->t, &m);
    wait_done(e, &m);
}

/* Both directions at once, as in a ring. */
static void exchange(rank_env *e, uint64_t op, char *from, char *to, size_t bytes)
{
    coset_entry entry = {{0}};
    struct iovec v[2] = {{from, bytes}, {to, bytes}};
    coset_msg out = {.peer = !e->rank, .op = op, .entry = &entry, .iov = &v[0], .iovcnt = 1}, in = out;
    in.iov = &v[1];
    e->ops->irecv(e->t, &in);
    e->ops->isend(e->t, &out);
    wait_done(e, &in);
    wait_done(e, &out);
}

static int turns_for(size_t bytes)
{
    return bytes < 4096 ? 1000 : bytes < 1 << 20 ? 60 : bytes < 8 << 20 ? 10 : 2;
}

static void both_ways(rank_env *e, const char *label, const char *kind, uint64_t *op, char *memory, size_t bytes)
{
    double sample[SAMPLES];
    int turns = turns_for(bytes);
    for (int s = -1; s < SAMPLES; s++) {
        uint64_t start = cst_now_ns();
        for (int i = 0; i < turns; i++) {
            memset(memory, i, bytes); /* as in training; else the lines would never have to travel */
            exchange(e, (*op)++, memory, memory + bytes, bytes);
        }
        if (s >= 0)
            sample[s] = (double)(cst_now_ns() - start) / turns;
    }
    if (!e->rank)
        report(label, kind, bytes, sample);
}

static void ping_pong(rank_env *e, const char *label, const char *kind, uint64_t *op, char *memory, size_t bytes)
{
    double sample[SAMPLES];
    int turns = turns_for(bytes);
    for (int s = -1; s < SAMPLES; s++) { /* the first one warms up */
        uint64_t start = cst_now_ns();
        for (int i = 0; i < turns; i++)
            one_way(e, (i & 1) == e->rank, (*op)++, memory, bytes);
        if (s >= 0)
            sample[s] = (double)(cst_now_ns() - start) / turns;
    }
    if (!e->rank)
        report(label, kind, bytes, sample);
}

/* Each rank on a core of its own: on a busy machine the scheduler puts both on one. */
static void pin(int rank)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(rank % sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void measure(rank_env *e)
{
    const plan *p = e->argument;
    coset_error why = COSET_ERROR_INIT;
    void *own;
    uint64_t op = 0;
    pin(e->rank);
    if (p->method)
        setenv("COSET_SHM_METHOD", p->method, 1);
    rank_create(e);
    char *private = malloc(MOST_BYTES);
    CHECK(private && !e->ops->alloc(e->t, &e->oob, MOST_BYTES, &own, &why));
    memset(private, 1, MOST_BYTES);
    for (int i = 0; i < p->sizes; i++) {
        ping_pong(e, p->label, "private", &op, private, p->size[i]);
        ping_pong(e, p->label, "segment", &op, own, p->size[i]);
        both_ways(e, p->label, "private both ways", &op, private, p->size[i]);
        both_ways(e, p->label, "segment both ways", &op, own, p->size[i]);
    }
    free(private);
    rank_destroy(e);
}

/* The bounds, with the same two ranks. */
static void bounds(rank_env *e)
{
    double sample[SAMPLES];
    enum { TURNS = 5000 };
    pin(e->rank);
    rank_create(e);
    _Atomic uint32_t *mine = e->ops->control(e->t, e->rank), *theirs = e->ops->control(e->t, !e->rank);
    for (int s = -1; s < SAMPLES; s++) {
        uint64_t start = cst_now_ns();
        for (uint32_t i = 1; i <= TURNS; i++) {
            uint32_t value = (uint32_t)(s + 1) * TURNS + i;
            if (!e->rank)
                atomic_store_explicit(mine, value, memory_order_release);
            for (int n = 0; atomic_load_explicit(theirs, memory_order_acquire) != value; n++)
                if (n > 100000)
                    e->ops->idle(e->t, 0); /* the other one has no core */
            if (e->rank)
                atomic_store_explicit(mine, value, memory_order_release);
        }
        if (s >= 0)
            sample[s] = (double)(cst_now_ns() - start) / TURNS / 2;
    }
    if (!e->rank)
        report("flag", "-", 4, sample);
    char *a = malloc(MOST_BYTES), *b = malloc(MOST_BYTES);
    memset(a, 1, MOST_BYTES);
    memset(b, 1, MOST_BYTES);
    for (size_t bytes = 1 << 20; bytes <= 25 << 20 && !e->rank; bytes *= 25) {
        for (int s = 0; s < SAMPLES; s++) {
            uint64_t start = cst_now_ns();
            memcpy(b, a, bytes);
            sample[s] = (double)(cst_now_ns() - start);
        }
        report("memcpy", "private", bytes, sample);
    }
    free(a);
    free(b);
    rank_barrier(e);
    rank_destroy(e);
}

int main(int argc, char **argv)
{
    plan p = {.sizes = 3, .size = {8, 1 << 20, 25 << 20}};
    static const struct {
        const char *transport, *label, *method;
        bool processes;
    } all[] = {
        {"threads", "threads", NULL, false}, {"shm", "shm", "auto", true}, {"shm", "shm staged", "staged", true}};
    if (argc > 1)
        for (p.sizes = 0; p.sizes < argc - 1 && p.sizes < 32; p.sizes++)
            p.size[p.sizes] = strtoul(argv[p.sizes + 1], NULL, 0);
    rank_test b = {"bounds", bounds, true, NULL};
    bool good = ranks_run("shm", true, 2, &b, 60);
    for (int i = 0; i < 3; i++) {
        p.label = all[i].label;
        p.method = all[i].method;
        rank_test t = {"measure", measure, true, &p};
        good &= ranks_run(all[i].transport, all[i].processes, 2, &t, 120);
    }
    return !good;
}
