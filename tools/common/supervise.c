/* SPDX-License-Identifier: Apache-2.0 */
#include "common/supervise.h"

#include "command.h"
#include "common/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const double grace_s = 10, kill_s = 2;

typedef struct {
    const char *command;
    int count, alive, status;
    pid_t *pids;           /* 0 once it has ended */
    double next_signal_at; /* 0: none planned */
    int next_signal;
} family;

static void signal_all(const family *f, int signal)
{
    for (int i = 0; i < f->count; i++)
        if (f->pids[i] > 0)
            kill(f->pids[i], signal);
}

static void plan(family *f, int signal, double delay)
{
    f->next_signal = signal;
    f->next_signal_at = tool_now() + delay;
}

static void ended(family *f, int index, int wait_status)
{
    f->pids[index] = 0;
    f->alive--;
    int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    if (!status || f->status)
        return;
    f->status = status;
    if (WIFSIGNALED(wait_status))
        fprintf(stderr, "%s: rank %d was killed by signal %d (%s)\n", f->command, index, WTERMSIG(wait_status),
                strsignal(WTERMSIG(wait_status)));
    plan(f, SIGTERM, grace_s);
}

static void reap(family *f)
{
    for (int i = 0; i < f->count; i++) {
        int status;
        if (f->pids[i] > 0 && waitpid(f->pids[i], &status, WNOHANG) == f->pids[i])
            ended(f, i, status);
    }
}

static void send_planned(family *f)
{
    if (!f->next_signal_at || tool_now() < f->next_signal_at)
        return;
    signal_all(f, f->next_signal);
    if (f->next_signal == SIGTERM)
        plan(f, SIGKILL, kill_s);
    else
        f->next_signal_at = 0;
}

static sigset_t watched_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/* Signals stay blocked and are taken one by one here: no handler, no race between a check and a wait. */
static void watch(family *f, const sigset_t *signals)
{
    while (f->alive > 0) {
        double left = f->next_signal_at ? f->next_signal_at - tool_now() : 1;
        left = left < 0 ? 0 : left > 1 ? 1 : left;
        struct timespec timeout = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        int got = sigtimedwait(signals, NULL, &timeout);
        if (got == SIGINT || got == SIGTERM) {
            signal_all(f, got);
            f->status = f->status ? f->status : 128 + got;
            plan(f, SIGKILL, grace_s);
        }
        reap(f);
        send_planned(f);
    }
}

int tool_printed(int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "coset: standard output cannot be written\n");
    return status ? status : TOOL_FAILED;
}

int tool_supervise(const char *command, int count, int (*body)(int index, int count, void *ctx), void *ctx)
{
    family f = {.command = command, .count = count, .pids = calloc((size_t)count, sizeof(pid_t))};
    if (!f.pids) {
        fprintf(stderr, "%s: out of memory\n", command);
        return TOOL_FAILED;
    }
    sigset_t signals = watched_signals(), before;
    signal(SIGCHLD, SIG_DFL); /* ignored, it would have the kernel reap the processes, status and all */
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    fflush(NULL); /* or every child would print what is buffered again */
    pid_t parent = getpid();
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(TOOL_FAILED);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
            free(f.pids);
            exit(tool_printed(body(i, count, ctx)));
        }
        if (pid < 0) {
            fprintf(stderr, "%s: cannot start process %d of %d: %s\n", command, i, count, strerror(errno));
            f.status = TOOL_FAILED;
            signal_all(&f, SIGTERM);
            break;
        }
        f.pids[i] = pid;
        f.alive++;
    }
    watch(&f, &signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(f.pids);
    return f.status;
}
