/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under an all-reduce in shared memory: the same loads, additions and stores, without any waiting. Each rank
 * reads its 1/N slice of N inputs and writes the sums to N outputs.
 */
#ifndef COSET_TOOLS_BENCH_FLOOR_H
#define COSET_TOOLS_BENCH_FLOOR_H
#include <stdbool.h>
#include <stddef.h>

/* Which stores go past the caches: they save the read of a line that is about to be overwritten. */
typedef enum { FLOOR_STORE_NORMAL, FLOOR_STREAM_OTHERS, FLOOR_STREAM_ALL, FLOOR_MODES } floor_mode;

enum { FLOOR_MAX_RANKS = 64 };

/* Bytes of shared memory that floors of up to `bytes` per rank need. */
size_t floor_region_bytes(int ranks, size_t bytes, bool in_place);
/* One pass of `rank` over vectors of `bytes` (rounded down to 64) in `region`, which has stride `max_bytes` per vector. */
void floor_pass(void *region, int rank, int ranks, size_t bytes, size_t max_bytes, bool in_place, floor_mode mode);
#endif
