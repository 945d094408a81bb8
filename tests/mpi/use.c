/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coset_comm_from_mpi as MPI programs use it.
 * usage: mpirun -n N use TEST
 * Exit status: 0, or 1 after a line on standard error that says what is wrong.
 */
#include <coset_mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static _Noreturn void fail_at(int line, const char *what, const coset_comm *comm)
{
    coset_error e = COSET_ERROR_INIT;
    if (comm)
        coset_last_error(comm, &e);
    fprintf(stderr, "rank %d, line %d: %s (%s)\n", rank, line, what, e.text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _Exit(1);
}
#define CHECK(comm, condition) ((condition) ? (void)0 : fail_at(__LINE__, #condition, comm))

static void start(int level)
{
    int given;
    MPI_Init_thread(NULL, NULL, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (given < level) {
        if (!rank)
            printf("skipped: this MPI gives no more than thread level %d\n", given);
        MPI_Finalize();
        exit(77);
    }
}

static coset_comm *join(MPI_Comm mpi, const coset_comm_options *options)
{
    coset_comm *c;
    coset_error why = COSET_ERROR_INIT;
    if (coset_comm_from_mpi(mpi, options, &c, &why))
        fail_at(__LINE__, why.text, NULL);
    return c;
}

static float value(int r, size_t i)
{
    return (float)((int)((i * 7 + (size_t)r * 13 + i / 97) % 31) - 15); /* small integers: every order gives one sum */
}

/* Against MPI's own sum. */
static void try_allreduce(coset_comm *c, MPI_Comm mpi, size_t n, int asynchronous)
{
    int me = coset_comm_rank(c);
    float *send = malloc((n + 1) * sizeof *send), *recv = calloc(n + 1, sizeof *recv),
          *want = malloc((n + 1) * sizeof *want);
    coset_request *request;
    CHECK(NULL, send && recv && want);
    for (size_t i = 0; i < n; i++)
        send[i] = value(me, i);
    MPI_Allreduce(send, want, (int)n, MPI_FLOAT, MPI_SUM, mpi);
    if (asynchronous) {
        CHECK(c, !coset_iallreduce(send, recv, n, COSET_F32, COSET_SUM, c, &request));
        CHECK(c, !coset_wait(&request, -1));
    } else {
        CHECK(c, !coset_allreduce(send, recv, n, COSET_F32, COSET_SUM, c));
    }
    CHECK(c, !memcmp(recv, want, n * sizeof *recv));
    free(send);
    free(recv);
    free(want);
}

static void try_others(coset_comm *c)
{
    enum { EACH = 5003 };
    int n = coset_comm_size(c), me = coset_comm_rank(c), next = (me + 1) % n, before = (me + n - 1) % n;
    int32_t *all = calloc((size_t)n * EACH, sizeof *all), *one = malloc(EACH * sizeof *one),
            *got = calloc(EACH, sizeof *got);
    coset_request *request;
    CHECK(NULL, all && one && got);
    for (int i = 0; i < EACH; i++)
        one[i] = me * EACH + i;
    CHECK(c, !coset_allgather(one, all, EACH, COSET_I32, c));
    for (int i = 0; i < n * EACH; i++)
        CHECK(c, all[i] == i);
    CHECK(c, !coset_reduce_scatter(all, got, EACH, COSET_I32, COSET_SUM, c));
    for (int i = 0; i < EACH; i++)
        CHECK(c, got[i] == n * one[i]);
    CHECK(c, !coset_broadcast(one, got, EACH, COSET_I32, n - 1, c));
    CHECK(c, got[EACH - 1] == n * EACH - 1);
    CHECK(c, !coset_barrier(c));
    if (n > 1) {
        CHECK(c, !coset_isend(one, EACH, COSET_I32, next, c, &request));
        CHECK(c, !coset_recv(got, EACH, COSET_I32, before, c));
        CHECK(c, !coset_wait(&request, -1));
        CHECK(c, got[1] == before * EACH + 1);
    }
    free(all);
    free(one);
    free(got);
}

static void matrix(void)
{
    static const char *const algorithms[] = {"auto", "flat", "direct", "ring", "rd", "rhd", "tree", "naive"};
    start(MPI_THREAD_MULTIPLE);
    const size_t counts[] = {0, 1, (size_t)size, (size_t)size + 1, 1009, 70001, 300007};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        coset_comm_options o = COSET_COMM_OPTIONS_INIT;
        o.transport = "mpi";
        o.algorithm = algorithms[a];
        o.checksum = a % 2;
        coset_comm *c = join(MPI_COMM_WORLD, &o);
        CHECK(c, !strcmp(coset_comm_transport(c), "mpi") && coset_comm_rank(c) == rank && coset_comm_size(c) == size);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            try_allreduce(c, MPI_COMM_WORLD, counts[k], 0);
            try_allreduce(c, MPI_COMM_WORLD, counts[k], 1);
        }
        try_others(c);
        coset_comm_destroy(c);
    }
    MPI_Finalize();
}

static void *join_from_another_thread(void *arg)
{
    coset_comm *c;
    coset_error why = COSET_ERROR_INIT;
    *(coset_status *)arg = coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &c, &why);
    return NULL;
}

static void *abort_it(void *comm)
{
    coset_comm_abort(comm, "enough");
    return NULL;
}

static void funneled(void)
{
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    coset_error why = COSET_ERROR_INIT;
    coset_comm *c = NULL;
    pthread_t thread;
    coset_status status = COSET_OK;
    start(MPI_THREAD_FUNNELED);
    int level;
    MPI_Query_thread(&level);
    o.transport = "mpi";
    if (level < MPI_THREAD_MULTIPLE) { /* an MPI may give more than was asked for */
        CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, &o, &c, &why) == COSET_ERR_UNSUPPORTED);
        CHECK(NULL, !c && strstr(why.text, "MPI_THREAD_MULTIPLE") && strstr(why.text, "COSET_PROGRESS_CALLER"));
    }
    if (level <= MPI_THREAD_FUNNELED) {
        CHECK(NULL, !pthread_create(&thread, NULL, join_from_another_thread, &status));
        pthread_join(thread, NULL);
        CHECK(NULL, status == COSET_ERR_UNSUPPORTED);
    }
    o.progress = COSET_PROGRESS_CALLER;
    c = join(MPI_COMM_WORLD, &o);
    for (size_t n = 1; n < 1000000; n *= 10) {
        try_allreduce(c, MPI_COMM_WORLD, n, 0);
        try_allreduce(c, MPI_COMM_WORLD, n, 1);
    }
    try_others(c);
    coset_comm_destroy(c);

    /* an abort from a thread that may not call MPI is sent when this rank leaves */
    c = join(MPI_COMM_WORLD, &o);
    if (rank == 1) {
        CHECK(c, !pthread_create(&thread, NULL, abort_it, c));
        pthread_join(thread, NULL);
    } else {
        CHECK(c, coset_barrier(c) == COSET_ERR_ABORTED);
    }
    coset_comm_destroy(c);
    MPI_Finalize();
}

/* Two ranks per pretended host: memory is shared inside one, MPI goes between them. */
static void hosts(void)
{
    static const char *const algorithms[] = {"hier", "auto", "ring"};
    char name[16];
    start(MPI_THREAD_MULTIPLE);
    coset_comm *c = join(MPI_COMM_WORLD, NULL);
    CHECK(c, !strcmp(coset_comm_transport(c), "shm"));
    coset_comm_destroy(c);
    snprintf(name, sizeof name, "host%d", rank / 2);
    setenv("COSET_HOSTID", name, 1);
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        coset_comm_options o = COSET_COMM_OPTIONS_INIT;
        const size_t n = 500009;
        o.algorithm = algorithms[a];
        c = join(MPI_COMM_WORLD, &o);
        CHECK(c, !strcmp(coset_comm_transport(c), "mpi"));
        try_allreduce(c, MPI_COMM_WORLD, n, 0);
        try_allreduce(c, MPI_COMM_WORLD, n, 1);
        try_allreduce(c, MPI_COMM_WORLD, 3, 0);
        try_others(c);
        coset_comm_destroy(c);
    }
    MPI_Finalize();
}

/* Communicators of some of the ranks, several at a time, left in another order than made. */
static void split(void)
{
    MPI_Comm half, back;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    coset_comm *sub, *none = NULL;
    o.transport = "mpi";
    start(MPI_THREAD_MULTIPLE);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back);
    coset_comm *world = join(MPI_COMM_WORLD, &o), *mine = join(half, &o), *reversed = join(back, &o);
    CHECK(world, !coset_comm_split(world, rank % 2, rank, &sub));
    CHECK(world, !coset_comm_split(world, rank ? -1 : 0, 0, &none));
    CHECK(world, (none != NULL) == !rank && coset_comm_size(sub) == (size + 1 - rank % 2) / 2);
    CHECK(sub, !strcmp(coset_comm_transport(sub), "mpi"));
    CHECK(reversed, coset_comm_rank(reversed) == size - 1 - rank);
    for (int i = 0; i < 3; i++) {
        try_allreduce(world, MPI_COMM_WORLD, 30011, i % 2);
        try_allreduce(sub, half, 100003, i % 2);
        try_allreduce(mine, half, 7, i % 2);
        try_allreduce(reversed, back, 50021, i % 2);
    }
    coset_comm_destroy(world);
    try_allreduce(sub, half, 100003, 0);
    coset_comm_destroy(none);
    coset_comm_destroy(mine);
    try_allreduce(reversed, back, 5000, 1);
    MPI_Comm_free(&back); /* what was made from it does not need it */
    CHECK(reversed, !coset_barrier(reversed));
    coset_comm_destroy(reversed);
    coset_comm_destroy(sub);
    MPI_Comm_free(&half);
    MPI_Finalize();
}

static void mismatch(void)
{
    float x[20000] = {0};
    coset_error e = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    start(MPI_THREAD_MULTIPLE);
    for (size_t n = 10; n < 20000; n *= 1000) { /* one that rides in a frame, one that does not */
        o.transport = "mpi";
        coset_comm *c = join(MPI_COMM_WORLD, &o);
        CHECK(c, coset_allreduce(x, x, n + (rank == 1), COSET_F32, COSET_SUM, c) == COSET_ERR_MISMATCH);
        coset_last_error(c, &e);
        CHECK(c, strlen(e.text) > 10);
        coset_comm_destroy(c);
    }
    MPI_Finalize();
}

/* Rank 1 does not come to an operation. */
static void late(void)
{
    float x[100] = {0};
    coset_error e = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    start(MPI_THREAD_MULTIPLE);
    o.transport = "mpi";
    o.late_ms = 1000;
    coset_comm *c = join(MPI_COMM_WORLD, &o);
    if (rank != 1) {
        CHECK(c, coset_allreduce(x, x, 100, COSET_F32, COSET_SUM, c) == COSET_ERR_LATE);
        coset_last_error(c, &e);
        CHECK(c, e.peer == 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) /* it learns that the others have given up */
        CHECK(c, coset_allreduce(x, x, 100, COSET_F32, COSET_SUM, c) == COSET_ERR_LATE);
    coset_comm_destroy(c);
    MPI_Finalize();
}

/* Rank 1 does not come to the creation in time. */
static void absent(void)
{
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    coset_comm *c = NULL;
    start(MPI_THREAD_MULTIPLE);
    o.late_ms = 500;
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, &o, &c, &why) == COSET_ERR_LATE);
    CHECK(NULL, !c && strlen(why.text) > 10);
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("both were late\n");
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 0);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    pause(); /* until the abort: what is still under way inside MPI does not let MPI_Finalize end everywhere */
}

static void abort_all(void)
{
    float x[100] = {0};
    coset_error e = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    pthread_t thread;
    start(MPI_THREAD_MULTIPLE);
    o.transport = "mpi";
    coset_comm *c = join(MPI_COMM_WORLD, &o);
    if (rank == 1) {
        CHECK(c, !pthread_create(&thread, NULL, abort_it, c));
        pthread_join(thread, NULL);
    }
    CHECK(c, coset_allreduce(x, x, 100, COSET_F32, COSET_SUM, c) == COSET_ERR_ABORTED);
    coset_last_error(c, &e);
    CHECK(c, strstr(e.text, "enough"));
    coset_comm_destroy(c);
    MPI_Finalize();
}

static void refusals(void)
{
    MPI_Comm inter;
    coset_error why = COSET_ERROR_INIT;
    coset_comm_options o = COSET_COMM_OPTIONS_INIT, unset = {0};
    coset_comm *c = NULL;
    start(MPI_THREAD_MULTIPLE);
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_NULL, NULL, &c, &why) == COSET_ERR_ARGUMENT);
    CHECK(NULL, strstr(why.text, "MPI_COMM_NULL"));
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, NULL, NULL, &why) == COSET_ERR_ARGUMENT);
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, &unset, &c, NULL) == COSET_ERR_ARGUMENT);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, !rank, 7, &inter);
    CHECK(NULL, coset_comm_from_mpi(inter, NULL, &c, &why) == COSET_ERR_ARGUMENT);
    CHECK(NULL, strstr(why.text, "MPI_Intercomm_merge"));
    MPI_Comm_free(&inter);
    o.transport = "carrier pigeon";
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, &o, &c, &why) == COSET_ERR_UNSUPPORTED);
    CHECK(NULL, strstr(why.text, "carrier pigeon"));
    o.transport = "mpi";
    o.late_ms = 5000 + rank; /* ranks disagree */
    CHECK(NULL, coset_comm_from_mpi(MPI_COMM_WORLD, &o, &c, &why) == COSET_ERR_MISMATCH);
    CHECK(NULL, strstr(why.text, "late_ms") && !c);
    o.late_ms = 0;
    o.transport = "tcp"; /* MPI is used to meet only */
    c = join(MPI_COMM_WORLD, &o);
    CHECK(c, !strcmp(coset_comm_transport(c), "tcp"));
    try_allreduce(c, MPI_COMM_WORLD, 1000, 0);
    coset_comm_destroy(c);
    MPI_Finalize();
}

/* Before MPI_Init and after MPI_Finalize. */
static void outside(void)
{
    coset_error why = COSET_ERROR_INIT;
    coset_comm *c = NULL;
    if (coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &c, &why) != COSET_ERR_UNSUPPORTED ||
        !strstr(why.text, "not initialised")) {
        fprintf(stderr, "before MPI_Init: %s\n", why.text);
        exit(1);
    }
    start(MPI_THREAD_SINGLE);
    MPI_Finalize();
    if (coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &c, &why) != COSET_ERR_UNSUPPORTED ||
        !strstr(why.text, "finalised") || c) {
        fprintf(stderr, "after MPI_Finalize: %s\n", why.text);
        exit(1);
    }
}

/* More ranks than cores. */
static void crowd(void)
{
    coset_comm_options o = COSET_COMM_OPTIONS_INIT;
    start(MPI_THREAD_MULTIPLE);
    o.transport = "mpi";
    coset_comm *c = join(MPI_COMM_WORLD, &o);
    for (int i = 0; i < 20; i++)
        try_allreduce(c, MPI_COMM_WORLD, (size_t)i * 1000 + 1, i % 2);
    try_allreduce(c, MPI_COMM_WORLD, 300000, 0);
    coset_comm_destroy(c);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"matrix", matrix},     {"funneled", funneled}, {"hosts", hosts},   {"split", split},
                 {"mismatch", mismatch}, {"late", late},         {"absent", absent}, {"abort", abort_all},
                 {"refusals", refusals}, {"outside", outside},   {"crowd", crowd}};
    for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].run();
            return 0;
        }
    fprintf(stderr, "usage: mpirun -n N %s TEST\n", argv[0]);
    return 2;
}
