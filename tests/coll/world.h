/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world of N ranks in one thread, joined by a transport made for tests: messages complete at random times, so that
 * every seed is another, repeatable execution, and careless schedules are found out:
 *   - a sent buffer is read at once or only just before the send completes;
 *   - a receive buffer is filled with rubbish when the receive is posted;
 *   - a message that is longer than the limit, has no partner of its length, or repeats a key fails the test.
 */
#ifndef CST_TESTS_COLL_WORLD_H
#define CST_TESTS_COLL_WORLD_H
#include <coset_transport.h>
#include <stdbool.h>

enum { WORLD_MAX = 64 };

typedef struct letter letter;
typedef struct world world;
typedef struct {
    coset_transport base;
    world *w;
    size_t sent_bytes, messages;
} world_end;

struct world {
    int n;
    uint64_t random;
    size_t max_message; /* 0: no limit */
    int lazy;           /* of 100 chances to move a message, so many are let pass */
    int eager;          /* of 100 sends, so many are read at once and complete early */
    world_end end[WORLD_MAX];
    letter *letters[WORLD_MAX]; /* of each rank, posted and not completed, in the order of posting */
    /* Fault: the message that would be the fail_after-th to arrive fails instead, and its rank counts as dead. */
    long fail_after;
    int dead; /* -1: nobody */
};

void world_open(world *w, int n, uint64_t seed);
/* Fails the test if a message is still under way, or, with nobody dead, was not received. */
void world_close(world *w);
uint64_t world_random(world *w);
/* The generator behind it, xorshift64*: a state for a seed, and the next number. */
uint64_t random_state(uint64_t seed);
uint64_t next_random(uint64_t *state);
/* Messages posted by `rank` and neither completed nor cancelled. */
int world_pending(const world *w, int rank);
#endif
