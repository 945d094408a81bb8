/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a command on several ranks: the ranks of the launcher that started us (coset run, mpirun, srun, torchrun), or
 * else ranks that the command starts itself, as processes of this host or (transport threads) threads of this process.
 */
#ifndef COSET_TOOLS_LAUNCH_H
#define COSET_TOOLS_LAUNCH_H
#include <coset.h>
#include <stdbool.h>

enum { TOOL_DEFAULT_RANKS = 2, TOOL_MAX_RANKS = 1024, TOOL_ASKED_BYTES = 1024 };

/* What a rank of the command knows. */
typedef struct {
    const char *command; /* for messages */
    int rank, size;
    coset_comm *comm; /* destroyed by the launcher */
    void *shared;     /* shared_bytes of zeroed memory common to all ranks, NULL under an outside launcher */
    size_t shared_bytes;
    bool is_thread; /* one of several ranks in this process */
} tool_rank;

typedef struct {
    int ranks;             /* how many to start; 0: as many as the outside launcher started, or 2 */
    const char *transport; /* NULL: the library's choice */
    const char *algorithm; /* NULL: the library's choice */
    size_t shared_bytes;   /* for tool_rank.shared */
    char
        asked[TOOL_ASKED_BYTES]; /* by tool_options_text: compared between the ranks of an outside launcher (agree.h) */
} tool_launch;

/* The rank that an outside launcher has given this process; -1 if none has. */
int tool_launched_rank(void);

/*
 * Runs body on every rank and returns the command's exit status: the first that is not 0. A rank that fails aborts the
 * communicator, so that the others do not wait for it; processes that do not end by themselves within 10 s get SIGTERM,
 * and SIGKILL 2 s later. Exits with 2 if `ranks` contradicts the outside launcher; returns 2 on all ranks if they were
 * asked for different things.
 */
int tool_launch_run(const char *command, const tool_launch *launch, int (*body)(tool_rank *rank, void *ctx), void *ctx);

/* Sets the COSET_ variables by which a rank finds the others: at `root`, or, NULL, by COSET_JOB on this host. What the
 * environment holds for a job around this one is overridden. */
void tool_export_rank(int rank, int size, int local_rank, int local_size, const char *root);

/* Prints why the last call on the communicator failed, with rank and `what` was being done. Returns TOOL_FAILED. */
int tool_rank_failed(const tool_rank *rank, const char *what);

/* Processor seconds that this rank has used: of its process, or of its thread where ranks are threads. */
double tool_rank_cpu(const tool_rank *rank);

/* Collective: the largest of each of n values over the ranks, in place. Returns 0 or TOOL_FAILED (already printed). */
int tool_rank_max(const tool_rank *rank, double *values, size_t n);
/* The same for the sum. */
int tool_rank_sum(const tool_rank *rank, double *values, size_t n);
#endif
