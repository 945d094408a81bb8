/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backward pass without a model: layers of equal size, from the last to the first, each of which takes a set time and
 * leaves a gradient behind.
 *
 * LOAD_SLEEP is a step whose arithmetic runs on an accelerator: the processor writes the gradient (a copy from the
 * device) and then sleeps until the layer's end, which comes by the clock whatever the processor does. LOAD_WORK is a
 * step on the same cores that communication needs: a fixed number of rounds of arithmetic, the same with and without
 * communication.
 */
#ifndef COSET_TOOLS_BENCH_DDP_LOAD_H
#define COSET_TOOLS_BENCH_DDP_LOAD_H
#include <stddef.h>
#include <stdint.h>

typedef enum { LOAD_SLEEP, LOAD_WORK } load_kind;

typedef struct {
    load_kind kind;
    double layer_s;  /* LOAD_SLEEP: time of a layer */
    uint64_t rounds; /* LOAD_WORK: rounds of arithmetic in a layer */
    float *pool;     /* normal random numbers of this rank, from which gradients are copied */
} load;

/* Fills the pool from `seed`. Returns 0, or -1 if memory is short. */
int load_create(load *l, load_kind kind, uint64_t seed);
void load_free(load *l);
/* Seconds that one round of arithmetic takes here, alone. */
double load_round_seconds(void);
/* The layer that is the `index`th of the step that began at `start` (tool_now): writes `count` elements to grad and
 * takes its time. `step` varies the values. */
void load_layer(const load *l, double start, size_t index, uint64_t step, float *grad, size_t count);
#endif
