/* SPDX-License-Identifier: Apache-2.0 */
#include "common/launch.h"

#include "command.h"
#include "common/agree.h"
#include "common/options.h"
#include "common/stats.h"
#include "common/supervise.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct {
    const char *command;
    const tool_launch *launch;
    int (*body)(tool_rank *rank, void *ctx);
    void *ctx;
    void *shared;
} job;

/* Variables by which launchers name rank and size, in the order in which the library looks for them. */
static const char *const launchers[][2] = {
    {"COSET_RANK", "COSET_SIZE"}, {"RANK", "WORLD_SIZE"},           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},     {"SLURM_PROCID", "SLURM_NTASKS"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

/* What the outside launcher says; size 0 if there is none. */
typedef struct {
    int rank, size;
} place;

static place launched(void)
{
    for (int i = 0; i < LAUNCHERS; i++) {
        const char *rank = getenv(launchers[i][0]), *size = getenv(launchers[i][1]);
        if (rank && *rank && size && *size)
            return (place){atoi(rank), atoi(size)};
    }
    return (place){0, 0};
}

int tool_launched_rank(void)
{
    place p = launched();
    return p.size > 0 ? p.rank : -1;
}

static coset_comm_options comm_options(const tool_launch *launch)
{
    coset_comm_options options = COSET_COMM_OPTIONS_INIT;
    options.transport = launch->transport;
    options.algorithm = launch->algorithm;
    return options;
}

/* Whether the ranks can use an algorithm (hier needs several hosts) is known once they have met: an all-reduce of nothing
 * tells all of them the same. */
static int check_algorithm(const job *j, coset_comm *comm)
{
    coset_error why = COSET_ERROR_INIT;
    if (coset_allreduce(NULL, NULL, 0, COSET_F32, COSET_SUM, comm) != COSET_ERR_UNSUPPORTED)
        return TOOL_OK; /* any other failure is the command's to report */
    coset_last_error(comm, &why);
    if (coset_comm_rank(comm) == 0)
        fprintf(stderr, "%s: %s\n", j->command, why.text);
    return TOOL_USAGE;
}

/* A rank that failed must not leave the others waiting; one that succeeded says goodbye. */
static int run_rank(const job *j, int rank, int size, coset_comm *comm, bool is_thread)
{
    tool_rank r = {j->command, rank, size, comm, j->shared, j->shared ? j->launch->shared_bytes : 0, is_thread};
    int unfit = check_algorithm(j, comm), status = unfit ? unfit : j->body(&r, j->ctx);
    if (status && !unfit)
        coset_comm_abort(comm, "a rank of the command failed");
    coset_comm_destroy(comm);
    return status;
}

/* All ranks have the same news: one of them tells. (rank < 0: unknown, so each does.) */
static int create_failed(const job *j, int rank, coset_status status, const coset_error *why)
{
    if (rank <= 0)
        fprintf(stderr, "%s: cannot form the group: %s\n", j->command,
                why->text[0] ? why->text : coset_strerror(status));
    return status == COSET_ERR_ARGUMENT || status == COSET_ERR_UNSUPPORTED ? TOOL_USAGE : TOOL_FAILED;
}

static int check_asked(const job *j, coset_comm *comm)
{
    const tool_rank r = {
        .command = j->command, .rank = coset_comm_rank(comm), .size = coset_comm_size(comm), .comm = comm};
    return tool_agree(&r, j->launch->asked);
}

static int run_from_environment(const job *j, int rank_for_messages)
{
    coset_comm_options options = comm_options(j->launch);
    coset_comm *comm;
    coset_error why = COSET_ERROR_INIT;
    coset_status status = coset_comm_create_env(&options, &comm, &why);
    if (status)
        return create_failed(j, rank_for_messages, status, &why);
    int differ = check_asked(j, comm);
    if (differ) {
        coset_comm_destroy(comm); /* without abort: the others may still be comparing */
        return differ;
    }
    return run_rank(j, coset_comm_rank(comm), coset_comm_size(comm), comm, false);
}

typedef struct {
    const job *job;
    int rank, size, status;
    coset_comm *comm;
    pthread_t thread;
} thread_rank;

static void *thread_main(void *arg)
{
    thread_rank *t = arg;
    t->status = run_rank(t->job, t->rank, t->size, t->comm, true);
    return NULL;
}

static int run_threads(const job *j, int size)
{
    coset_comm_options options = comm_options(j->launch);
    coset_error why = COSET_ERROR_INIT;
    coset_comm *comms[TOOL_MAX_RANKS];
    static thread_rank ranks[TOOL_MAX_RANKS];
    coset_status status = coset_comm_create_threads(size, &options, comms, &why);
    if (status)
        return create_failed(j, 0, status, &why);
    int started = 0, result = TOOL_OK;
    for (; started < size; started++) {
        ranks[started] = (thread_rank){j, started, size, TOOL_OK, comms[started], 0};
        if (pthread_create(&ranks[started].thread, NULL, thread_main, &ranks[started]))
            break;
    }
    if (started < size) {
        fprintf(stderr, "%s: cannot start thread %d of %d\n", j->command, started, size);
        result = TOOL_FAILED;
        for (int r = started; r < size; r++) {
            coset_comm_abort(comms[r], "this rank's thread could not be started");
            coset_comm_destroy(comms[r]);
        }
    }
    for (int r = 0; r < started; r++) {
        pthread_join(ranks[r].thread, NULL);
        result = result ? result : ranks[r].status;
    }
    return result;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

void tool_export_rank(int rank, int size, int local_rank, int local_size, const char *root)
{
    set_number("COSET_RANK", rank);
    set_number("COSET_SIZE", size);
    set_number("COSET_LOCAL_RANK", local_rank);
    set_number("COSET_LOCAL_SIZE", local_size);
    if (root)
        setenv("COSET_ROOT", root, 1);
    else
        unsetenv("COSET_ROOT");
}

typedef struct {
    const job *job;
    char name[64];
} process_job;

static int process_main(int rank, int size, void *arg)
{
    const process_job *p = arg;
    tool_export_rank(rank, size, rank, size, NULL);
    setenv("COSET_JOB", p->name, 1);
    return run_from_environment(p->job, rank);
}

static int run_processes(const job *j, int size)
{
    process_job p = {j, ""};
    unsigned long long number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (unsigned long long)getpid();
    snprintf(p.name, sizeof p.name, "tool-%ld-%016llx", (long)getpid(), number);
    return tool_supervise(j->command, size, process_main, &p);
}

int tool_launch_run(const char *command, const tool_launch *launch, int (*body)(tool_rank *rank, void *ctx), void *ctx)
{
    job j = {command, launch, body, ctx, NULL};
    int outside = launched().size;
    if (outside) {
        if (launch->ranks && launch->ranks != outside)
            tool_bad_input(command, "-n %d, but the launcher started %d ranks: leave out -n", launch->ranks, outside);
        return run_from_environment(&j, -1);
    }
    int size = launch->ranks ? launch->ranks : TOOL_DEFAULT_RANKS;
    if (size > TOOL_MAX_RANKS)
        tool_bad_input(command, "-n %d: at most %d local ranks", size, TOOL_MAX_RANKS);
    if (launch->shared_bytes) {
        j.shared =
            mmap(NULL, launch->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (j.shared == MAP_FAILED) {
            fprintf(stderr, "%s: no %zu bytes of shared memory: %s\n", command, launch->shared_bytes, strerror(errno));
            return TOOL_FAILED;
        }
    }
    const char *transport = launch->transport ? launch->transport : getenv("COSET_TRANSPORT");
    int status = transport && !strcmp(transport, "threads") ? run_threads(&j, size) : run_processes(&j, size);
    if (j.shared)
        munmap(j.shared, launch->shared_bytes);
    return status;
}

int tool_rank_failed(const tool_rank *rank, const char *what)
{
    coset_error why = COSET_ERROR_INIT;
    coset_status status = coset_last_error(rank->comm, &why);
    if (status != COSET_ERR_ABORTED) /* else the rank that called abort has told why */
        fprintf(stderr, "%s: rank %d: %s: %s\n", rank->command, rank->rank, what,
                why.text[0] ? why.text : coset_strerror(status));
    return TOOL_FAILED;
}

double tool_rank_cpu(const tool_rank *rank)
{
    return rank->is_thread ? tool_thread_cpu() : tool_process_cpu();
}

static int combine(const tool_rank *rank, double *values, size_t n, coset_op op)
{
    if (coset_allreduce(values, values, n, COSET_F64, op, rank->comm))
        return tool_rank_failed(rank, "collecting figures");
    return TOOL_OK;
}

int tool_rank_max(const tool_rank *rank, double *values, size_t n)
{
    return combine(rank, values, n, COSET_MAX);
}

int tool_rank_sum(const tool_rank *rank, double *values, size_t n)
{
    return combine(rank, values, n, COSET_SUM);
}
