/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation with too few descriptors or too little memory, at every limit from nothing to enough: it ends soon, on every
 * rank, with the cause; what was opened is closed again.
 * Of memory, one allocation of one rank is refused (refusal.h).
 */
#include "api/settings.h"
#include "base/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/ranks.h"
#include "descriptors.h"
#include "refusal.h"
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, SOON_MS = 15000 };
/* Beside the outcomes that creation may have. */
enum { NOT_CLEAN = 1000, WRONG_SUM };

/* -------- one rank -------- */

typedef struct {
    const char *transport;
    int victim; /* whom it befalls; -1: all */
    int room;   /* descriptors, or allocations until one is refused */
} scarcity;

static coset_status use(coset_comm *comm, int size, coset_error *why)
{
    float one = 1, sum = 0;
    coset_status status = coset_allreduce(&one, &sum, 1, COSET_F32, COSET_SUM, comm);
    if (status)
        coset_last_error(comm, why);
    return status ? status : sum == (float)size ? COSET_OK : (coset_status)WRONG_SUM;
}

static void name_rank(int rank, const char *transport)
{
    char text[40];
    snprintf(text, sizeof text, "scarce.%d", (int)getppid());
    setenv("COSET_JOB", text, 1);
    snprintf(text, sizeof text, "%d", rank);
    setenv("COSET_RANK", text, 1);
    snprintf(text, sizeof text, "%d", RANKS);
    setenv("COSET_SIZE", text, 1);
    setenv("COSET_LOCAL_SIZE", text, 1);
    setenv("COSET_TRANSPORT", transport, 1);
}

static coset_status with_descriptors(int rank, void *ctx, coset_error *why)
{
    const scarcity *s = ctx;
    coset_comm *comm = NULL;
    int before = open_descriptors();
    name_rank(rank, s->transport);
    if (s->victim < 0 || s->victim == rank)
        limit_descriptors(limit_for(s->room));
    coset_status status = coset_comm_create_env(NULL, &comm, why);
    limit_descriptors(RLIM_INFINITY);
    if (!status) {
        status = use(comm, RANKS, why);
        coset_comm_destroy(comm);
    }
    return open_descriptors() == before ? status : (coset_status)NOT_CLEAN;
}

static coset_status join(cst_bootstrap *b, const scarcity *s, int rank, coset_error *why)
{
    cst_settings settings;
    coset_comm *comm = NULL;
    coset_status status = cst_settings_from(NULL, &settings, why);
    if (rank == s->victim)
        refuse_allocation(s->room);
    if (!status)
        status = cst_comm_create(cst_bootstrap_oob(b), &settings, NULL, &comm, why);
    refuse_allocation(0);
    if (!status) {
        status = use(comm, RANKS, why);
        cst_comm_destroy(comm);
    }
    cst_bootstrap_close(b);
    return status;
}

static coset_status with_memory(int rank, void *ctx, coset_error *why)
{
    const scarcity *s = ctx;
    cst_bootstrap *b;
    int before = open_descriptors();
    name_rank(rank, s->transport);
    coset_status status = cst_bootstrap_env(SOON_MS, &b, why);
    if (!status)
        status = join(b, s, rank, why);
    return open_descriptors() == before ? status : (coset_status)NOT_CLEAN;
}

/* -------- all of them -------- */

static void show(const scarcity *s, const outcome *o)
{
    for (int r = 0; r < RANKS; r++)
        print_message("%s, room %d, rank %d: %d %s\n", s->transport, s->room, r, o[r].status, o[r].why.text);
}

/* Every rank says the same, and what to do. True: there was enough. */
static bool judge_descriptors(const scarcity *s, const outcome *o)
{
    bool right = true;
    for (int r = 0; r < RANKS; r++) {
        right = right && o[r].reported && o[r].status == o[0].status;
        right = right && (!o[r].status || (o[r].status == COSET_ERR_SYSTEM && strstr(o[r].why.text, "(ulimit -n ")));
    }
    if (!right)
        show(s, o);
    assert_true(right);
    return o[0].status == COSET_OK;
}

static void descriptors(const char *transport, int victim, int least)
{
    const int most = 64;
    scarcity s = {transport, victim, least};
    outcome o[RANKS];
    for (;; s.room++) {
        cst_deadline soon = cst_deadline_in(SOON_MS);
        assert_true(s.room < most);
        run_ranks(RANKS, with_descriptors, &s, o);
        assert_false(cst_deadline_passed(soon));
        if (judge_descriptors(&s, o))
            break;
    }
    assert_true(s.room > least);
}

/* With less than two, rank 0 can neither be found nor tell anybody. */
static void test_descriptors_tcp(void **state)
{
    (void)state;
    descriptors("tcp", -1, 2);
    descriptors("tcp", 2, 1);
}

static void test_descriptors_shm(void **state)
{
    (void)state;
    descriptors("shm", -1, 2);
    descriptors("shm", 2, 1);
}

/* Ranks that are threads share one limit: what each of them finds free must be enough for all together. */
static coset_status threads_with_descriptors(int rank, void *ctx, coset_error *why)
{
    const scarcity *s = ctx;
    coset_comm_options options = COSET_COMM_OPTIONS_INIT;
    coset_comm *comms[RANKS];
    int before = open_descriptors();
    (void)rank;
    options.transport = s->transport;
    limit_descriptors(limit_for(s->room));
    coset_status status = coset_comm_create_threads(RANKS, &options, comms, why);
    limit_descriptors(RLIM_INFINITY);
    for (int r = 0; r < RANKS && !status; r++)
        coset_comm_destroy(comms[r]);
    return open_descriptors() == before ? status : (coset_status)NOT_CLEAN;
}

static void test_descriptors_of_threads(void **state)
{
    (void)state;
    const int most = 128;
    scarcity s = {"tcp", -1, 0};
    outcome o = {.status = COSET_ERR_SYSTEM};
    for (; o.status == COSET_ERR_SYSTEM; s.room++) {
        cst_deadline soon = cst_deadline_in(SOON_MS);
        assert_true(s.room < most);
        run_ranks(1, threads_with_descriptors, &s, &o);
        assert_false(cst_deadline_passed(soon));
        if (o.status != COSET_OK && !strstr(o.why.text, "(ulimit -n "))
            print_message("room %d: %d %s\n", s.room, o.status, o.why.text);
        assert_true(o.reported && (o.status == COSET_OK || strstr(o.why.text, "(ulimit -n ")));
    }
    assert_int_equal(o.status, COSET_OK);
}

/* The victim is out of memory; the others hear of it, or at least that it is gone. True: nothing was refused, or what
 * was refused could be done without. */
static bool judge_memory(const scarcity *s, const outcome *o)
{
    bool right = true, well = o[s->victim].status == COSET_OK;
    right = well || o[s->victim].status == COSET_ERR_MEMORY;
    for (int r = 0; r < RANKS; r++) {
        coset_status told = o[r].status;
        right = right && o[r].reported && (well ? !told : told == COSET_ERR_MEMORY || told == COSET_ERR_PEER);
    }
    if (!right)
        show(s, o);
    assert_true(right);
    return well;
}

/* Creation takes fewer than `most` allocations: then so many in a row have refused nothing. */
static void memory(const char *transport, int victim, void (*run)(scarcity *s, outcome *o))
{
    enum { IN_A_ROW = 6 };
    scarcity s = {transport, victim, 1};
    outcome o[RANKS];
    int well = 0;
    for (; well < IN_A_ROW; s.room++) {
        cst_deadline soon = cst_deadline_in(SOON_MS);
        run(&s, o);
        assert_false(cst_deadline_passed(soon));
        well = judge_memory(&s, o) ? well + 1 : 0;
    }
    assert_true(s.room > IN_A_ROW + 5);
}

static void in_processes(scarcity *s, outcome *o)
{
    run_ranks(RANKS, with_memory, s, o);
}

static void test_memory_tcp(void **state)
{
    (void)state;
    memory("tcp", 0, in_processes);
    memory("tcp", 2, in_processes);
}

static void test_memory_shm(void **state)
{
    (void)state;
    memory("shm", 0, in_processes);
    memory("shm", 2, in_processes);
}

typedef struct {
    pthread_t thread;
    int rank;
    cst_bootstrap *bootstrap;
    const scarcity *s;
    outcome *out;
} member;

static void *member_main(void *arg)
{
    member *m = arg;
    m->out->status = join(m->bootstrap, m->s, m->rank, &m->out->why);
    m->out->reported = true;
    return NULL;
}

static void in_threads(scarcity *s, outcome *o)
{
    member m[RANKS];
    cst_bootstrap *b[RANKS];
    assert_int_equal(cst_bootstrap_threads(RANKS, b, NULL), COSET_OK);
    setenv("COSET_TRANSPORT", "threads", 1);
    for (int r = 0; r < RANKS; r++) {
        o[r] = (outcome){.why = COSET_ERROR_INIT};
        m[r] = (member){.rank = r, .bootstrap = b[r], .s = s, .out = &o[r]};
        assert_int_equal(pthread_create(&m[r].thread, NULL, member_main, &m[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(m[r].thread, NULL);
}

static void test_memory_threads(void **state)
{
    (void)state;
    memory("threads", 0, in_threads);
    memory("threads", 2, in_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_tcp),
        cmocka_unit_test(test_descriptors_shm),
        cmocka_unit_test(test_descriptors_of_threads),
        cmocka_unit_test(test_memory_tcp),
        cmocka_unit_test(test_memory_shm),
        cmocka_unit_test(test_memory_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
