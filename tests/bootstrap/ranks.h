/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function in N processes and collects what each has to say. */
#ifndef CST_TESTS_RANKS_H
#define CST_TESTS_RANKS_H
#include <coset.h>
#include <stdbool.h>
#include <sys/types.h>

#define MAX_RANKS 64

typedef struct {
    bool reported; /* false: it died before it could say anything */
    coset_status status;
    coset_error why;
} outcome;

/* What a process does: returns its status and fills in *why. */
typedef coset_status (*rank_body)(int rank, void *ctx, coset_error *why);

typedef struct {
    int count;
    pid_t pid[MAX_RANKS];
    int pipe[MAX_RANKS];
} group;

/* Starts processes 0..count-1; `ctx` is what the parent has at that moment. */
void group_start(group *g, int count, rank_body body, void *ctx);
/* Waits at most 30 s for all of them; kills who is not done by then (a test failure). */
void group_wait(group *g, outcome *out);
/* Both. */
void run_ranks(int count, rank_body body, void *ctx, outcome *out);
/* Descriptors that this process has open. */
int open_descriptors(void);
#endif
