/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loops of `coset bench allreduce`. All functions here are collective over the ranks of the command. */
#ifndef COSET_TOOLS_BENCH_MEASURE_H
#define COSET_TOOLS_BENCH_MEASURE_H
#include "bench_allreduce/compressed.h"
#include "bench_allreduce/pattern.h"
#include "common/launch.h"

/* One size to be measured. */
typedef struct {
    tool_rank *rank;
    coset_dtype dtype;
    coset_op op;
    const pattern *input; /* of this rank */
    size_t count;
    void *send, *recv;   /* equal: in place */
    bool rewrite;        /* write the input before and read the result after each operation */
    int iterations;      /* 0: as many as fit the time budget */
    size_t floor_stride; /* size that rank->shared was laid out for; 0: no floor */
    compressed *codec;   /* NULL: exact */
} measurement;

/* What came out; times of one operation, the maximum over ranks. NaN: not measured. */
typedef struct {
    double mean_s, p50_s, p99_s, cycle_p50_s, floor_p50_s;
    double wire_sent, wire_received; /* bytes per operation and rank, maximum over ranks */
    double cpu_s;                    /* processor seconds per operation, all ranks together */
    double wrong;       /* elements that differ from the exact result (compressed: between ranks), all ranks together */
    double codec_p50_s; /* compressed: time outside transfers */
    compressed_quality quality; /* compressed */
} figures;

/* Returns 0, or TOOL_FAILED after a line on standard error. */
int measure(const measurement *m, figures *out);
#endif
