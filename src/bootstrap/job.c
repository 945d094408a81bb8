/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/job.h"

#include "base/env.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Launchers in the order in which they are believed. `local_size` tells how many ranks share the host; `names` are
 * variables that tell jobs (and restarts) apart. */
static const struct launcher {
    const char *rank, *size, *local_size, *names[2];
} launchers[] = {
    {"COSET_RANK", "COSET_SIZE", "COSET_LOCAL_SIZE", {NULL, NULL}},
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", {"PMIX_NAMESPACE", NULL}},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {NULL, NULL}},
    {"SLURM_PROCID", "SLURM_NTASKS", NULL, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

/* More is a mistake, not a job. */
#define MOST_RANKS (1 << 20)
/* Ports for Slurm jobs, below the range from which kernels give out ports by themselves. */
#define SLURM_PORT_LOW 20000
#define SLURM_PORTS    10000

int cst_slurm_first_host(const char *list, char host[CST_HOST_TEXT])
{
    size_t n = 0;
    bool inside = false, skipping = false;
    for (; *list && (inside || *list != ','); list++) {
        if (*list == '[' || *list == ']') {
            if (inside == (*list == '['))
                return -1;
            inside = *list == '[';
            skipping = false;
        } else if (inside && (*list == '-' || *list == ',')) {
            skipping = true; /* of "[03-10,12]" only 03 counts */
        } else if (!skipping) {
            if (n + 1 >= CST_HOST_TEXT)
                return -1;
            host[n++] = *list;
        }
    }
    host[n] = 0;
    return n && !inside ? 0 : -1;
}

static coset_status read_number(const char *name, long low, long high, int *value, coset_error *why)
{
    *value = -1;
    coset_status status = cst_env_int(name, low, high, value, why);
    if (!status && *value < 0)
        status = cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s is not set", name);
    return status;
}

/* Finds the launcher. A half-set pair is an error only if no later launcher has a whole one. */
static coset_status read_rank(cst_job *job, const struct launcher **launcher, coset_error *why)
{
    const char *lonely = NULL, *missing = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *l = &launchers[i];
        bool rank = cst_env(l->rank), size = cst_env(l->size);
        if (rank != size && !lonely) {
            lonely = rank ? l->rank : l->size;
            missing = rank ? l->size : l->rank;
            if (i == 0)
                break; /* our own variables are meant for us: half of them is a mistake */
        }
        if (!rank || !size)
            continue;
        coset_status status = read_number(l->size, 1, MOST_RANKS, &job->size, why);
        if (!status)
            status = read_number(l->rank, 0, MOST_RANKS, &job->rank, why);
        if (!status && job->rank >= job->size)
            status = cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s=%d must be less than %s=%d", l->rank, job->rank, l->size,
                              job->size);
        *launcher = l;
        return status;
    }
    if (lonely)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "%s is set but %s is not: set both", lonely, missing);
    return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                    "no rank: set COSET_RANK and COSET_SIZE, or start with `coset run -n N -- "
                    "program` (mpirun, srun and torchrun work too)");
}

static void name_job(cst_job *job, const struct launcher *l)
{
    const char *own = cst_env("COSET_JOB"), *first = l->names[0] ? cst_env(l->names[0]) : NULL,
               *second = l->names[1] ? cst_env(l->names[1]) : NULL;
    if (own)
        snprintf(job->name, sizeof job->name, "%s", own);
    else if (first)
        snprintf(job->name, sizeof job->name, "%s.%s", first, second ? second : "");
}

static coset_status from_root(cst_job *job, const char *text, coset_error *why)
{
    job->from = "COSET_ROOT";
    if (cst_hostport_split(text, job->host, &job->port))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "COSET_ROOT=%.100s: expected host:port, such as node1:29501 or "
                        "[fd00::1]:29501",
                        text);
    return COSET_OK;
}

static coset_status from_master(cst_job *job, const char *host, coset_error *why)
{
    int port;
    job->from = "MASTER_ADDR";
    coset_status status = read_number("MASTER_PORT", 1, 65535, &port, why);
    if (status)
        return status;
    if (port == 65535)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "MASTER_PORT=65535 leaves no port above it for coset: set COSET_ROOT=host:port");
    if (strlen(host) >= sizeof job->host)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "MASTER_ADDR is too long to be a host name");
    strcpy(job->host, host);
    job->port = (uint16_t)(port + 1);
    return COSET_OK;
}

static coset_status from_slurm(cst_job *job, const char *list, coset_error *why)
{
    const char *id = cst_env("SLURM_JOB_ID"), *step = cst_env("SLURM_STEP_ID");
    long job_id = 0, step_id = 0;
    job->from = "SLURM_JOB_NODELIST";
    if (cst_slurm_first_host(list, job->host))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "cannot read the node list '%.60s': set COSET_ROOT=host:port",
                        list);
    if (!id || cst_parse_long(id, 0, INT32_MAX, &job_id))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "SLURM_JOB_ID is not a number: set COSET_ROOT=host:port");
    if (step && cst_parse_long(step, 0, INT32_MAX, &step_id))
        step_id = 0;
    job->port =
        (uint16_t)(SLURM_PORT_LOW + (job_id + 97 * step_id) % SLURM_PORTS); /* steps of one job run side by side */
    return COSET_OK;
}

/* Hydra (MPICH, Intel MPI) gives jobs no name, but each of its ranks a socket to the proxy of the host: the proxy's
 * process id tells jobs on one host apart. */
static void name_after_proxy(cst_job *job)
{
    const char *text = cst_env("PMI_FD");
    long fd;
    struct ucred proxy;
    socklen_t length = sizeof proxy;
    if (text && !cst_parse_long(text, 0, INT32_MAX, &fd) &&
        !getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &proxy, &length) && proxy.pid > 0)
        snprintf(job->name, sizeof job->name, "hydra.%ld", (long)proxy.pid);
}

static coset_status meet_here(cst_job *job, const struct launcher *l, coset_error *why)
{
    int local = -1;
    if (l->local_size && cst_env(l->local_size)) {
        coset_status status = cst_env_int(l->local_size, 1, MOST_RANKS, &local, why);
        if (status)
            return status;
    }
    if (local >= 0 && local < job->size)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "%d of %d ranks are on this host, so they need an address to meet at: set "
                        "COSET_ROOT=host:port to a free port of rank 0's host",
                        local, job->size);
    if (!job->name[0] && local == job->size)
        name_after_proxy(job);
    if (!job->name[0])
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "no meeting place: set COSET_ROOT=host:port, or, with all ranks on this host, "
                        "COSET_JOB to a name of the job's own");
    snprintf(job->local, sizeof job->local, "coset-%u-%.130s", (unsigned)geteuid(), job->name);
    return COSET_OK;
}

static bool all_here(const cst_job *job, const struct launcher *l)
{
    const char *text = cst_env(l->local_size);
    long local;
    return text && !cst_parse_long(text, 1, MOST_RANKS, &local) && local == job->size;
}

coset_status cst_job_check_env(coset_error *why)
{
    const struct {
        const char *name;
        long low;
    } numbers[] = {{"COSET_RANK", 0}, {"COSET_SIZE", 1}, {"COSET_LOCAL_RANK", 0}, {"COSET_LOCAL_SIZE", 1}};
    int value;
    coset_status status = COSET_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; i++)
        status = cst_env_int(numbers[i].name, numbers[i].low, MOST_RANKS, &value, why);
    const char *root = cst_env("COSET_ROOT");
    cst_job unused;
    return !status && root ? from_root(&unused, root, why) : status;
}

coset_status cst_job_from_env(cst_job *job, coset_error *why)
{
    const struct launcher *l = NULL;
    const char *text;
    memset(job, 0, sizeof *job);
    coset_status status = read_rank(job, &l, why);
    if (status)
        return status;
    name_job(job, l);
    if (job->size == 1)
        return COSET_OK;
    if ((text = cst_env("COSET_ROOT")))
        return from_root(job, text, why);
    /* our own launcher says that all ranks are here: a MASTER_ADDR beside it is meant for another library */
    if (l == launchers && job->name[0] && all_here(job, l))
        return meet_here(job, l, why);
    if ((text = cst_env("MASTER_ADDR")))
        return from_master(job, text, why);
    bool under_slurm = !strncmp(l->rank, "SLURM_", 6);
    if (under_slurm && ((text = cst_env("SLURM_STEP_NODELIST")) || (text = cst_env("SLURM_JOB_NODELIST"))))
        return from_slurm(job, text, why);
    return meet_here(job, l, why);
}
