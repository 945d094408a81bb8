/* SPDX-License-Identifier: Apache-2.0 */
/* Every form brings all ranks together, and the all-gather gathers. */
#include "bootstrap/bootstrap.h"
#include "bootstrap/id.h"
#include "net/socket.h"
#include "ranks.h"
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int sizes[] = {1, 2, 3, 5, 8};
#define SIZES   (int)(sizeof sizes / sizeof *sizes)
#define IN_TIME 20000

/* Gathers of 0, 1, 13 and 100000 bytes, and one in place, all checked. */
static coset_status gather_all(const coset_oob *oob)
{
    static const size_t lengths[] = {0, 1, 13, 100000, 64};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        uint8_t *all = malloc(n * (size_t)oob->size + 1), *mine = malloc(n + 1);
        bool in_place = k == 4;
        memset(in_place ? all + n * (size_t)oob->rank : mine, (int)k * 16 + oob->rank, n);
        coset_status status = oob->allgather(oob->ctx, in_place ? all + n * (size_t)oob->rank : mine, all, n, IN_TIME);
        for (size_t i = 0; i < n * (size_t)oob->size && !status; i++)
            if (all[i] != (uint8_t)(k * 16 + i / n))
                status = COSET_ERR_CORRUPT;
        free(all);
        free(mine);
        if (status)
            return status;
    }
    return COSET_OK;
}

static coset_status use(coset_status made, cst_bootstrap *const *bootstrap, int rank, int size, coset_error *why)
{
    if (made)
        return made;
    cst_bootstrap *b = *bootstrap;
    const coset_oob *oob = cst_bootstrap_oob(b);
    coset_status status = oob->rank == rank && oob->size == size ? gather_all(oob) : COSET_ERR_ARGUMENT;
    if (status)
        cst_bootstrap_why(b, why);
    cst_bootstrap_close(b);
    return status;
}

static void expect_ok(const outcome *o, int n)
{
    for (int r = 0; r < n; r++) {
        if (o[r].status)
            print_message("rank %d: %d %s\n", r, o[r].status, o[r].why.text);
        assert_true(o[r].reported);
        assert_int_equal(o[r].status, COSET_OK);
    }
}

/* -------- environment -------- */

typedef struct {
    int size;
    const char *root, *job;
} surroundings;

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static coset_status meet_by_env(int rank, void *ctx, coset_error *why)
{
    const surroundings *s = ctx;
    cst_bootstrap *b = NULL;
    set_number("COSET_RANK", rank);
    set_number("COSET_SIZE", s->size);
    if (s->root)
        setenv("COSET_ROOT", s->root, 1);
    if (s->job)
        setenv("COSET_JOB", s->job, 1);
    coset_status status = COSET_OK;
    for (int again = 0; again < 2 && !status; again++) /* a second communicator of the same job */
        status = use(cst_bootstrap_env(IN_TIME, &b, why), &b, rank, s->size, why);
    return status;
}

static uint16_t free_port(void)
{
    int fd;
    cst_addr bound;
    assert_int_equal(cst_listen_everywhere(0, (cst_ports){0, 0}, &fd, &bound, NULL), COSET_OK);
    cst_close(fd);
    return cst_addr_port(&bound);
}

static void by_environment(void **state)
{
    (void)state;
    char job[64], root[64];
    outcome o[MAX_RANKS];
    snprintf(job, sizeof job, "test%d", (int)getpid());
    for (int i = 0; i < SIZES; i++) {
        surroundings local = {sizes[i], NULL, job};
        run_ranks(sizes[i], meet_by_env, &local, o);
        expect_ok(o, sizes[i]);
        snprintf(root, sizeof root, "localhost:%u", free_port());
        surroundings remote = {sizes[i], root, NULL};
        run_ranks(sizes[i], meet_by_env, &remote, o);
        expect_ok(o, sizes[i]);
    }
}

static void by_environment_on_ipv6(void **state)
{
    (void)state;
    cst_addr six;
    int fd;
    assert_int_equal(cst_addr_parse("::1", &six), 0);
    if (cst_listen(&six, (cst_ports){0, 0}, &fd, NULL, NULL)) {
        print_message("skipped: this host has no IPv6\n");
        skip();
    }
    cst_close(fd);
    char root[64];
    outcome o[MAX_RANKS];
    snprintf(root, sizeof root, "[::1]:%u", free_port());
    surroundings s = {4, root, NULL};
    run_ranks(4, meet_by_env, &s, o);
    expect_ok(o, 4);
}

/* -------- id -------- */

typedef struct {
    coset_unique_id id;
    int rank, size;
    coset_status status;
    coset_error why;
} id_rank;

static void *id_thread(void *ctx)
{
    id_rank *r = ctx;
    cst_bootstrap *b = NULL;
    r->status = use(cst_bootstrap_id(&r->id, r->rank, r->size, IN_TIME, &b, &r->why), &b, r->rank, r->size, &r->why);
    return NULL;
}

/* The ranks are threads of the process that made the id; each uses the form as a process would. */
static void by_id(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        int before = open_descriptors();
        id_rank rank[8];
        pthread_t thread[8];
        coset_unique_id id;
        assert_int_equal(cst_unique_id_create(&id, NULL), COSET_OK);
        for (int r = 0; r < sizes[i]; r++) {
            rank[r] = (id_rank){id, r, sizes[i], COSET_OK, COSET_ERROR_INIT};
            assert_int_equal(pthread_create(&thread[r], NULL, id_thread, &rank[r]), 0);
        }
        for (int r = 0; r < sizes[i]; r++) {
            pthread_join(thread[r], NULL);
            if (rank[r].status)
                print_message("rank %d: %s\n", r, rank[r].why.text);
            assert_int_equal(rank[r].status, COSET_OK);
        }
        assert_int_equal(open_descriptors(), before);
    }
}

static coset_status make_and_meet(int rank, void *ctx, coset_error *why)
{
    int *pipes = ctx; /* rank 0 hands the id to the others */
    coset_unique_id id;
    cst_bootstrap *b = NULL;
    if (rank == 0) {
        coset_status status = cst_unique_id_create(&id, why);
        for (int r = 1; r < 4 && !status; r++)
            if (write(pipes[1], &id, sizeof id) != (ssize_t)sizeof id)
                return COSET_ERR_SYSTEM;
        usleep(50000); /* the others knock before rank 0 listens to them */
    } else if (read(pipes[0], &id, sizeof id) != (ssize_t)sizeof id) {
        return COSET_ERR_SYSTEM;
    }
    return use(cst_bootstrap_id(&id, rank, 4, IN_TIME, &b, why), &b, rank, 4, why);
}

static void by_id_between_processes(void **state)
{
    (void)state;
    int pipes[2];
    outcome o[MAX_RANKS];
    assert_int_equal(pipe(pipes), 0);
    run_ranks(4, make_and_meet, pipes, o);
    close(pipes[0]);
    close(pipes[1]);
    expect_ok(o, 4);
}

static void ids_serve_once_and_at_home(void **state)
{
    (void)state;
    coset_unique_id id, again;
    coset_error why = COSET_ERROR_INIT;
    cst_bootstrap *b;
    assert_int_equal(cst_unique_id_create(&id, NULL), COSET_OK);
    assert_int_equal(cst_unique_id_create(&again, NULL), COSET_OK);
    assert_memory_not_equal(&id, &again, sizeof id);
    assert_int_equal(cst_bootstrap_id(&id, 0, 1, 0, &b, &why), COSET_OK);
    cst_bootstrap_close(b);
    assert_int_equal(cst_bootstrap_id(&id, 0, 1, 0, &b, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "serves once"));
    memset(&id, 0, sizeof id);
    assert_int_equal(cst_bootstrap_id(&id, 0, 2, 0, &b, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "coset_unique_id_create"));
    static const int bad[][2] = {{-1, 2}, {2, 2}, {3, 2}, {0, 0}, {0, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cst_bootstrap_id(&again, bad[i][0], bad[i][1], 0, &b, &why), COSET_ERR_ARGUMENT);
    assert_int_equal(cst_bootstrap_id(&again, 0, 1, 0, &b, &why), COSET_OK); /* refusals have not used it up */
    cst_bootstrap_close(b);
}

static void ids_obey_the_port_range_and_the_interface(void **state)
{
    (void)state;
    coset_unique_id bytes;
    cst_id id;
    coset_error why = COSET_ERROR_INIT;
    setenv("COSET_PORT_RANGE", "42000-42100", 1);
    setenv("COSET_IFNAME", "127.0.0.0/8", 1);
    assert_int_equal(cst_unique_id_create(&bytes, &why), COSET_OK);
    assert_true(cst_id_read(bytes.bytes, &id));
    assert_in_range(id.port, 42000, 42100);
    for (int i = 0; i < id.count; i++)
        assert_true(cst_addr_is_loopback(&id.addr[i]));
    setenv("COSET_IFNAME", "=nosuch0", 1);
    assert_int_equal(cst_unique_id_create(&bytes, &why), COSET_ERR_ARGUMENT);
    unsetenv("COSET_IFNAME");
    setenv("COSET_PORT_RANGE", "nonsense", 1);
    assert_int_equal(cst_unique_id_create(&bytes, &why), COSET_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "COSET_PORT_RANGE"));
    unsetenv("COSET_PORT_RANGE");
}

/* -------- file -------- */

typedef struct {
    const char *path;
    int size;
} place;

static coset_status meet_by_file(int rank, void *ctx, coset_error *why)
{
    const place *p = ctx;
    cst_bootstrap *b = NULL;
    return use(cst_bootstrap_file(p->path, rank, p->size, IN_TIME, &b, why), &b, rank, p->size, why);
}

static void by_file(void **state)
{
    (void)state;
    char path[64];
    outcome o[MAX_RANKS];
    for (int i = 0; i < SIZES; i++) {
        snprintf(path, sizeof path, "/tmp/coset-test-%d", (int)getpid());
        place p = {path, sizes[i]};
        run_ranks(sizes[i], meet_by_file, &p, o);
        expect_ok(o, sizes[i]);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* -------- threads -------- */

typedef struct {
    cst_bootstrap *b;
    int rank, size;
    coset_status status;
} member;

static void *member_thread(void *ctx)
{
    member *m = ctx;
    coset_error why = COSET_ERROR_INIT;
    m->status = use(COSET_OK, &m->b, m->rank, m->size, &why);
    return NULL;
}

static void by_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        cst_bootstrap *b[8];
        member m[8];
        pthread_t thread[8];
        assert_int_equal(cst_bootstrap_threads(sizes[i], b, NULL), COSET_OK);
        for (int r = 0; r < sizes[i]; r++) {
            m[r] = (member){b[r], r, sizes[i], COSET_OK};
            assert_int_equal(pthread_create(&thread[r], NULL, member_thread, &m[r]), 0);
        }
        for (int r = 0; r < sizes[i]; r++) {
            pthread_join(thread[r], NULL);
            assert_int_equal(m[r].status, COSET_OK);
        }
    }
}

typedef struct {
    cst_bootstrap *b;
    size_t bytes;
    int timeout_ms;
    coset_status status;
    coset_error why;
} caller;

static void *caller_thread(void *ctx)
{
    caller *c = ctx;
    char send[16] = "", recv[64];
    const coset_oob *oob = cst_bootstrap_oob(c->b);
    c->why = (coset_error)COSET_ERROR_INIT;
    c->status = oob->allgather(oob->ctx, send, recv, c->bytes, c->timeout_ms);
    cst_bootstrap_why(c->b, &c->why);
    return NULL;
}

static void threads_that_stay_away_are_named(void **state)
{
    (void)state;
    cst_bootstrap *b[3];
    pthread_t thread[2];
    assert_int_equal(cst_bootstrap_threads(3, b, NULL), COSET_OK);
    caller c[2] = {{.b = b[0], .bytes = 8, .timeout_ms = 100}, {.b = b[2], .bytes = 8, .timeout_ms = 100}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, caller_thread, &c[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(c[i].status, COSET_ERR_LATE);
        assert_int_equal(c[i].why.peer, 1);
        assert_non_null(strstr(c[i].why.text, "rank 1 of 3"));
    }
    for (int r = 0; r < 3; r++)
        cst_bootstrap_close(b[r]);
}

/* A rank whose thread could not be started: the others must not wait for it. */
static void threads_that_leave_are_named(void **state)
{
    (void)state;
    cst_bootstrap *b[3];
    pthread_t thread[2];
    assert_int_equal(cst_bootstrap_threads(3, b, NULL), COSET_OK);
    caller c[2] = {{.b = b[0], .bytes = 8, .timeout_ms = 60000}, {.b = b[2], .bytes = 8, .timeout_ms = 60000}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, caller_thread, &c[i]), 0);
    cst_bootstrap_close(b[1]);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(c[i].status, COSET_ERR_PEER);
        assert_int_equal(c[i].why.peer, 1);
        cst_bootstrap_close(c[i].b);
    }
}

static void threads_that_disagree_are_told(void **state)
{
    (void)state;
    cst_bootstrap *b[2];
    pthread_t thread[2];
    assert_int_equal(cst_bootstrap_threads(2, b, NULL), COSET_OK);
    caller c[2] = {{.b = b[0], .bytes = 8, .timeout_ms = 5000}, {.b = b[1], .bytes = 16, .timeout_ms = 5000}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, caller_thread, &c[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(c[i].status, COSET_ERR_MISMATCH);
        cst_bootstrap_close(b[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_environment),
        cmocka_unit_test(by_environment_on_ipv6),
        cmocka_unit_test(by_id),
        cmocka_unit_test(by_id_between_processes),
        cmocka_unit_test(ids_serve_once_and_at_home),
        cmocka_unit_test(ids_obey_the_port_range_and_the_interface),
        cmocka_unit_test(by_file),
        cmocka_unit_test(by_threads),
        cmocka_unit_test(threads_that_stay_away_are_named),
        cmocka_unit_test(threads_that_leave_are_named),
        cmocka_unit_test(threads_that_disagree_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
