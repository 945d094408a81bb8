/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "common/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "coset run"

int job_global_rank(const job *j, int local)
{
    return j->plan.node_rank * j->plan.local_size + local;
}

/* -------- environment -------- */

/* The name of the job, the same on all hosts: the user's, or one made from the root's address; on one host a random
 * one. */
static void name_job(const job_plan *plan)
{
    char name[300];
    uint64_t number = 0;
    if (getenv("COSET_JOB") && *getenv("COSET_JOB") && plan->root)
        return;
    if (plan->root) {
        snprintf(name, sizeof name, "run@%.280s", plan->root);
    } else {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = (uint64_t)getpid();
        snprintf(name, sizeof name, "run-%016llx", (unsigned long long)number);
    }
    setenv("COSET_JOB", name, 1);
}

static void set_environment(const job *j, int local)
{
    int local_size = j->plan.local_size;
    tool_export_rank(job_global_rank(j, local), local_size * j->plan.nodes, local, local_size, j->plan.root);
}

/* -------- one process -------- */

typedef struct {
    int out[2], err[2], failure[2];
} pipes;

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

static bool open_pipes(pipes *p)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (!pipe2(p->out, O_CLOEXEC) && !pipe2(p->err, O_CLOEXEC) && !pipe2(p->failure, O_CLOEXEC) &&
        !fcntl(p->out[0], F_SETFL, O_NONBLOCK) && !fcntl(p->err[0], F_SETFL, O_NONBLOCK))
        return true;
    int saved = errno;
    close_pair(p->out);
    close_pair(p->err);
    close_pair(p->failure);
    errno = saved;
    return false;
}

/* Rank 0 gets our input if that is a file or a pipe; a terminal cannot be read by a group in the background. */
static void set_input(int global)
{
    if (global == 0 && !isatty(0))
        return;
    int null = open("/dev/null", O_RDONLY);
    if (null > 0) {
        dup2(null, 0);
        close(null);
    }
}

static _Noreturn void become_rank(const job *j, int local, const pipes *p, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before we asked to hear of it */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    set_environment(j, local);
    set_input(job_global_rank(j, local));
    dup2(p->out[1], 1);
    dup2(p->err[1], 2);
    execvp(j->plan.command[0], j->plan.command);
    int reason = errno;
    ssize_t n = write(p->failure[1], &reason, sizeof reason);
    _exit(n > 0 ? 127 : 126);
}

/* 0, or the errno for which it did not start; *bad_command if it was the command's fault. */
static int start_rank(job *j, int local, bool *bad_command)
{
    pipes p;
    job_rank *r = &j->rank[local];
    int reason = 0;
    pid_t parent = getpid();
    if (!open_pipes(&p))
        return errno;
    fflush(NULL);
    r->pid = fork();
    if (r->pid == 0)
        become_rank(j, local, &p, parent);
    reason = r->pid < 0 ? errno : 0;
    close(p.out[1]);
    close(p.err[1]);
    close(p.failure[1]);
    if (!reason) {
        setpgid(r->pid, r->pid); /* here too: whoever comes first */
        guard_watch(&j->guard, r->pid);
        j->running++;
        *bad_command = read(p.failure[0], &reason, sizeof reason) == (ssize_t)sizeof reason;
    }
    close(p.failure[0]);
    int global = job_global_rank(j, local);
    bool out = output_open(&r->stream[0], p.out[0], 1, global, j->plan.patience),
         err = output_open(&r->stream[1], p.err[0], 2, global, j->plan.patience);
    if (r->pid < 0)
        r->pid = 0;
    return reason ? reason : out && err ? 0 : ENOMEM;
}

static void say_not_started(const job *j, int local, int reason)
{
    enum { PER_RANK = 2, BESIDE = 16 }; /* descriptors: its output streams; pipes under way and the launcher's own */
    int rank = job_global_rank(j, local);
    if (reason == EMFILE)
        fprintf(stderr, NAME ": cannot start rank %d: %d ranks take %d descriptors here: raise the limit (ulimit -n)\n",
                rank, j->plan.local_size, PER_RANK * j->plan.local_size + BESIDE);
    else
        fprintf(stderr, NAME ": cannot start rank %d: %s\n", rank, strerror(reason));
}

static FILE *open_children(void)
{
    return fopen("/proc/thread-self/children", "re");
}

/* False without memory. */
static bool note_others(job *j)
{
    FILE *f = open_children();
    bool good = true;
    int pid;
    while (good && f && fscanf(f, "%d", &pid) == 1) {
        pid_t *grown = realloc(j->others, (j->nothers + 1) * sizeof *grown);
        good = grown != NULL;
        if (good) {
            j->others = grown;
            grown[j->nothers++] = pid;
        }
    }
    if (f)
        fclose(f);
    return good;
}

int job_start(job *j, const job_plan *plan, bool *bad_command)
{
    *j = (job){.plan = *plan, .rank = calloc((size_t)plan->local_size, sizeof *j->rank)};
    *bad_command = false;
    /* orphans of the ranks come to us, so that they can be found at the end */
    if (!j->rank || !note_others(j) || prctl(PR_SET_CHILD_SUBREAPER, 1) || !guard_start(&j->guard)) {
        fprintf(stderr, NAME ": cannot start: %s\n", strerror(errno));
        free(j->rank);
        free(j->others);
        return -1;
    }
    for (int r = 0; r < plan->local_size; r++)
        for (int k = 0; k < 2; k++)
            j->rank[r].stream[k].from = -1;
    name_job(plan);
    for (int r = 0; r < plan->local_size; r++) {
        int reason = start_rank(j, r, bad_command);
        if (!reason)
            continue;
        if (*bad_command)
            fprintf(stderr, NAME ": cannot run '%s': %s\n", plan->command[0], strerror(reason));
        else
            say_not_started(j, r, reason);
        job_end(j);
        return -1;
    }
    return 0;
}

void job_signal(const job *j, int signal)
{
    for (int r = 0; r < j->plan.local_size; r++)
        if (j->rank[r].pid > 0)
            kill(-j->rank[r].pid, signal);
}

/* -------- the end -------- */

/* Reaps a leader that has ended: its number is ours until the wait, so its group is killed before. */
static int bury(job *j, int local, bool *broken_output)
{
    job_rank *r = &j->rank[local];
    int code = 0;
    kill(-r->pid, SIGKILL);
    guard_forget(&j->guard, r->pid);
    while (waitpid(r->pid, &code, 0) < 0 && errno == EINTR)
        ;
    r->pid = 0;
    j->running--;
    for (int k = 0; k < 2; k++)
        if (r->stream[k].line && !output_close(&r->stream[k]))
            *broken_output = true;
    return WIFSIGNALED(code) ? 128 + WTERMSIG(code) : WEXITSTATUS(code);
}

int job_reap(job *j, int *status, bool *broken_output)
{
    for (int r = 0; r < j->plan.local_size; r++) {
        siginfo_t info = {0};
        if (j->rank[r].pid > 0 && !waitid(P_PID, (id_t)j->rank[r].pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
            info.si_pid) {
            *status = bury(j, r, broken_output);
            return r;
        }
    }
    return -1;
}

static bool is_stray(const job *j, pid_t pid)
{
    bool ours = pid != j->guard.pid;
    for (size_t i = 0; ours && i < j->nothers; i++)
        ours = pid != j->others[i];
    return ours;
}

/* Kills and reaps the orphans of the ranks. Returns how many. */
static int kill_strays(const job *j)
{
    int count = 0, pid;
    FILE *f = open_children();
    while (f && fscanf(f, "%d", &pid) == 1)
        if (is_stray(j, pid)) {
            kill(pid, SIGKILL);
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
            count++;
        }
    if (f)
        fclose(f);
    return count;
}

void job_end(job *j)
{
    bool broken = false;
    job_signal(j, SIGKILL);
    for (int r = 0; r < j->plan.local_size; r++) {
        if (j->rank[r].pid > 0)
            bury(j, r, &broken);
        for (int k = 0; k < 2; k++)
            if (j->rank[r].stream[k].line)
                output_close(&j->rank[r].stream[k]);
    }
    while (kill_strays(j) > 0)
        ; /* the death of one makes its children ours */
    guard_dismiss(&j->guard);
    free(j->others);
    free(j->rank);
    j->rank = NULL;
}
