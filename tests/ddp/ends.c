/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die, give up, fork or do not come. */
#include "ddp/cases.h"
#include "ddp/steps.h"

#include "comm/comm.h"
#include "ddp/reducer.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a rank killed in the middle of a bucket ---- */

/* Gradients of parameters 0 to `until` (excluded), large enough for buckets to be moving. */
static void ready_some(coset_ddp *d, const coset_param *p, size_t until, int rank)
{
    for (size_t k = 0; k < until; k++) {
        float *g = coset_ddp_grad(d, p[k].id);
        for (size_t i = 0; i < p[k].count; i++)
            g[i] = sinf((float)(i + k) + (float)rank);
        coset_ddp_ready(d, p[k].id);
    }
}

static void be_killed(void)
{
    pid_t self = getpid(), killer = fork();
    if (killer == 0) {
        kill(self, SIGKILL);
        _exit(0);
    }
}

static int survive(coset_comm *c, void *arg)
{
    enum { N = 4 };
    coset_param p[N];
    coset_ddp_options o = COSET_DDP_OPTIONS_INIT;
    coset_ddp *d;
    o.mean = arg;
    o.bucket_bytes = o.first_bytes = o.last_bytes = 1;
    for (size_t i = 0; i < N; i++)
        p[i] = (coset_param){.id = i, .count = 1 << 18, .dtype = COSET_F32, .ndim = 2};
    if (group_want(c, coset_ddp_create(c, &o, p, N, &d), COSET_OK, "create"))
        return 1;
    ready_some(d, p, N, coset_comm_rank(c));
    if (group_want(c, coset_ddp_finish(d, NULL), COSET_OK, "the first step"))
        return 1;
    if (coset_comm_rank(c) == 1) {
        be_killed(); /* at a moment of the kernel's choosing, but before the last gradient */
        ready_some(d, p, N - 1, 1);
        for (;;)
            pause();
    }
    ready_some(d, p, N, coset_comm_rank(c));
    int bad = group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_PEER, "finish with a dead rank");
    if (!bad && !strstr(coset_ddp_why(d), "rank 1"))
        bad = group_fail(c, "the text is '%s'", coset_ddp_why(d));
    bad = bad || group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_PEER, "a later finish");
    coset_ddp_destroy(d);
    return bad;
}

static void *give_up(void *ddp)
{
    coset_ddp_abort(ddp, "the watchdog barked");
    return NULL;
}

/* A thread of rank 0 aborts beside its finish, which waits for rank 1; all learn why, and their communicator goes on. */
static int aborted(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c);
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL);
    pthread_t watchdog;
    if (!d)
        return 1;
    int bad =
        group_want(c, coset_barrier(c), COSET_OK, "all have created"); /* else an abort may end another's create */
    if (rank != 1)
        bad |= ready_all(c, d, p, 0);
    if (rank == 0)
        pthread_create(&watchdog, NULL, give_up, d);
    if (rank != 1)
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ABORTED, "finish beside an abort");
    if (rank == 0)
        pthread_join(watchdog, NULL);
    bad |= group_want(c, coset_barrier(c), COSET_OK, "the communicator after an abort of its reducer");
    if (rank == 1)
        bad |= group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_ABORTED, "finish after an abort");
    if (!bad && !strstr(coset_ddp_why(d), "the watchdog barked"))
        bad = group_fail(c, "aborted because: %s", coset_ddp_why(d));
    coset_ddp_destroy(d);
    return bad;
}

int run_abort(const char *transport)
{
    group g = GROUP(transport, 3);
    return group_run(&g, aborted, NULL);
}

int run_death(const char *transport)
{
    if (!strcmp(transport, "threads"))
        return 0; /* threads die together */
    coset_mean_options mean = COSET_MEAN_OPTIONS_INIT;
    mean.objective = COSET_OBJECTIVE_BITS;
    int bad = 0;
    for (int compressed = 0; compressed < 2; compressed++) {
        group g = GROUP(transport, 3);
        g.expect_dead = 1;
        g.seconds = 30;
        bad += abs(group_run(&g, survive, compressed ? &mean : NULL));
    }
    return bad;
}

/* ---- a forked child can neither use nor disturb the reducer ---- */

static int with_child(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL);
    int status, bad = !d || one_step(c, d, p, 0);
    pid_t child = bad ? -1 : fork();
    if (child == 0) {
        int refused = coset_ddp_ready(d, p[0].id) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_finish(d, NULL) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_join(d, NULL) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_save(d, NULL, &(size_t){0}) == COSET_ERR_UNSUPPORTED &&
                      coset_ddp_load(d, "", 1) == COSET_ERR_UNSUPPORTED;
        coset_ddp_destroy(d);
        _exit(!refused);
    }
    if (!bad && (waitpid(child, &status, 0) != child || status))
        bad = group_fail(c, "the child: %d", status);
    bad = bad || one_step(c, d, p, 1);
    coset_ddp_destroy(d);
    return bad;
}

int run_fork(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, with_child, NULL);
}

/* ---- a rank with fewer steps ---- */

static int late(coset_comm *c, void *arg)
{
    (void)arg;
    coset_param p[PARAMS];
    coset_ddp *d = make_reducer(c, p, NULL);
    int bad = !d || one_step(c, d, p, 0);
    if (!bad && coset_comm_rank(c) == 0) {
        d->comm->settings.late_ms = 300; /* of this rank and the reducer alone: the barrier below is patient */
        bad = group_want(c, coset_ddp_finish(d, NULL), COSET_ERR_LATE, "finish of a step that rank 1 does not take");
        const char *why = coset_ddp_why(d);
        if (!strstr(why, "step 2: ") || !strstr(why, "rank 1") || !strstr(why, "coset_ddp_join"))
            bad |= group_fail(c, "the text is '%s'", why);
    }
    bad |= group_want(c, coset_barrier(c), COSET_OK, "barrier");
    coset_ddp_destroy(d);
    return bad;
}

int run_late(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, late, NULL);
}
