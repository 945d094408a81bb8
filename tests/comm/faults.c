/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong in a group, each as a case: usage: faults TRANSPORT [CASE]. A case passes if every rank that lives
 * gets the promised error, naming the promised rank, within the promised time.
 */
#include "comm/group.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "transport/registry.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A death is known to all within this time. */
#define DEATH_MS 5000

static int want_text(coset_comm *c, const char *part)
{
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(c, &e);
    return strstr(e.text, part) ? 0 : group_fail(c, "the error says '%s', without '%s'", e.text, part);
}

static int over_messages(coset_comm *c)
{
    return !strcmp(coset_comm_transport(c), "tcp");
}

/* ---- disagreement: rank 1 makes a different call; everybody must get MISMATCH with both values ---- */

static coset_status call_as(coset_comm *c, int odd, int variant, float *x, float *y)
{
    switch (variant) {
    case 0: return coset_allreduce(x, y, odd ? 100 : 101, COSET_F32, COSET_SUM, c);
    case 1: return coset_allreduce(x, y, 100, odd ? COSET_I32 : COSET_F32, COSET_SUM, c);
    case 2: return coset_allreduce(x, y, 100, COSET_F32, odd ? COSET_MAX : COSET_SUM, c);
    case 3: return odd ? coset_barrier(c) : coset_allreduce(x, y, 100, COSET_F32, COSET_SUM, c);
    case 4: return coset_broadcast(x, y, 100, COSET_F32, odd, c);
    case 5: return coset_allreduce(x, y, odd ? 20000 : 20001, COSET_F32, COSET_SUM, c);
    default: return coset_allreduce(x, y, odd ? 300000 : 2, COSET_F32, COSET_SUM, c);
    }
}

static int mismatch(coset_comm *c, void *arg)
{
    static const char *const says[] = {"count 10", "dtype", "op", "barrier", "root", "count 2000", "count"};
    int variant = *(int *)arg, odd = coset_comm_rank(c) == 1, bad = 0;
    /* of the thread, which ends after the communicator: peers may write into them until that is destroyed */
    static _Thread_local float x[300000], y[300000];
    bad |= group_want(c, coset_barrier(c), COSET_OK, "barrier before");
    coset_status status = call_as(c, odd, variant, x, y);
    /* over messages a broadcast with two roots may end well for some before they hear of it: one of their next calls fails */
    enum { AT_MOST = 16 }; /* src/comm/comm.h, CST_RECENT */
    for (int later = 0; variant == 4 && over_messages(c) && status == COSET_OK && later < AT_MOST; later++)
        status = coset_barrier(c);
    bad = bad || group_want(c, status, COSET_ERR_MISMATCH, "different calls") || want_text(c, says[variant]);
    bad = bad || group_want(c, coset_barrier(c), COSET_ERR_MISMATCH, "a later call");
    return bad;
}

static int run_mismatch(const char *transport)
{
    int bad = 0;
    for (int variant = 0; variant < 7; variant++) {
        group g = GROUP(transport, 3);
        int failed = group_run(&g, mismatch, &variant);
        if (failed)
            fprintf(stderr, "variant %d failed\n", variant);
        bad += failed;
    }
    return bad;
}

/* ---- a wrong argument on one rank ---- */

static int bad_argument(coset_comm *c, void *arg)
{
    (void)arg;
    float x[8] = {0};
    if (coset_comm_rank(c) == 2)
        return group_want(c, coset_allreduce(x, x + 1, 4, COSET_F32, COSET_SUM, c), COSET_ERR_ARGUMENT, "overlap") ||
               want_text(c, "overlap");
    return group_want(c, coset_allreduce(x, x, 4, COSET_F32, COSET_SUM, c), COSET_ERR_MISMATCH,
                      "a rank with wrong arguments") ||
           want_text(c, "rank 2");
}

static int run_bad_argument(const char *transport)
{
    group g = GROUP(transport, 3);
    return group_run(&g, bad_argument, NULL);
}

static int all_wrong_arguments(coset_comm *c, void *arg)
{
    (void)arg;
    float x[8] = {0};
    coset_request *r = NULL;
    return group_want(c, coset_allreduce(NULL, x, 4, COSET_F32, COSET_SUM, c), COSET_ERR_ARGUMENT, "NULL send") ||
           group_want(c, coset_allreduce(x, x, 4, (coset_dtype)77, COSET_SUM, c), COSET_ERR_ARGUMENT, "dtype 77") ||
           group_want(c, coset_allreduce(x, x, 4, COSET_F32, (coset_op)9, c), COSET_ERR_ARGUMENT, "op 9") ||
           group_want(c, coset_allreduce(x, x, SIZE_MAX / 2, COSET_F32, COSET_SUM, c), COSET_ERR_ARGUMENT,
                      "huge count") ||
           group_want(c, coset_broadcast(x, x, 4, COSET_F32, 5, c), COSET_ERR_ARGUMENT, "root 5") ||
           group_want(c, coset_broadcast(x, x, 4, COSET_F32, -1, c), COSET_ERR_ARGUMENT, "root -1") ||
           group_want(c, coset_alltoall(x, x, 1, COSET_F32, c), COSET_ERR_ARGUMENT, "all-to-all in place") ||
           group_want(c, coset_send(x, 1, COSET_F32, coset_comm_rank(c), c), COSET_ERR_ARGUMENT, "send to self") ||
           group_want(c, coset_free(c, x), COSET_ERR_ARGUMENT, "free of a foreign pointer") ||
           group_want(c, coset_wait(&r, 0), COSET_ERR_ARGUMENT, "wait for nothing") ||
           group_want(c, coset_comm_split(c, 0, 0, NULL), COSET_ERR_ARGUMENT, "split into nothing") ||
           group_want(NULL, coset_barrier(NULL), COSET_ERR_ARGUMENT, "no communicator") ||
           group_want(c, coset_barrier(c), COSET_OK, "the communicator lives on");
}

static int run_all_wrong(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, all_wrong_arguments, NULL);
}

/* Wrong calls wait for nobody, so some ranks are ahead then: what the others still read must stay. */
static int right_and_wrong(coset_comm *c, void *arg)
{
    enum { N = 100 };
    int wrong = *(int *)arg, size = coset_comm_size(c);
    int turns = over_messages(c) ? 20 : 300; /* over messages a notice may come later than 64 wrong calls */
    int32_t x[N], sum[N];
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; i < N; i++)
            x[i] = turn * (coset_comm_rank(c) + 1);
        if (group_want(c, coset_allreduce(x, sum, N, COSET_I32, COSET_SUM, c), COSET_OK, "between wrong calls"))
            return 1;
        for (int i = 0; i < N; i++)
            if (sum[i] != turn * size * (size + 1) / 2)
                return group_fail(c, "turn %d, %d wrong calls: element %d is %d", turn, wrong, i, sum[i]);
        for (int i = 0; i < wrong; i++)
            if (group_want(c, coset_allreduce(NULL, x, 4, COSET_F32, COSET_SUM, c), COSET_ERR_ARGUMENT, "NULL send"))
                return 1;
    }
    return 0;
}

static int run_right_and_wrong(const char *transport)
{
    int bad = 0;
    for (int wrong = 1; wrong <= 3; wrong++) {
        group g = GROUP(transport, 3);
        bad += group_run(&g, right_and_wrong, &wrong);
    }
    return bad;
}

/* ---- lateness ---- */

static int late(coset_comm *c, void *arg)
{
    int *gate = arg; /* a pipe: the late rank comes when the others have given up */
    char byte = 0;
    c->settings.late_ms = 1000; /* not the option: creation may take longer on a loaded machine */
    if (coset_comm_rank(c) == 1) {
        if (read(gate[0], &byte, 1) != 1 || read(gate[0], &byte, 1) != 1)
            return group_fail(c, "the others did not give up");
        coset_status status = coset_barrier(c);
        return status == COSET_ERR_LATE ? 0 : group_fail(c, "the late rank got %s", coset_strerror(status));
    }
    int bad = group_want(c, coset_barrier(c), COSET_ERR_LATE, "barrier without rank 1") || want_text(c, "rank 1");
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(c, &e);
    if (!bad && e.peer != 1)
        bad = group_fail(c, "the error names rank %d", e.peer);
    return write(gate[1], &byte, 1) != 1 || bad;
}

/* ---- abort, while others wait and from another thread ---- */

static void *abort_main(void *c)
{
    coset_comm_abort(c, "the user pressed stop");
    return NULL;
}

static int aborted(coset_comm *c, void *arg)
{
    (void)arg;
    if (coset_comm_rank(c) == 0) {
        pthread_t t;
        pthread_create(&t, NULL, abort_main, c);
        pthread_join(t, NULL);
    }
    /* rank 0 never comes: only the abort can end the wait of the others */
    int bad = coset_comm_rank(c) ? group_want(c, coset_barrier(c), COSET_ERR_ABORTED, "barrier after an abort") : 0;
    return bad || group_want(c, coset_barrier(c), COSET_ERR_ABORTED, "later") || want_text(c, "the user pressed stop");
}

static int run_abort(const char *transport)
{
    group g = GROUP(transport, 3);
    return group_run(&g, aborted, NULL);
}

/* ---- the news of a third rank, when what it says itself takes longer than everything else ---- */

static const coset_transport_ops *inner;
static coset_transport_ops deaf;

static int hear_others(coset_transport *t, coset_notice *n)
{
    int got;
    while ((got = inner->poll_notice(t, n)) && t->rank == 2 && n->kind == COSET_NOTICE_ABORT && n->about == 1)
        continue;
    return got;
}

static coset_status create_deaf(const coset_oob *oob, const coset_transport_config *config, coset_transport **out,
                                coset_error *why)
{
    coset_status status = inner->create(oob, config, out, why);
    if (!status)
        (*out)->ops = &deaf;
    return status;
}

static int told_by_another(coset_comm *c, void *arg)
{
    int *gate = arg, rank = coset_comm_rank(c); /* a pipe: rank 1 stays until rank 2 has heard of it */
    char byte = 0;
    float x;
    if (rank == 1) {
        coset_comm_abort(c, "the user pressed stop");
        return read(gate[0], &byte, 1) != 1;
    }
    /* rank 0 hears of it from rank 1, and leaves */
    int bad = group_want(c, coset_recv(&x, 1, COSET_F32, rank ? 0 : 1, c), COSET_ERR_ABORTED, "recv") ||
              want_text(c, "rank 1 aborted: the user pressed stop");
    return (rank == 2 && write(gate[1], &byte, 1) != 1) || bad;
}

static int run_told(const char *transport)
{
    int gate[2];
    if (pipe(gate))
        return 1;
    inner = cst_transport_find(transport);
    deaf = *inner;
    deaf.create = create_deaf;
    deaf.poll_notice = hear_others;
    group g = GROUP(transport, 3);
    g.options.plugin = &deaf;
    int bad = group_run(&g, told_by_another, gate);
    close(gate[0]);
    close(gate[1]);
    return bad;
}

/* An abort of the own communicator ends the own wait, too. Rank 1 comes only after it. */
static int self_abort(coset_comm *c, void *arg)
{
    int *gate = arg;
    char byte = 0;
    if (coset_comm_rank(c) == 1) {
        if (read(gate[0], &byte, 1) != 1)
            return 1;
        /* rank 0's part of the barrier may have been on its way already */
        coset_status status = coset_barrier(c);
        return group_want(c, status == COSET_OK && over_messages(c) ? coset_barrier(c) : status, COSET_ERR_ABORTED,
                          "after the abort");
    }
    coset_request *r;
    if (group_want(c, coset_ibarrier(c, &r), COSET_OK, "ibarrier"))
        return 1;
    coset_comm_abort(c, NULL);
    int bad = group_want(c, coset_wait(&r, -1), COSET_ERR_ABORTED, "own wait");
    return write(gate[1], &byte, 1) != 1 || bad;
}

static int run_gated(const char *transport, int size, group_body body)
{
    int gate[2];
    if (pipe(gate))
        return 1;
    group g = GROUP(transport, size);
    int bad = group_run(&g, body, gate);
    close(gate[0]);
    close(gate[1]);
    return bad;
}

static int run_self_abort(const char *transport)
{
    return run_gated(transport, 2, self_abort);
}

static int run_late(const char *transport)
{
    return run_gated(transport, 3, late);
}

/* ---- death in the middle of each collective ---- */

enum { KILL_KINDS = 9 };

static coset_status collective(coset_comm *c, int kind, float *x, float *y, size_t n)
{
    size_t part = n / (size_t)coset_comm_size(c);
    switch (kind) {
    case 0: return coset_allreduce(x, y, 3, COSET_F32, COSET_SUM, c);
    case 1: return coset_allreduce(x, x, n, COSET_F32, COSET_SUM, c);
    case 2: return coset_reduce_scatter(x, y, part, COSET_F32, COSET_SUM, c);
    case 3: return coset_allgather(x, y, part, COSET_F32, c);
    case 4: return coset_alltoall(x, y, part, COSET_F32, c);
    case 5: return coset_broadcast(x, y, n, COSET_F32, 0, c);
    case 6: return coset_reduce(x, y, n, COSET_F32, COSET_SUM, 0, c);
    case 7: return coset_barrier(c);
    default: return coset_allreduce(x, y, 20000, COSET_F32, COSET_AVG, c);
    }
}

typedef struct {
    int kind, mapped;
} death;

static int survive(coset_comm *c, void *arg)
{
    const death *d = arg;
    size_t n = 1 << 18;
    float *x = calloc(n, 4), *y = calloc(n, 4);
    if (d->mapped && (group_want(c, coset_alloc(c, n * 4, (void **)&x), COSET_OK, "alloc") ||
                      group_want(c, coset_alloc(c, n * 4, (void **)&y), COSET_OK, "alloc")))
        return 1;
    /* over messages rank 1 may be through, and dead, while the others are still at it */
    coset_status status = collective(c, d->kind, x, y, n);
    if (coset_comm_rank(c) == 1) {
        /* a rank that is killed while it takes part, at a moment of the kernel's choosing */
        pid_t self = getpid(), killer = fork();
        if (killer == 0) {
            kill(self, SIGKILL);
            _exit(0);
        }
        for (;;)
            if (collective(c, d->kind, x, y, n))
                pause();
    }
    while (status == COSET_OK)
        status = collective(c, d->kind, x, y, n);
    uint64_t noticed = cst_now_ns();
    int bad = group_want(c, status, COSET_ERR_PEER, "with a dead rank") || want_text(c, "rank 1");
    bad = bad || group_want(c, coset_barrier(c), COSET_ERR_PEER, "a later call");
    if (!bad && cst_now_ns() - noticed > (uint64_t)DEATH_MS * 1000000)
        bad = group_fail(c, "a later call took too long");
    coset_comm *rest;
    bad = bad || group_want(c, coset_comm_shrink(c, &rest), COSET_OK, "shrink");
    if (bad)
        return 1;
    int32_t sum = 1;
    bad = group_want(rest, coset_allreduce(&sum, &sum, 1, COSET_I32, COSET_SUM, rest), COSET_OK, "among survivors");
    if (!bad && sum != coset_comm_size(c) - 1)
        bad = group_fail(c, "%d survivors", sum);
    coset_comm_destroy(rest);
    return bad;
}

static int run_death(const char *transport)
{
    int bad = 0;
    for (int kind = 0; kind < KILL_KINDS; kind++)
        for (int mapped = 0; mapped < 2; mapped++) {
            group g = GROUP(transport, 3);
            g.expect_dead = 1;
            g.seconds = 20;
            death d = {kind, mapped};
            int failed = group_run(&g, survive, &d);
            if (failed)
                fprintf(stderr, "kind %d, %s memory: %d\n", kind, mapped ? "mapped" : "ordinary", failed);
            bad += abs(failed);
        }
    return bad;
}

/* ---- survivors regroup while receives are under way, which the progress thread drives ---- */

static int regroup(coset_comm *c, void *arg)
{
    enum { N = 100, RECEIVES = 6 };
    int aborting = *(int *)arg, rank = coset_comm_rank(c), n = 0, bad = 0;
    static _Thread_local float x[RECEIVES][N];
    coset_request *r[RECEIVES];
    while (n < RECEIVES && coset_irecv(x[n], N, COSET_F32, (rank + 1) % coset_comm_size(c), c, &r[n]) == COSET_OK)
        n++;
    if (rank == aborting)
        coset_comm_abort(c, "regroup");
    else if (n)
        bad = group_want(c, coset_wait(&r[0], -1), COSET_ERR_ABORTED, "a receive");
    coset_comm *rest;
    if (group_want(c, coset_comm_shrink(c, &rest), COSET_OK, "shrink"))
        return 1;
    bad |= group_want(rest, coset_barrier(rest), COSET_OK, "barrier of the same ranks again");
    for (int i = rank != aborting; i < n; i++)
        bad |= group_want(c, coset_wait(&r[i], 0), COSET_ERR_ABORTED, "a receive after shrinking");
    coset_comm_destroy(rest);
    return bad;
}

static int run_regroup(const char *transport)
{
    int bad = 0;
    for (int turn = 0; turn < 10; turn++) {
        group g = GROUP(transport, 3);
        int aborting = turn % 3;
        bad += group_run(&g, regroup, &aborting);
    }
    return bad;
}

/* ---- survivors wait for one that is at work still, longer than a silent host may be silent ---- */

static int regroup_late(coset_comm *c, void *arg)
{
    int dead_ms = *(int *)arg;
    if (coset_comm_rank(c) == 1)
        raise(SIGKILL);
    if (coset_comm_rank(c) == 2)
        poll(NULL, 0, 3 * dead_ms / 2);
    coset_comm *rest;
    if (group_want(c, coset_barrier(c), COSET_ERR_PEER, "barrier") ||
        group_want(c, coset_comm_shrink(c, &rest), COSET_OK, "shrink"))
        return 1;
    int bad = coset_comm_size(rest) != 3 ? group_fail(c, "%d survivors", coset_comm_size(rest)) : 0;
    coset_comm_destroy(rest);
    return bad;
}

static int run_late_survivor(const char *transport)
{
    group g = GROUP(transport, 4);
    int dead_ms = g.options.dead_ms = 2000;
    g.expect_dead = 1;
    return group_run(&g, regroup_late, &dead_ms);
}

/* ---- a forked child must not disturb its parent, and cannot use the communicator ---- */

static int with_child(coset_comm *c, void *arg)
{
    (void)arg;
    int status, done;
    coset_request *pending;
    if (group_want(c, coset_ibarrier(c, &pending), COSET_OK, "ibarrier"))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        int refused = coset_barrier(c) == COSET_ERR_UNSUPPORTED &&
                      coset_test(pending, &done) == COSET_ERR_UNSUPPORTED &&
                      coset_wait(&pending, -1) == COSET_ERR_UNSUPPORTED;
        coset_comm_destroy(c);
        _exit(!refused);
    }
    int bad = waitpid(child, &status, 0) != child || status ? group_fail(c, "the child: %d", status) : 0;
    bad |= group_want(c, coset_wait(&pending, -1), COSET_OK, "a request from before the fork");
    for (int i = 0; i < 10 && !bad; i++)
        bad = group_want(c, coset_barrier(c), COSET_OK, "after a child has come and gone");
    return bad;
}

static int run_fork(const char *transport)
{
    group g = GROUP(transport, 2);
    return group_run(&g, with_child, NULL);
}

/* ---- leaving in good order is no death, but a later call that needs the rank fails at once ---- */

static int leave_early(coset_comm *c, void *arg)
{
    (void)arg;
    if (group_want(c, coset_barrier(c), COSET_OK, "barrier"))
        return 1;
    if (coset_comm_rank(c) == 1)
        return 0;
    return group_want(c, coset_barrier(c), COSET_ERR_PEER, "with a rank that left") || want_text(c, "rank 1");
}

/* Rank 0 waits for rank 2, which waits for the one that has left, and leaves then as well. */
static int leave_behind_another(coset_comm *c, void *arg)
{
    (void)arg;
    int rank = coset_comm_rank(c);
    float x;
    if (group_want(c, coset_barrier(c), COSET_OK, "barrier"))
        return 1;
    if (rank == 1)
        return 0;
    return group_want(c, coset_recv(&x, 1, COSET_F32, rank ? 1 : 2, c), COSET_ERR_PEER, "recv") ||
           want_text(c, "rank 1");
}

static int run_leave(const char *transport)
{
    group g = GROUP(transport, 3);
    g.seconds = 20;
    return group_run(&g, leave_early, NULL) + group_run(&g, leave_behind_another, NULL);
}

/* ---- who has done its part may leave, however late the last one comes ---- */

static int come_last(coset_comm *c, void *arg)
{
    int dead_ms = *(int *)arg, bad = group_want(c, coset_barrier(c), COSET_OK, "barrier");
    enum { MANY = 20000 }; /* over tcp a few are kept as they come, and so many wait in the kernel */
    static _Thread_local float few[10], sum[10], many[MANY];
    if (coset_comm_rank(c)) {
        few[9] = many[MANY - 1] = 1;
        bad = bad || group_want(c, coset_send(many, MANY, COSET_F32, 0, c), COSET_OK, "send");
        return bad || group_want(c, coset_reduce(few, NULL, 10, COSET_F32, COSET_SUM, 0, c), COSET_OK, "reduce");
    }
    poll(NULL, 0, 3 * dead_ms / 2);
    for (int r = 1; r < 3 && !bad; r++) {
        memset(many, 0, sizeof many);
        bad = group_want(c, coset_recv(many, MANY, COSET_F32, r, c), COSET_OK, "recv");
        if (!bad && many[MANY - 1] != 1)
            bad = group_fail(c, "from rank %d came %g", r, (double)many[MANY - 1]);
    }
    bad = bad || group_want(c, coset_reduce(few, sum, 10, COSET_F32, COSET_SUM, 0, c), COSET_OK, "reduce at the root");
    return !bad && sum[9] != 2 ? group_fail(c, "the sum is %g", (double)sum[9]) : bad;
}

static int run_last(const char *transport)
{
    group g = GROUP(transport, 3);
    int dead_ms = g.options.dead_ms = 2000;
    return group_run(&g, come_last, &dead_ms);
}

/* The same with an operation begun, which the destruction ends: what has been shown of it must not keep the other waiting. */
static int leave_begun(coset_comm *c, void *arg)
{
    int *gate = arg, done, rank = coset_comm_rank(c), bad = 0;
    char byte = 0;
    int32_t x = 1;
    coset_request *r;
    coset_comm *sub;
    if (group_want(c, coset_comm_split(c, 0, rank, &sub), COSET_OK, "split"))
        return 1;
    if (rank == 1) {
        bad = group_want(sub, coset_iallreduce(&x, &x, 1, COSET_I32, COSET_SUM, sub, &r), COSET_OK, "iallreduce") ||
              group_want(sub, coset_test(r, &done), COSET_OK, "test");
        coset_comm_destroy(sub);
        return write(gate[1], &byte, 1) != 1 || bad;
    }
    if (read(gate[0], &byte, 1) != 1)
        return 1;
    coset_status status = coset_allreduce(&x, &x, 1, COSET_I32, COSET_SUM, sub);
    if (status == COSET_OK && over_messages(c)) /* what rank 1 had sent may be enough */
        status = coset_barrier(sub);
    bad = group_want(sub, status, COSET_ERR_PEER, "with a rank that left in the middle") || want_text(sub, "rank 1");
    coset_comm_destroy(sub);
    return bad;
}

static int run_leave_begun(const char *transport)
{
    int gate[2];
    if (pipe(gate))
        return 1;
    group g = GROUP(transport, 2);
    g.options.progress = COSET_PROGRESS_CALLER; /* the test of the request is what begins the operation */
    g.seconds = 20;
    int bad = group_run(&g, leave_begun, gate);
    close(gate[0]);
    close(gate[1]);
    return bad;
}

/* ---- creation that cannot succeed ---- */

static int create_differently(coset_comm *none, void *arg)
{
    (void)none;
    int variant = *(int *)arg, odd = group_oob()->rank == 1;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    coset_error why = COSET_ERROR_INIT;
    coset_comm *c = NULL;
    o.transport = "shm";
    if (variant == 0 && odd)
        o.algorithm = "ring";
    if (variant == 1 && odd)
        o.late_ms = 1234;
    if (variant == 2 && odd)
        o.transport = "tcp";
    if (variant == 3)
        o.transport = "pigeon";
    if (variant == 4)
        o.algorithm = "abacus";
    coset_status wanted = variant < 3 ? COSET_ERR_MISMATCH : variant == 3 ? COSET_ERR_UNSUPPORTED : COSET_ERR_ARGUMENT;
    coset_status status = coset_comm_create_oob(group_oob(), &o, &c, &why);
    if (status != wanted || c || !why.text[0]) {
        fprintf(stderr, "variant %d: %s (%s)\n", variant, coset_strerror(status), why.text);
        return 1;
    }
    return 0;
}

static int run_create(const char *transport)
{
    int bad = 0;
    for (int variant = 0; variant < 5; variant++) {
        group g = GROUP(transport, 3);
        bad += group_run_bare(&g, create_differently, &variant);
    }
    return bad;
}

static const struct {
    const char *name;
    int (*run)(const char *transport);
    int processes_only;
} cases[] = {
    {"mismatch", run_mismatch, 0},
    {"bad_argument", run_bad_argument, 0},
    {"wrong_arguments", run_all_wrong, 0},
    {"right_and_wrong", run_right_and_wrong, 0},
    {"late", run_late, 0},
    {"abort", run_abort, 0},
    {"told", run_told, 1},
    {"self_abort", run_self_abort, 0},
    {"death", run_death, 1},
    {"regroup", run_regroup, 0},
    {"late_survivor", run_late_survivor, 1},
    {"fork", run_fork, 1},
    {"leave", run_leave, 0},
    {"last", run_last, 0},
    {"leave_begun", run_leave_begun, 0},
    {"create", run_create, 1},
};

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc < 2)
        return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if ((argc > 2 && strcmp(argv[2], cases[i].name)) || (cases[i].processes_only && !strcmp(argv[1], "threads")))
            continue;
        int failed = cases[i].run(argv[1]);
        fprintf(stderr, "%s %s: %s\n", argv[1], cases[i].name, failed ? "FAILED" : "ok");
        bad += failed != 0;
    }
    return bad != 0;
}
