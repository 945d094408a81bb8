/* SPDX-License-Identifier: Apache-2.0 */
/* One collective operation on all ranks of a world: buffers, schedules, running, and what the result has to be. */
#ifndef CST_TESTS_COLL_JOB_H
#define CST_TESTS_COLL_JOB_H
#include "coll/build.h"
#include "coll/world.h"

typedef struct {
    cst_kind kind;
    cst_algo algo;
    coset_dtype dtype;
    coset_op op;
    int n, root;
    size_t count;
    bool in_place;
    bool rough; /* values whose sums round (floats); else sums are exact in any order */
    size_t segment_bytes, max_message;
    uint64_t seed;   /* of the delivery, */
    uint64_t values; /* and of the inputs; 0: the same seed */
    int lazy;        /* 0: as world_open sets it */
} job_spec;

typedef struct {
    job_spec spec;
    world w;
    uint64_t values;
    cst_schedule *schedule[WORLD_MAX];
    char *send[WORLD_MAX], *recv[WORLD_MAX]; /* recv == send + something in place */
    char *memory[WORLD_MAX][2];
    char *input[WORLD_MAX]; /* what was in send at the start */
    size_t send_bytes[WORLD_MAX], recv_bytes[WORLD_MAX];
    coset_status status[WORLD_MAX];
} job;

/* Fills the buffers and builds the schedules. */
void job_open(job *j, const job_spec *spec);
/* Steps the ranks in random order until every one has ended, or `steps_at_most` steps were made; true if all ended. */
bool job_run(job *j, long steps_at_most);
void job_close(job *j);
/* Fails the test unless every rank ended well, with the sum in rank order (for kinds that sum), and nothing else was
 * written. */
void job_check(const job *j);
/* open, run, check, close. */
void job_do(const job_spec *spec);
/* result[0 .. count of the vector) = the reduction of all inputs, operand k being that of rank order[k]; elements
 * [begin, end) of the vector only. */
void job_reduce(const job *j, const int *order, size_t begin, size_t end, char *result);
#endif
