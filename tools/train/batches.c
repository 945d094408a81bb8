/* SPDX-License-Identifier: Apache-2.0 */
#include "train/batches.h"

#include "common/random.h"

#include <stdlib.h>

enum { SHUFFLE_STREAM = 1000 };
static const size_t no_epoch = SIZE_MAX;

static size_t part(size_t whole, int rank, int ranks)
{
    return whole * ((size_t)rank + 1) / (size_t)ranks - whole * (size_t)rank / (size_t)ranks;
}

static size_t shard_of(size_t samples, int rank, int ranks)
{
    return samples / (size_t)ranks + ((size_t)rank < samples % (size_t)ranks);
}

/* The largest number of full batches that every rank has. */
static size_t full_batches(size_t samples, size_t global_batch, int ranks)
{
    size_t least = SIZE_MAX;
    for (int r = 0; r < ranks; r++) {
        size_t batch = part(global_batch, r, ranks);
        size_t n = batch ? shard_of(samples, r, ranks) / batch : 0;
        least = n < least ? n : least;
    }
    return least;
}

int batches_create(batches *b, uint64_t seed, int rank, int ranks, size_t samples, size_t global_batch)
{
    *b = (batches){seed,
                   rank,
                   ranks,
                   part(global_batch, rank, ranks),
                   full_batches(samples, global_batch, ranks),
                   shard_of(samples, rank, ranks),
                   no_epoch,
                   NULL};
    if (!b->steps_per_epoch)
        return -2;
    b->shard = malloc(b->shard_size * sizeof *b->shard);
    return b->shard ? 0 : -1;
}

static void start_epoch(batches *b, size_t epoch)
{
    for (size_t i = 0; i < b->shard_size; i++)
        b->shard[i] = (size_t)b->rank + i * (size_t)b->ranks;
    tool_random r = random_stream(b->seed, SHUFFLE_STREAM + epoch * (size_t)b->ranks + (size_t)b->rank);
    random_shuffle(&r, b->shard, b->shard_size);
    b->epoch = epoch;
}

const size_t *batches_at(batches *b, size_t step)
{
    size_t epoch = step / b->steps_per_epoch;
    if (epoch != b->epoch)
        start_epoch(b, epoch);
    return b->shard + step % b->steps_per_epoch * b->batch;
}

void batches_free(batches *b)
{
    free(b->shard);
    b->shard = NULL;
}
