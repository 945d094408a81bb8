/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include "base/clock.h"
#include "unit.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void run_child(int rank, rank_body body, void *ctx, int report)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGSEGV, SIG_DFL); /* cmocka's handlers would run the parent's tests on in the child */
    signal(SIGABRT, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    outcome o = {.reported = true, .why = COSET_ERROR_INIT};
    o.status = body(rank, ctx, &o.why);
    if (write(report, &o, sizeof o) != (ssize_t)sizeof o)
        _exit(3);
    _exit(0);
}

void group_start(group *g, int count, rank_body body, void *ctx)
{
    g->count = count;
    fflush(NULL);
    for (int r = 0; r < count; r++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        g->pid[r] = fork();
        assert_true(g->pid[r] >= 0);
        if (g->pid[r] == 0) {
            close(ends[0]);
            for (int q = 0; q < r; q++)
                close(g->pipe[q]);
            run_child(r, body, ctx, ends[1]);
        }
        close(ends[1]);
        g->pipe[r] = ends[0];
    }
}

void group_wait(group *g, outcome *out)
{
    cst_deadline deadline = cst_deadline_in(30000);
    bool stuck = false;
    for (int r = 0; r < g->count; r++) {
        struct pollfd p = {g->pipe[r], POLLIN, 0};
        out[r] = (outcome){.why = COSET_ERROR_INIT};
        if (poll(&p, 1, cst_deadline_left(deadline, 30000)) <= 0) {
            print_message("rank %d is stuck\n", r);
            stuck = true;
            kill(g->pid[r], SIGKILL);
        } else if (read(g->pipe[r], &out[r], sizeof out[r]) != (ssize_t)sizeof out[r]) {
            out[r].reported = false;
        }
        close(g->pipe[r]);
        waitpid(g->pid[r], NULL, 0);
    }
    assert_false(stuck);
}

void run_ranks(int count, rank_body body, void *ctx, outcome *out)
{
    group g;
    group_start(&g, count, body, ctx);
    group_wait(&g, out);
}

int open_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}
