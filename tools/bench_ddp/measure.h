/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop of `coset bench ddp`. All functions here are collective over the ranks of the command. */
#ifndef COSET_TOOLS_BENCH_DDP_MEASURE_H
#define COSET_TOOLS_BENCH_DDP_MEASURE_H
#include "bench_ddp/load.h"
#include "common/launch.h"

#include <coset_ddp.h>

typedef struct {
    tool_rank *rank;
    coset_ddp *ddp;
    size_t layers;
    const size_t *counts; /* elements of each layer; layer i has the id i + 1 */
    load_kind kind;
    double backward_s; /* wanted; 0: three times what communication takes alone */
    int iterations;    /* 0: as many as fit the time budget */
} ddp_bench;

/* Medians over the iterations of the maximum over ranks; seconds, bytes and counts of one step. */
typedef struct {
    double step_s, oracle_s, backward_s, comm_s, finish_s, comm_cpu_s, sent_bytes, bits, coords;
    size_t buckets;
    int iterations;
} ddp_figures;

/* Returns 0, or TOOL_FAILED after a line on standard error. */
int ddp_measure(const ddp_bench *b, ddp_figures *out);
#endif
