/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives other than all-reduce, point to point, and asynchronous calls. usage: collectives TRANSPORT [SIZE...] */
#include "comm/group.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t value(int rank, size_t i)
{
    return (int32_t)(i * 2654435761u) ^ (rank * 40503);
}

typedef struct {
    int32_t *a, *b;
    size_t room;
    int mapped;
} space;

static int differs(coset_comm *c, const char *what, size_t n, size_t i, int32_t got, int32_t want)
{
    if (got == want)
        return 0;
    return group_fail(c, "%s, count %zu: element %zu is %d, not %d", what, n, i, got, want);
}

static uint32_t sum_of(int size, size_t i)
{
    uint32_t sum = 0;
    for (int r = 0; r < size; r++)
        sum += (uint32_t)value(r, i);
    return sum;
}

static int reduce_scatter(coset_comm *c, space s, size_t n, int in_place)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    for (size_t i = 0; i < n * (size_t)size; i++)
        s.a[i] = value(rank, i);
    int32_t *to = in_place ? s.a + (size_t)rank * n : s.b;
    if (group_want(c, coset_reduce_scatter(s.a, to, n, COSET_I32, COSET_SUM, c), COSET_OK, "reduce_scatter"))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (differs(c, "reduce_scatter", n, i, to[i], (int32_t)sum_of(size, (size_t)rank * n + i)))
            return 1;
    return 0;
}

static int allgather(coset_comm *c, space s, size_t n, int in_place)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    int32_t *from = in_place ? s.b + (size_t)rank * n : s.a;
    for (size_t i = 0; i < n; i++)
        from[i] = value(rank, i);
    if (group_want(c, coset_allgather(from, s.b, n, COSET_I32, c), COSET_OK, "allgather"))
        return 1;
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++)
            if (differs(c, "allgather", n, i, s.b[(size_t)r * n + i], value(r, i)))
                return 1;
    return 0;
}

static int alltoall(coset_comm *c, space s, size_t n)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    for (size_t i = 0; i < n * (size_t)size; i++)
        s.a[i] = value(rank, i);
    if (group_want(c, coset_alltoall(s.a, s.b, n, COSET_I32, c), COSET_OK, "alltoall"))
        return 1;
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++)
            if (differs(c, "alltoall", n, i, s.b[(size_t)r * n + i], value(r, (size_t)rank * n + i)))
                return 1;
    return 0;
}

static int broadcast(coset_comm *c, space s, size_t n, int root, int in_place)
{
    int rank = coset_comm_rank(c);
    int32_t *from = rank == root ? (in_place ? s.b : s.a) : NULL;
    for (size_t i = 0; i < n; i++) {
        s.b[i] = -1;
        if (from)
            from[i] = value(root, i);
    }
    if (group_want(c, coset_broadcast(from, s.b, n, COSET_I32, root, c), COSET_OK, "broadcast"))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (differs(c, "broadcast", n, i, s.b[i], value(root, i)))
            return 1;
    return 0;
}

static int reduce(coset_comm *c, space s, size_t n, int root, int in_place)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    int32_t *to = rank == root ? (in_place ? s.a : s.b) : NULL;
    for (size_t i = 0; i < n; i++)
        s.a[i] = value(rank, i);
    if (group_want(c, coset_reduce(s.a, to, n, COSET_I32, COSET_SUM, root, c), COSET_OK, "reduce"))
        return 1;
    for (size_t i = 0; to && i < n; i++)
        if (differs(c, "reduce", n, i, to[i], (int32_t)sum_of(size, i)))
            return 1;
    return 0;
}

/* Everybody sends to the next and receives from the one before: all at once, so sends may not wait for receives. */
static int ring_of_messages(coset_comm *c, space s, size_t n)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c), next = (rank + 1) % size,
        before = (rank + size - 1) % size;
    if (size == 1)
        return 0;
    for (size_t i = 0; i < n; i++)
        s.a[i] = value(rank, i);
    coset_request *out[2], *in[2];
    int bad = group_want(c, coset_isend(s.a, n, COSET_I32, next, c, &out[0]), COSET_OK, "isend") ||
              group_want(c, coset_isend(s.a, n, COSET_I32, next, c, &out[1]), COSET_OK, "isend") ||
              group_want(c, coset_irecv(s.b, n, COSET_I32, before, c, &in[0]), COSET_OK, "irecv") ||
              group_want(c, coset_irecv(s.b + n, n, COSET_I32, before, c, &in[1]), COSET_OK, "irecv");
    for (int k = 0; k < 2 && !bad; k++)
        bad = group_want(c, coset_wait(&in[k], -1), COSET_OK, "wait") ||
              group_want(c, coset_wait(&out[k], -1), COSET_OK, "wait");
    for (size_t i = 0; i < n && !bad; i++)
        bad = differs(c, "message", n, i, s.b[i], value(before, i)) ||
              differs(c, "second message", n, i, s.b[n + i], value(before, i));
    return bad;
}

static void count_completion(void *ctx, coset_status status)
{
    if (status == COSET_OK)
        atomic_fetch_add((_Atomic int *)ctx, 1);
}

/* Many all-reduces under way at once, collected by test, wait, fd and callback. */
static int asynchronous(coset_comm *c, space s)
{
    enum { OPS = 12, N = 3000 };
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    coset_request *requests[OPS];
    _Atomic int completions = 0;
    for (size_t i = 0; i < (size_t)OPS * N; i++)
        s.a[i] = value(rank, i);
    for (int k = 0; k < OPS; k++) {
        if (group_want(c, coset_iallreduce(s.a + k * N, s.a + k * N, N, COSET_I32, COSET_SUM, c, &requests[k]),
                       COSET_OK, "iallreduce"))
            return 1;
        coset_request_on_complete(requests[k], count_completion, &completions);
    }
    int done = 0;
    while (!done)
        if (coset_test(requests[0], &done))
            return group_fail(c, "test failed");
    int32_t one = rank; /* a blocking call behind the queue */
    int bad = group_want(c, coset_allreduce(&one, &one, 1, COSET_I32, COSET_SUM, c), COSET_OK, "blocking behind");
    bad |= differs(c, "blocking behind", 1, 0, one, size * (size - 1) / 2);
    for (int k = OPS - 1; k >= 0; k--)
        bad |= group_want(c, coset_wait(&requests[k], -1), COSET_OK, "wait") || requests[k];
    if (atomic_load(&completions) != OPS)
        bad |= group_fail(c, "%d callbacks instead of %d", atomic_load(&completions), OPS);
    for (size_t i = 0; i < (size_t)OPS * N && !bad; i++)
        bad = differs(c, "iallreduce", N, i, s.a[i], (int32_t)sum_of(size, i));
    return bad;
}

/* Nobody waits and nobody drives: the progress thread alone, seen through the descriptor. */
static int by_descriptor(coset_comm *c)
{
    int fd = coset_comm_fd(c);
    int32_t x = 1, size = coset_comm_size(c);
    coset_request *r;
    if (fd < 0)
        return group_fail(c, "no descriptor");
    if (group_want(c, coset_iallreduce(&x, &x, 1, COSET_I32, COSET_SUM, c, &r), COSET_OK, "iallreduce"))
        return 1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 20000) != 1)
        return group_fail(c, "the descriptor did not become readable");
    int bad = group_want(c, coset_wait(&r, 0), COSET_OK, "wait(0) after the descriptor") ||
              differs(c, "by descriptor", 1, 0, x, size);
    if (poll(&p, 1, 0) != 0)
        bad |= group_fail(c, "the descriptor stays readable with nothing to collect");
    return bad;
}

/* Messages whose receives are posted only after a collective do not hold it up. */
static int sent_ahead(coset_comm *c, space s)
{
    enum { AHEAD = 1500, PART = 30000, LARGE = 2500 };
    int rank = coset_comm_rank(c), bad = 0;
    coset_request *requests[AHEAD];
    if (coset_comm_size(c) == 1)
        return 0;
    for (int i = 0; i < AHEAD && !bad && rank == 0; i++) {
        s.b[i] = i;
        bad = group_want(c, coset_isend(s.b + i, i % 2 ? LARGE : 1, COSET_I32, 1, c, &requests[i]), COSET_OK, "isend");
    }
    bad = bad || group_want(c, coset_allgather(s.a + rank * PART, s.a, PART, COSET_I32, c), COSET_OK, "all-gather");
    for (int i = 0; i < AHEAD && !bad && rank == 1; i++)
        bad = group_want(c, coset_recv(s.b, i % 2 ? LARGE : 1, COSET_I32, 0, c), COSET_OK, "recv") ||
              differs(c, "sent ahead", LARGE, (size_t)i, s.b[0], i);
    for (int i = 0; i < AHEAD && !bad && rank == 0; i++)
        bad = group_want(c, coset_wait(&requests[i], -1), COSET_OK, "wait");
    return bad;
}

static int split(coset_comm *c)
{
    int size = coset_comm_size(c), rank = coset_comm_rank(c);
    coset_comm *sub = NULL;
    int color = rank == size - 1 && size > 2 ? -1 : rank % 2;
    if (group_want(c, coset_comm_split(c, color, -rank, &sub), COSET_OK, "split"))
        return 1;
    if (color < 0)
        return sub ? group_fail(c, "a communicator for no color") : 0;
    /* keys fall with the rank, so the order is reversed */
    int32_t members = 0, mine = rank, at_zero = rank;
    for (int r = 0; r < size; r++)
        members += r % 2 == color && !(r == size - 1 && size > 2);
    int bad = coset_comm_size(sub) != members ? group_fail(c, "sub size %d, not %d", coset_comm_size(sub), members) : 0;
    bad = bad || group_want(sub, coset_allreduce(&mine, &mine, 1, COSET_I32, COSET_MAX, sub), COSET_OK, "max in sub");
    bad =
        bad || group_want(sub, coset_broadcast(&at_zero, &at_zero, 1, COSET_I32, 0, sub), COSET_OK, "broadcast in sub");
    if (!bad && (mine != at_zero))
        bad = group_fail(c, "sub rank 0 is old rank %d, the largest is %d", at_zero, mine);
    coset_comm_destroy(sub);
    return bad;
}

static int all_of(coset_comm *c, space s, size_t n)
{
    int size = coset_comm_size(c);
    int bad = 0;
    for (int in_place = 0; in_place < 2 && !bad; in_place++) {
        bad = reduce_scatter(c, s, n, in_place) || allgather(c, s, n, in_place);
        for (int root = 0; root < size && !bad; root++)
            bad = broadcast(c, s, n, root, in_place) || reduce(c, s, n, root, in_place);
    }
    return bad || alltoall(c, s, n) || ring_of_messages(c, s, n) ||
           group_want(c, coset_barrier(c), COSET_OK, "barrier");
}

static void note_abort(void *ctx, coset_status status)
{
    *(_Atomic int *)ctx = status;
}

/* Destroying a communicator ends what is under way, calls its callbacks and frees the requests (leak checkers watch). */
static int destroyed_with_requests(coset_comm *c)
{
    static _Thread_local _Atomic int ended;
    coset_comm *sub;
    coset_request *r;
    int32_t x = 0;
    ended = COSET_OK;
    if (coset_comm_size(c) == 1)
        return 0;
    if (group_want(c, coset_comm_split(c, 0, coset_comm_rank(c), &sub), COSET_OK, "split"))
        return 1;
    /* rank 0 never takes part, so it cannot end otherwise */
    int bad = 0;
    if (coset_comm_rank(c)) {
        bad = group_want(c, coset_iallreduce(&x, &x, 1, COSET_I32, COSET_SUM, sub, &r), COSET_OK, "iallreduce");
        if (!bad)
            coset_request_on_complete(r, note_abort, &ended);
    }
    coset_comm_destroy(sub);
    if (!bad && coset_comm_rank(c) && ended != COSET_ERR_ABORTED && ended != COSET_ERR_PEER)
        bad = group_fail(c, "destroyed with a request: it ended with %s", coset_strerror((coset_status)ended));
    return bad;
}

static int body(coset_comm *c, void *arg)
{
    (void)arg;
    static const size_t counts[] = {0, 1, 5, 1009, 40000};
    size_t room = 40000 * (size_t)(coset_comm_size(c) > 1 ? coset_comm_size(c) : 2);
    space plain = {malloc(room * 4), malloc(room * 4), room, 0}, mapped = {NULL, NULL, room, 1};
    int bad = !plain.a || !plain.b || group_want(c, coset_alloc(c, room * 4, (void **)&mapped.a), COSET_OK, "alloc") ||
              group_want(c, coset_alloc(c, room * 4, (void **)&mapped.b), COSET_OK, "alloc");
    for (size_t k = 0; k < sizeof counts / sizeof *counts && !bad; k++)
        bad = all_of(c, plain, counts[k]) || all_of(c, mapped, counts[k]);
    bad = bad || asynchronous(c, plain) || asynchronous(c, mapped) || by_descriptor(c) || sent_ahead(c, plain) ||
          split(c) || destroyed_with_requests(c);
    free(plain.a);
    free(plain.b);
    return bad;
}

/* A caller that drives by itself and sleeps on the descriptor without limit: it must be readable whenever there is more to
 * do, also when all messages have come and the sums of a long vector are left. */
static int by_own_descriptor(coset_comm *c, void *arg)
{
    (void)arg;
    enum { LONG = 6000000, TURNS = 3 };
    int fd = coset_comm_fd(c), done, bad = 0;
    if (strcmp(coset_comm_transport(c), "tcp"))
        return fd < 0 ? 0 : group_fail(c, "a descriptor that flags in shared memory cannot make readable");
    int32_t *x = calloc(LONG, sizeof *x);
    for (int turn = 0; turn < TURNS && !bad; turn++) {
        coset_request *r;
        if (!x || group_want(c, coset_iallreduce(x, x, LONG, COSET_I32, COSET_SUM, c, &r), COSET_OK, "iallreduce"))
            return 1;
        while (!(bad = coset_test(r, &done)) && !done) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            if (poll(&p, 1, 20000) != 1)
                return group_fail(c, "turn %d: nothing readable for 20 s, and the request has not ended", turn);
        }
        bad |= group_want(c, coset_wait(&r, 0), COSET_OK, "wait");
    }
    free(x);
    return bad;
}

int main(int argc, char **argv)
{
    static const int all_sizes[] = {1, 2, 3, 4, 5, 8};
    if (argc < 2)
        return 2;
    int bad = 0;
    for (size_t s = 0; s < sizeof all_sizes / sizeof *all_sizes; s++) {
        int wanted = argc == 2;
        for (int i = 2; i < argc; i++)
            wanted |= atoi(argv[i]) == all_sizes[s];
        if (!wanted)
            continue;
        group g = GROUP(argv[1], all_sizes[s]);
        int failed = group_run(&g, body, NULL);
        if (failed)
            fprintf(stderr, "FAILED: %s, %d ranks (%d ranks)\n", argv[1], all_sizes[s], failed);
        bad += failed;
    }
    group g = GROUP(argv[1], 2);
    g.options.progress = COSET_PROGRESS_CALLER;
    bad += group_run(&g, by_own_descriptor, NULL);
    return bad != 0;
}
