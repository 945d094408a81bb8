/* SPDX-License-Identifier: Apache-2.0 */
/* `coset run`: starts the ranks of a job on this host and stays until the last has ended. */
#include "command.h"
#include "common/options.h"
#include "common/stats.h"
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* After a rank has failed the others have this long to notice and to say what they saw ... */
#define REPORT_S 10
/* ... and this long between SIGTERM and SIGKILL. */
#define TERM_S 5
/* What was written before SIGKILL is still given to a reader that is only slow. */
#define FLUSH_S   2
#define TIMED_OUT 124 /* as timeout(1) */

typedef enum { RUNNING, REPORTING, TERMINATING, KILLED } stage;

typedef struct {
    job job;
    stage stage;
    double until;      /* of the stage; 0: no end */
    double patient_to; /* of KILLED */
    int status;        /* exit status to be: of the first failure */
    bool interrupted;  /* by a signal from outside that asks to end */
    double timeout_at; /* 0: none */
    int timeout_s;
    int signals; /* signalfd */
    struct pollfd *set;
} run;

static void enter(run *r, stage s)
{
    if (s == KILLED && r->stage != KILLED)
        r->patient_to = tool_now() + FLUSH_S;
    r->stage = s;
    r->until = s == REPORTING ? tool_now() + REPORT_S : s == TERMINATING ? tool_now() + TERM_S : 0;
    if (s == TERMINATING || s == KILLED)
        job_signal(&r->job, s == KILLED ? SIGKILL : SIGTERM);
}

static void fail(run *r, int status)
{
    if (!r->status)
        r->status = status;
    if (r->stage == RUNNING && r->job.running)
        enter(r, REPORTING);
}

static void rank_ended(run *r, int local, int status)
{
    if (!status)
        return;
    if (!r->status) {
        int global = job_global_rank(&r->job, local);
        const char *others = r->job.running && r->stage == RUNNING ? "; the others get 10 s to report" : "";
        if (status > 128 && sigabbrev_np(status - 128))
            fprintf(stderr, "coset run: rank %d was killed by signal %d (SIG%s)%s\n", global, status - 128,
                    sigabbrev_np(status - 128), others);
        else
            fprintf(stderr, "coset run: rank %d ended with exit status %d%s\n", global, status, others);
    }
    fail(r, status);
}

static void reap(run *r)
{
    int status, local;
    bool broken = false;
    while ((local = job_reap(&r->job, &status, &broken)) >= 0)
        rank_ended(r, local, status);
    if (broken)
        fail(r, 128 + SIGPIPE);
}

/* Signals go to the ranks; one that asks to end starts our own countdown, and a second one ends the patience. */
static void pass_on(run *r, int number)
{
    job_signal(&r->job, number);
    if (number == SIGTSTP) {
        raise(SIGSTOP);
        job_signal(&r->job, SIGCONT); /* here when somebody has continued us */
    }
    if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT)
        return;
    if (r->interrupted) {
        enter(r, KILLED);
        return;
    }
    r->interrupted = true;
    r->stage = REPORTING;
    r->until = tool_now() + REPORT_S;
}

static void read_signals(run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            pass_on(r, (int)info.ssi_signo);
}

static void check_time(run *r)
{
    double t = tool_now();
    if (r->timeout_at > 0 && t >= r->timeout_at) {
        r->timeout_at = 0;
        fprintf(stderr, "coset run: not finished after %d s: ending it\n", r->timeout_s);
        if (!r->status)
            r->status = TIMED_OUT;
        enter(r, TERMINATING);
    } else if (r->until > 0 && t >= r->until) {
        enter(r, r->stage == REPORTING ? TERMINATING : KILLED);
    }
}

/* While nobody reads what the ranks write (output_patience). */
static bool is_patient(void *ctx)
{
    run *r = ctx;
    read_signals(r);
    check_time(r);
    return r->stage != KILLED || tool_now() < r->patient_to;
}

/* Waits for output, signals, or the next deadline, and moves output. */
static void wait_and_move(run *r)
{
    int count = 0, local_size = r->job.plan.local_size;
    r->set[count++] = (struct pollfd){r->signals, POLLIN, 0};
    for (int i = 0; i < local_size; i++)
        for (int k = 0; k < 2; k++)
            r->set[count++] = (struct pollfd){r->job.rank[i].stream[k].from, POLLIN, 0};
    double next = r->until > 0 && (r->timeout_at <= 0 || r->until < r->timeout_at) ? r->until : r->timeout_at;
    double left = next > 0 ? next - tool_now() : -1;
    int ms = next <= 0 ? -1 : left <= 0 ? 0 : left > 3600 ? 3600000 : (int)(left * 1000) + 1;
    if (poll(r->set, (nfds_t)count, ms) <= 0)
        return;
    for (int i = 0; i < 2 * local_size; i++)
        if (r->set[1 + i].revents && !output_move(&r->job.rank[i / 2].stream[i % 2])) {
            if (!r->status)
                r->status = 128 + SIGPIPE; /* nobody wants to hear more: as if we had been killed by it */
            if (r->stage < TERMINATING)
                enter(r, TERMINATING);
            return;
        }
}

/* What nohup and the like have ignored stays ignored, by the ranks too. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int take_signals(void)
{
    static const int wanted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    sigset_t set;
    sigemptyset(&set);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would have the kernel reap the ranks, status and all */
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!is_ignored(wanted[i]))
            sigaddset(&set, wanted[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run_job(job_plan *plan, int timeout_s)
{
    run r = {.stage = RUNNING, .timeout_s = timeout_s};
    plan->patience = (output_patience){is_patient, &r};
    bool bad_command;
    r.signals = take_signals();
    r.set = calloc(1 + 2 * (size_t)plan->local_size, sizeof *r.set);
    if (r.signals < 0 || !r.set) {
        fprintf(stderr, "coset run: cannot start: %s\n", strerror(errno));
        return TOOL_FAILED;
    }
    if (job_start(&r.job, plan, &bad_command)) {
        free(r.set);
        return bad_command ? TOOL_USAGE : TOOL_FAILED;
    }
    r.timeout_at = timeout_s ? tool_now() + timeout_s : 0;
    while (r.job.running) {
        wait_and_move(&r);
        read_signals(&r);
        reap(&r);
        check_time(&r);
    }
    job_end(&r.job);
    close(r.signals);
    free(r.set);
    return r.status;
}

/* Does it look like HOST:PORT? (The library resolves it.) */
static bool is_host_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon == text || !colon[1])
        return false;
    long port = strtol(colon + 1, &end, 10);
    return !*end && port >= 1 && port <= 65535;
}

int tool_run(int argc, char **argv)
{
    int ranks = 0, nodes = 1, node_rank = -1, timeout_s = 0;
    const char *root = NULL;
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks to start on this host", &ranks, 1, 4096),
        TOOL_INT("nodes", 0, "M", "hosts of the job; `coset run` is started on each (default 1)", &nodes, 1, 65536),
        TOOL_INT("node-rank", 0, "K", "which of them this is, 0 to M-1", &node_rank, 0, 65535),
        TOOL_TEXT("root", 0, "HOST:PORT", "where ranks meet: a name of host 0 and a free port of it", &root),
        TOOL_INT("timeout", 0, "S", "end the job after S seconds, with exit status 124", &timeout_s, 1, 1000000000),
        TOOL_END,
    };
    int first = tool_options_parse(
        argc, argv, options,
        "Starts N ranks of CMD on this host and prints what they print with the rank in front. When one "
        "fails the others get 10 s to report, then SIGTERM, then SIGKILL; the exit status is that of "
        "the first failure (128 + signal).",
        "-- CMD...");
    if (first >= argc)
        tool_bad_input(argv[0], "no command to run: end with -- CMD...");
    if (!ranks)
        tool_bad_input(argv[0], "how many ranks? give -n N");
    if (nodes > 1 && node_rank < 0)
        tool_bad_input(argv[0], "--nodes %d needs --node-rank: 0 to %d, another on each host", nodes, nodes - 1);
    if (node_rank >= nodes)
        tool_bad_input(argv[0], "--node-rank %d must be less than --nodes %d", node_rank, nodes);
    if (nodes > 1 && !root)
        tool_bad_input(argv[0], "--nodes %d needs --root HOST:PORT: a name of host 0 and a free port of it", nodes);
    if (root && !is_host_port(root))
        tool_bad_input(argv[0], "--root '%s': expected HOST:PORT, such as node1:29501", root);
    job_plan plan = {.local_size = ranks,
                     .nodes = nodes,
                     .node_rank = node_rank < 0 ? 0 : node_rank,
                     .root = root,
                     .command = argv + first};
    return run_job(&plan, timeout_s);
}
