/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden files: what ranks sent each other in a few calls, byte for byte, and what came out.
 *
 * A file is a row of records: u8 kind (coset_xfer_kind, or GOLDEN_STATE), u8 unit, u16 entries, then per entry u32 length
 * and bytes; little-endian. A transfer has an entry per rank: what that rank sent (ALLTOALL: without the block for itself;
 * ROUTE: its messages, each u32 peer, u32 length, bytes). DONE has one entry: a hash of the output, u64, and its first bytes. STATE has one entry: the saved state.
 */
#ifndef CST_TESTS_GOLDEN_H
#define CST_TESTS_GOLDEN_H
#include <coset_mean.h>
#include <stdbool.h>

enum { GOLDEN_STATE = 0x40, GOLDEN_MOST_RANKS = 3, GOLDEN_SPANS = 3, GOLDEN_SHOWN = 64 };

/* A job whose ranks make some calls on GOLDEN_SPANS tensors, ids 1, 2, 3 (of no elements, perhaps). */
typedef struct {
    const char *name; /* of the file, without .bin */
    const char *codec, *protocol;
    double bits, y, sigma;
    coset_dtype dtype; /* F32 or F64 */
    int ranks, calls;
    size_t count[GOLDEN_SPANS];
    /* Coordinate i of tensor `span` on `rank` in `call`: common and own are reproducible noise of unit variance. */
    double (*value)(int call, int rank, int span, size_t i, double common, double own);
} golden_job;

typedef struct {
    uint8_t *at;
    size_t bytes;
} golden_tape;

/* All ranks together, in one process. Asserts success. */
golden_tape golden_record(const golden_job *job);
/*
 * One rank alone, hearing from the tape what the others sent: asserts that it asks for the same transfers, sends the same
 * bytes, and ends with the same outputs and the same saved state, which another loads.
 */
void golden_replay(const golden_job *job, const golden_tape *tape, int rank);

/* One record of a tape, or false at its end. Asserts that it is well formed. */
typedef struct {
    int kind, unit, entries;
    struct {
        const uint8_t *at;
        size_t bytes;
    } entry[GOLDEN_MOST_RANKS];
} golden_part;
bool golden_next(const golden_tape *tape, size_t *at, golden_part *part);
#endif
