/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed mean as `coset bench allreduce --codec` measures it: input, one operation, quality of the result. */
#ifndef COSET_TOOLS_BENCH_COMPRESSED_H
#define COSET_TOOLS_BENCH_COMPRESSED_H
#include "common/launch.h"

#include <coset_mean.h>
#include <stdbool.h>

typedef struct {
    tool_rank *rank;
    coset_mean *mean;
    coset_dtype dtype;
    void *input; /* this rank's vector, of dtype */
    size_t count;
    coset_mean_report report; /* of the last operation */
} compressed;

typedef struct {
    double bits_per_coord; /* sent, both phases together; maximum over ranks */
    double excess;         /* measured: squared error over the sampling variance */
    double repaired;       /* blocks repaired in the operation, all ranks together */
    double different;      /* elements that differ from rank 0's, all ranks together */
} compressed_quality;

typedef struct {
    const char *codec, *protocol, *distribution;
    double bits, budget, mean;
    double link; /* > 0: the objective is time on a link of so many 10^9 bytes per second */
} compressed_options;

/* As tool_check_codec. */
void compressed_check(const char *command, const compressed_options *o, int ranks);
/* A vector of `count` elements of f32 or f64 (others are refused by the caller). Returns 0 or an exit status after a
 * line on standard error. */
int compressed_create(compressed *c, const compressed_options *o, tool_rank *rank, coset_dtype dtype, size_t count);
void compressed_free(compressed *c);
/* Input into `send`. */
void compressed_write(const compressed *c, void *send);
/* Collective: recv = estimate of the mean of the ranks' send. */
coset_status compressed_run(compressed *c, const void *send, void *recv);
/* Prints why compressed_run failed. Returns TOOL_FAILED. */
int compressed_failed(const compressed *c);
/* Collective: what the last operation, whose result is `recv`, was worth. Returns as compressed_create. */
int compressed_judge(const compressed *c, const void *recv, compressed_quality *out);
#endif
