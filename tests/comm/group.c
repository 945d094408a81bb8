/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/group.h"

#include "base/clock.h"
#include "base/flag.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_RANKS 64
#define MOST_BYTES 8192

/* An all-gather through memory that all ranks share: two sets of places, used in turn. */
typedef struct {
    _Atomic uint32_t arrived[MOST_RANKS];
    unsigned char place[2][MOST_RANKS][MOST_BYTES];
} board;

typedef struct {
    board *b;
    int rank, size;
    uint32_t round;
} board_end;

static coset_status board_allgather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    board_end *e = ctx;
    if (bytes > MOST_BYTES)
        return COSET_ERR_MEMORY;
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    unsigned char(*place)[MOST_BYTES] = e->b->place[e->round++ % 2];
    memcpy(place[e->rank], send, bytes);
    atomic_store(&e->b->arrived[e->rank], e->round);
    for (int r = 0; r < e->size; r++) {
        while (atomic_load(&e->b->arrived[r]) < e->round) {
            if (cst_deadline_passed(deadline))
                return COSET_ERR_LATE;
            sched_yield();
        }
        memcpy((char *)recv + (size_t)r * bytes, place[r], bytes);
    }
    return COSET_OK;
}

int group_fail(const coset_comm *comm, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "rank %d: %s\n", coset_comm_rank(comm), text);
    return 1;
}

int group_want(const coset_comm *comm, coset_status status, coset_status wanted, const char *what)
{
    if (status == wanted)
        return 0;
    coset_error e = COSET_ERROR_INIT;
    if (comm)
        coset_last_error(comm, &e);
    return group_fail(comm, "%s: %s instead of %s (%s)", what, coset_strerror(status), coset_strerror(wanted), e.text);
}

static int run_rank(coset_comm *comm, group_body body, void *arg)
{
    int bad = body(comm, arg);
    coset_comm_destroy(comm);
    return bad;
}

/* ---- threads ---- */

typedef struct {
    coset_comm *comm;
    group_body body;
    void *arg;
    int bad;
} thread_rank;

static void *thread_main(void *p)
{
    thread_rank *t = p;
    t->bad = run_rank(t->comm, t->body, t->arg);
    return NULL;
}

static int run_threads(const group *g, group_body body, void *arg)
{
    coset_comm *comms[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    thread_rank ranks[MOST_RANKS];
    coset_comm_options options = g->options;
    options.transport = g->transport;
    coset_error why = COSET_ERROR_INIT;
    if (coset_comm_create_threads(g->size, &options, comms, &why)) {
        fprintf(stderr, "create_threads: %s\n", why.text);
        return g->size;
    }
    for (int r = 0; r < g->size; r++) {
        ranks[r] = (thread_rank){comms[r], body, arg, 0};
        pthread_create(&threads[r], NULL, thread_main, &ranks[r]);
    }
    int bad = 0;
    for (int r = 0; r < g->size; r++) {
        pthread_join(threads[r], NULL);
        bad += ranks[r].bad != 0;
    }
    return bad;
}

/* ---- processes ---- */

static coset_oob bare_oob;

const coset_oob *group_oob(void)
{
    return &bare_oob;
}

static int process_main(const group *g, board *b, int rank, group_body body, void *arg, int bare)
{
    board_end end = {b, rank, g->size, 0};
    if (g->per_host) {
        char host[32];
        snprintf(host, sizeof host, "host-%d", rank / g->per_host);
        setenv("COSET_HOSTID", host, 1);
    }
    coset_oob oob = {sizeof oob, rank, g->size, &end, board_allgather};
    if (bare) {
        bare_oob = oob;
        return body(NULL, arg);
    }
    coset_comm_options options = g->options;
    options.transport = g->transport;
    coset_error why = COSET_ERROR_INIT;
    coset_comm *comm;
    if (coset_comm_create_oob(&oob, &options, &comm, &why)) {
        fprintf(stderr, "rank %d: create: %s\n", rank, why.text);
        return 1;
    }
    return run_rank(comm, body, arg);
}

/* Waits for the children, kills those that take too long. Returns how many failed. */
static int reap(pid_t *pids, int n, int seconds)
{
    uint64_t limit = cst_now_ns() + (uint64_t)seconds * 1000000000u;
    int bad = 0;
    for (int left = n; left;) {
        for (int r = 0; r < n; r++) {
            int status;
            if (pids[r] <= 0 || waitpid(pids[r], &status, WNOHANG) != pids[r])
                continue;
            pids[r] = 0;
            left--;
            if (!WIFEXITED(status) || WEXITSTATUS(status)) {
                bad++;
                if (WIFSIGNALED(status))
                    fprintf(stderr, "rank %d: ended by signal %d\n", r, WTERMSIG(status));
            }
        }
        if (left && cst_now_ns() > limit) {
            fprintf(stderr, "%d ranks did not end within %d s\n", left, seconds);
            for (int r = 0; r < n; r++)
                if (pids[r] > 0)
                    kill(pids[r], SIGKILL);
            limit = UINT64_MAX;
        }
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    return bad;
}

static int run_processes(const group *g, group_body body, void *arg, int bare)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return g->size;
    pid_t pids[MOST_RANKS], parent = getpid();
    fflush(NULL);
    for (int r = 0; r < g->size; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            int bad = process_main(g, b, r, body, arg, bare);
            fflush(NULL);
            _exit(bad ? 1 : 0);
        }
    }
    int bad = reap(pids, g->size, g->seconds ? g->seconds : 60);
    munmap(b, sizeof *b);
    return bad - g->expect_dead;
}

int group_run(const group *g, group_body body, void *arg)
{
    return strcmp(g->transport, "threads") ? run_processes(g, body, arg, 0) : run_threads(g, body, arg);
}

int group_run_bare(const group *g, group_body body, void *arg)
{
    return run_processes(g, body, arg, 1);
}
