/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which samples a rank sees at which step. The training samples are dealt to the ranks like cards (rank r owns r, r + N,
 * r + 2N, ...), so shards are disjoint; each epoch every rank shuffles its own shard. A global batch of B samples is cut
 * as evenly as possible. Everything follows from (seed, ranks, rank, step), so that one process can replay all ranks.
 */
#ifndef COSET_TOOLS_TRAIN_BATCHES_H
#define COSET_TOOLS_TRAIN_BATCHES_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t seed;
    int rank, ranks;
    size_t batch;           /* this rank's samples per step */
    size_t steps_per_epoch; /* the same on all ranks */
    size_t shard_size, epoch;
    size_t *shard;
} batches;

/* Returns 0; -1 if memory is short; -2 if some rank would have no sample in a batch, or no full batch in an epoch. */
int batches_create(batches *b, uint64_t seed, int rank, int ranks, size_t samples, size_t global_batch);
/* The batch->batch sample numbers of `step`; valid until the next call. Steps are asked for in order. */
const size_t *batches_at(batches *b, size_t step);
void batches_free(batches *b);
#endif
