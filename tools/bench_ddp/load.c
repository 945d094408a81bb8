/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_ddp/load.h"

#include "common/random.h"
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 256 KiB of values: stays in the second-level cache, so that writing a gradient costs its own memory traffic only. */
enum { POOL = 64 << 10, CHAINS = 16, ROUND = 512 };

int load_create(load *l, load_kind kind, uint64_t seed)
{
    tool_random r = {seed};
    *l = (load){.kind = kind, .pool = malloc(POOL * sizeof *l->pool)};
    if (!l->pool)
        return -1;
    for (size_t i = 0; i < POOL; i++)
        l->pool[i] = (float)random_gauss(&r);
    return 0;
}

void load_free(load *l)
{
    free(l->pool);
    l->pool = NULL;
}

/* Independent chains of multiplications and additions, as in a matrix product that lives in registers. */
static void arithmetic(uint64_t rounds)
{
    volatile float seed = 1.0f;
    float chain[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        chain[k] = seed + (float)k;
    for (uint64_t i = 0; i < rounds * ROUND; i++)
        for (int k = 0; k < CHAINS; k++)
            chain[k] = chain[k] * 0.999f + 0.5f;
    for (int k = 0; k < CHAINS; k++)
        seed = chain[k];
}

double load_round_seconds(void)
{
    enum { ROUNDS = 2000, TRIES = 5 };
    double best = INFINITY;
    for (int i = 0; i < TRIES; i++) { /* the least: other programs only add */
        double start = tool_now();
        arithmetic(ROUNDS);
        double took = tool_now() - start;
        best = took < best ? took : best;
    }
    return best / ROUNDS;
}

static void write_gradient(const load *l, uint64_t step, size_t index, float *grad, size_t count)
{
    tool_random r = {step << 16 | index};
    for (size_t at = 0; at < count;) {
        size_t from = random_next(&r) % POOL, n = POOL - from;
        n = n < count - at ? n : count - at;
        memcpy(grad + at, l->pool + from, n * sizeof *grad);
        at += n;
    }
}

static void sleep_until(double when)
{
    struct timespec t = {(time_t)when, 0};
    t.tv_nsec = (long)((when - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
        ;
}

void load_layer(const load *l, double start, size_t index, uint64_t step, float *grad, size_t count)
{
    write_gradient(l, step, index, grad, count);
    if (l->kind == LOAD_SLEEP)
        sleep_until(start + (double)(index + 1) * l->layer_s);
    else
        arithmetic(l->rounds);
}
