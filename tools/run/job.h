/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a job on this host. */
#ifndef COSET_RUN_JOB_H
#define COSET_RUN_JOB_H
#include "guard.h"
#include "output.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    int local_size, nodes, node_rank;
    const char *root; /* NULL: all ranks are here */
    char **command;
    output_patience patience;
} job_plan;

typedef struct {
    pid_t pid;               /* also its group; 0: ended and reaped */
    output_stream stream[2]; /* standard output, standard error */
} job_rank;

typedef struct {
    job_plan plan;
    guard guard;
    int running;
    job_rank *rank; /* [local_size] */
    pid_t *others;  /* [nothers]: children from before, of a shell that became us by exec */
    size_t nothers;
} job;

/* Starts all ranks. Returns 0, or -1 after one line on standard error (nothing is left running); *bad_command: the
 * command itself could not be run. */
int job_start(job *j, const job_plan *plan, bool *bad_command);
/* Sends a signal to the groups of all ranks that run. */
void job_signal(const job *j, int signal);
/* A rank that has ended since the last call: its index and exit status (128 + signal), its group killed, its output
 * complete. -1: none. *broken_output: nobody reads our output. */
int job_reap(job *j, int *status, bool *broken_output);
/* The number by which the job knows the rank. */
int job_global_rank(const job *j, int local);
/* Kills whatever is left of what the ranks have started, and frees. */
void job_end(job *j);
#endif
