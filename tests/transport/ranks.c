/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ranks.h"

#include "base/clock.h"
#include "base/cores.h"
#include "transport/registry.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local const rank_env *current;

void rank_fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (current)
        fprintf(stderr, "%s, rank %d of %d: %s:%d: %s\n", current->transport, current->rank, current->size, file, line,
                text);
    else
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
    _exit(1);
}

/* Names sockets that all of the machine see: other runs of these tests have other numbers. */
static uint64_t job = 0x5eed;

coset_transport_config ranks_config(int size)
{
    return (coset_transport_config){.struct_size = sizeof(coset_transport_config),
                                    .late_ms = 20000,
                                    .dead_ms = 5000,
                                    .control_bytes = 4096,
                                    .job = job,
                                    .core_each = size <= cst_cores_of_host()};
}

void rank_create(rank_env *e)
{
    coset_error why = COSET_ERROR_INIT;
    coset_status status = e->ops->create(&e->oob, &e->config, &e->t, &why);
    if (status)
        rank_fail(__FILE__, __LINE__, "create: %s: %s", coset_strerror(status), why.text);
}

void rank_destroy(rank_env *e)
{
    e->ops->destroy(e->t);
    e->t = NULL;
}

void rank_barrier(rank_env *e)
{
    char mine = 0, all[SHARED_OOB_RANKS];
    CHECK_INT(e->oob.allgather(e->oob.ctx, &mine, all, 1, 20000), COSET_OK);
}

void rank_die(rank_env *e)
{
    atomic_store(&e->shared->doomed[e->rank], 1);
    raise(SIGKILL);
    abort();
}

typedef struct {
    const char *transport;
    const rank_test *test;
    shared_oob *oob, *second;
    ranks_shared *shared;
    int rank, size;
} task;

static void run_body(rank_env *e, const rank_test *test)
{
    current = e;
    CHECK(e->ops);
    if (!test->bare)
        rank_create(e);
    test->body(e);
    if (!test->bare)
        rank_destroy(e);
    current = NULL;
}

static void *run_rank(void *argument)
{
    const task *t = argument;
    rank_env e = {.rank = t->rank,
                  .size = t->size,
                  .oob = shared_oob_end(t->oob, t->rank),
                  .second = shared_oob_end(t->second, t->rank),
                  .shared = t->shared,
                  .transport = t->transport,
                  .ops = cst_transport_find(t->transport),
                  .config = ranks_config(t->size),
                  .argument = t->test->argument};
    run_body(&e, t->test);
    return NULL;
}

void ranks_run_here(const coset_transport_ops *ops, const coset_oob *oob, const rank_test *test)
{
    static ranks_shared none;
    rank_env e = {.rank = oob->rank,
                  .size = oob->size,
                  .oob = *oob,
                  .second = *oob,
                  .shared = &none,
                  .transport = ops->name,
                  .ops = ops,
                  .config = ranks_config(oob->size),
                  .argument = test->argument};
    run_body(&e, test);
}

static void run_threads(const task *all, int size)
{
    pthread_t thread[RANKS_MAX];
    for (int r = 0; r < size; r++)
        if (pthread_create(&thread[r], NULL, run_rank, (void *)&all[r]))
            rank_fail(__FILE__, __LINE__, "pthread_create");
    for (int r = 0; r < size; r++)
        pthread_join(thread[r], NULL);
}

/* A child; it ends with its parent. */
static pid_t start(const task *all, int first, int count)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (count > 1)
        run_threads(all, count);
    else
        run_rank((void *)&all[first]);
    exit(0); /* with its leak check */
}

static bool ended_well(int status, bool doomed)
{
    if (doomed)
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Waits for all children, each by its number. After the deadline, or a failure and two seconds, the rest is killed. */
static bool reap(pid_t *pid, int count, const task *all, bool processes, int timeout_s)
{
    cst_deadline deadline = cst_deadline_in(timeout_s * 1000);
    bool good = true, killed = false;
    for (int left = count; left;) {
        for (int i = 0; i < count; i++) {
            int status;
            if (pid[i] <= 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
                continue;
            pid[i] = 0;
            left--;
            bool doomed = processes && atomic_load(&all[i].shared->doomed[i]);
            if (ended_well(status, doomed) || killed)
                continue;
            fprintf(stderr, "%s, %s: child %d ended with status %#x\n", all[i].transport, all[i].test->name, i, status);
            good = false;
            deadline = cst_deadline_in(2000);
        }
        if (left && !killed && cst_deadline_passed(deadline)) {
            fprintf(stderr, "%s, %s: %d ranks do not end\n", all[0].transport, all[0].test->name, left);
            good = false;
            killed = true;
            for (int i = 0; i < count; i++)
                if (pid[i] > 0)
                    kill(pid[i], SIGKILL);
        }
        if (left) {
            struct timespec pause = {0, 500000};
            nanosleep(&pause, NULL);
        }
    }
    return good;
}

bool ranks_run(const char *transport, bool processes, int size, const rank_test *test, int timeout_s)
{
    job = UINT64_C(0x5eed) << 32 | (uint64_t)getpid();
    task all[RANKS_MAX];
    pid_t pid[RANKS_MAX] = {0};
    shared_oob *oob = shared_oob_new(size), *second = shared_oob_new(size);
    ranks_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    for (int r = 0; r < size; r++)
        all[r] = (task){transport, test, oob, second, shared, r, size};
    int children = processes ? size : 1;
    fflush(NULL);
    for (int i = 0; i < children; i++)
        pid[i] = start(all, i, processes ? 1 : size);
    bool good = reap(pid, children, all, processes, timeout_s);
    munmap(shared, sizeof *shared);
    shared_oob_free(oob);
    shared_oob_free(second);
    return good;
}
