/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong while a job starts: on every rank that is there, a clear error with the number of the cause. */
#include "bootstrap/bootstrap.h"
#include "bootstrap/frame.h"
#include "bootstrap/id.h"
#include "bootstrap/root.h"
#include "net/socket.h"
#include "net/unix.h"
#include "ranks.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_TIME 20000
/* For ranks that never come: the others have to get there in this time. */
#define LATE 2000

/* What process i of a test claims to be. Processes meet at a local socket, or at a port. */
typedef struct {
    struct {
        int rank, size;
        const char *job;
    } claim[8];
    const char *root;
    int timeout_ms;
    size_t bytes[8];
    int dies;    /* this process is killed once it has joined; -1: none */
    int garbage; /* this one sends nonsense instead of its part; -1: none */
} plan;

static const char *own_job(void)
{
    static char job[64];
    snprintf(job, sizeof job, "faults%d", (int)getpid());
    return job;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static coset_status act(int process, void *ctx, coset_error *why)
{
    const plan *p = ctx;
    cst_bootstrap *b;
    char send[64] = "", recv[8 * 64];
    set_number("COSET_RANK", p->claim[process].rank);
    set_number("COSET_SIZE", p->claim[process].size);
    setenv("COSET_JOB", p->claim[process].job, 1);
    if (p->root)
        setenv("COSET_ROOT", p->root, 1);
    coset_status status = cst_bootstrap_env(p->timeout_ms, &b, why);
    if (status)
        return status;
    if (p->dies == process)
        raise(SIGKILL);
    const coset_oob *oob = cst_bootstrap_oob(b);
    status = oob->allgather(oob->ctx, send, recv, p->bytes[process], p->timeout_ms);
    cst_bootstrap_why(b, why);
    cst_bootstrap_close(b);
    return status;
}

static plan plan_for(int size, int timeout_ms)
{
    plan p = {.timeout_ms = timeout_ms, .dies = -1, .garbage = -1};
    for (int r = 0; r < 8; r++) {
        p.claim[r].rank = r;
        p.claim[r].size = size;
        p.claim[r].job = own_job();
        p.bytes[r] = 8;
    }
    return p;
}

static void expect_all(const outcome *o, int n, coset_status status, int peer, const char *words)
{
    for (int i = 0; i < n; i++) {
        if (o[i].status != status || !strstr(o[i].why.text, words))
            print_message("process %d: status %d: %s\n", i, o[i].status, o[i].why.text);
        assert_true(o[i].reported);
        assert_int_equal(o[i].status, status);
        assert_non_null(strstr(o[i].why.text, words));
        if (peer >= 0)
            assert_int_equal(o[i].why.peer, peer);
    }
}

static void missing_ranks_are_named_everywhere(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(7, LATE);
    p.claim[2].rank = 4;
    run_ranks(3, act, &p, o); /* ranks 0, 1 and 4 of 7 */
    expect_all(o, 3, COSET_ERR_LATE, 2, "4 of 7 ranks have not joined in time: rank 2-3, 5-6");
}

static void without_a_root_the_others_say_so(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(3, 300);
    p.claim[0].rank = 2;
    run_ranks(2, act, &p, o); /* ranks 1 and 2 only */
    expect_all(o, 2, COSET_ERR_LATE, 0, "cannot reach rank 0 in time");
    assert_non_null(strstr(o[0].why.text, "nobody listens"));
}

static void two_processes_with_one_rank(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(3, IN_TIME);
    p.claim[2].rank = 1;
    run_ranks(3, act, &p, o);
    expect_all(o, 3, COSET_ERR_MISMATCH, 1, "two processes say they are rank 1");
    assert_non_null(strstr(o[0].why.text, "process"));
}

/* Asks root for the place of `rank`, and takes any answer for a welcome. */
static int ask_root(const cst_addr *root, const cst_token *token, uint32_t rank)
{
    cst_hello hello = {*token, COSET_WIRE_VERSION, CST_PURPOSE_BOOTSTRAP, rank, 3, 0, 0, 1};
    uint8_t bytes[CST_HELLO_BYTES];
    int fd;
    cst_hello_write(&hello, bytes);
    assert_int_equal(cst_connect(root, cst_deadline_in(IN_TIME), &fd, NULL), COSET_OK);
    assert_int_equal(cst_send_all(fd, bytes, sizeof bytes, cst_deadline_in(IN_TIME), NULL), COSET_OK);
    assert_true(cst_hello_choose(fd));
    return fd;
}

static void expect_report(int fd, const char *words)
{
    uint8_t bytes[CST_ANSWER_BYTES + CST_FRAME_BYTES + CST_FAILURE_BYTES];
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_recv_all(fd, bytes, sizeof bytes, cst_deadline_in(IN_TIME), NULL), COSET_OK);
    assert_true(cst_failure_read(bytes + CST_ANSWER_BYTES + CST_FRAME_BYTES, &why));
    assert_non_null(strstr(why.text, words));
    cst_close(fd);
}

/* Whom there is one too many of does not take the place of those who are still to be told. */
static void the_rest_hears_of_two_with_one_rank(void **state)
{
    (void)state;
    cst_addr at;
    int listener, fd[3];
    coset_error why = COSET_ERROR_INIT;
    cst_token token = cst_token_from_text(own_job());
    assert_int_equal(cst_addr_parse("127.0.0.1", &at), 0);
    assert_int_equal(cst_listen(&at, (cst_ports){0, 0}, &listener, &at, NULL), COSET_OK);
    for (uint32_t i = 0; i < 3; i++)
        fd[i] = ask_root(&at, &token, i < 2 ? 1 : 2);
    cst_root *root = cst_root_new(3, listener, &token);
    assert_int_equal(cst_root_admit(root, cst_deadline_in(IN_TIME), &why), COSET_ERR_MISMATCH);
    for (int i = 0; i < 3; i++)
        expect_report(fd[i], "two processes say they are rank 1");
    cst_root_free(root);
}

static void sizes_that_differ(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(3, IN_TIME);
    p.claim[2].size = 4;
    run_ranks(3, act, &p, o);
    expect_all(o, 3, COSET_ERR_MISMATCH, -1, "rank 2");
    expect_all(o, 3, COSET_ERR_MISMATCH, -1, "size of 4");
    p = plan_for(2, IN_TIME); /* a rank that does not exist in rank 0's job */
    p.claim[1].rank = 5;
    p.claim[1].size = 6;
    run_ranks(2, act, &p, o);
    expect_all(o, 2, COSET_ERR_MISMATCH, -1, "rank 5");
}

static void another_job_is_refused(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(3, 1500);
    char root[64], foreign[80];
    int fd;
    cst_addr bound;
    assert_int_equal(cst_listen_everywhere(0, (cst_ports){0, 0}, &fd, &bound, NULL), COSET_OK);
    cst_close(fd);
    snprintf(root, sizeof root, "127.0.0.1:%u", cst_addr_port(&bound));
    snprintf(foreign, sizeof foreign, "%s-other", own_job());
    p.root = root;
    p.claim[2].job = foreign;
    run_ranks(3, act, &p, o);
    expect_all(o, 2, COSET_ERR_LATE, 2, "rank 2 (1 of other jobs or versions were turned away)");
    expect_all(o + 2, 1, COSET_ERR_MISMATCH, -1, "another coset job");
}

static void a_taken_port_is_named(void **state)
{
    (void)state;
    int fd;
    cst_addr bound;
    outcome o[MAX_RANKS];
    char root[64], port[16];
    plan p = plan_for(2, IN_TIME);
    assert_int_equal(cst_listen_everywhere(0, (cst_ports){0, 0}, &fd, &bound, NULL), COSET_OK);
    snprintf(root, sizeof root, "127.0.0.1:%u", cst_addr_port(&bound));
    snprintf(port, sizeof port, ":%u", cst_addr_port(&bound));
    p.root = root;
    run_ranks(1, act, &p, o);
    expect_all(o, 1, COSET_ERR_SYSTEM, -1, "COSET_ROOT");
    expect_all(o, 1, COSET_ERR_SYSTEM, -1, port);
    cst_close(fd);
}

static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(4, IN_TIME);
    p.dies = 2;
    run_ranks(4, act, &p, o);
    assert_false(o[2].reported);
    o[2] = o[3];
    expect_all(o, 3, COSET_ERR_PEER, 2, "rank 2");
    p.dies = 0;
    run_ranks(4, act, &p, o);
    assert_false(o[0].reported);
    expect_all(o + 1, 3, COSET_ERR_PEER, 0, "rank 0");
}

static void parts_of_different_length(void **state)
{
    (void)state;
    outcome o[MAX_RANKS];
    plan p = plan_for(3, IN_TIME);
    p.bytes[1] = 16;
    run_ranks(3, act, &p, o);
    expect_all(o, 1, COSET_ERR_MISMATCH, 1, "rank 1 gathers 16 bytes, rank 0 8");
    expect_all(o + 2, 1, COSET_ERR_MISMATCH, 1, "rank 1 gathers 16 bytes, rank 0 8");
    expect_all(o + 1, 1, COSET_ERR_MISMATCH, 1, "rank 1 gathers 16 bytes, rank 0 8");
}

/* -------- strangers and liars -------- */

typedef struct {
    plan plan;
    char root[64];
    cst_addr at;
} crowd;

static int reach(const cst_addr *at)
{
    int fd;
    cst_deadline deadline = cst_deadline_in(IN_TIME);
    while (cst_connect(at, deadline, &fd, NULL))
        if (cst_deadline_passed(deadline))
            return -1;
        else
            usleep(2000);
    return fd;
}

/* Process 0 is rank 0; 1 bothers it with strangers, and then joins as rank 1; 2 joins late. */
static coset_status act_in_crowd(int process, void *ctx, coset_error *why)
{
    const crowd *c = ctx;
    int fd[150];
    if (process == 1)
        for (int i = 0; i < 150; i++) {
            char junk[200];
            memset(junk, i, sizeof junk);
            fd[i] = reach(&c->at);
            if (fd[i] < 0 || (i % 3 && cst_send_all(fd[i], i % 3 == 1 ? "COSE" : junk, i % 3 == 1 ? 4 : sizeof junk,
                                                    cst_deadline_in(1000), NULL) == COSET_ERR_SYSTEM))
                return COSET_ERR_SYSTEM;
        }
    if (process == 2)
        usleep(300000);
    coset_status status = act(process, (void *)(uintptr_t)&c->plan, why); /* the strangers stay connected meanwhile */
    if (process == 1)
        for (int i = 0; i < 150; i++)
            cst_close(fd[i]);
    return status;
}

static void crowd_for(crowd *c, int size)
{
    int fd;
    assert_int_equal(cst_listen_everywhere(0, (cst_ports){0, 0}, &fd, &c->at, NULL), COSET_OK);
    cst_close(fd);
    uint16_t port = cst_addr_port(&c->at);
    snprintf(c->root, sizeof c->root, "127.0.0.1:%u", port);
    assert_int_equal(cst_addr_parse("127.0.0.1", &c->at), 0);
    cst_addr_set_port(&c->at, port);
    c->plan = plan_for(size, IN_TIME);
    c->plan.root = c->root;
}

static void strangers_do_not_disturb(void **state)
{
    (void)state;
    crowd c;
    outcome o[MAX_RANKS];
    crowd_for(&c, 3);
    run_ranks(3, act_in_crowd, &c, o);
    expect_all(o, 3, COSET_OK, -1, "");
}

/* Process 1 shows the token, is welcome, and then sends what no rank would. */
static coset_status act_as_liar(int process, void *ctx, coset_error *why)
{
    const crowd *c = ctx;
    if (process != 1)
        return act(process, (void *)(uintptr_t)&c->plan, why);
    cst_hello hello = {
        cst_token_from_text(c->plan.claim[1].job), COSET_WIRE_VERSION, CST_PURPOSE_BOOTSTRAP, 1, 3, 0, 0, 1};
    uint8_t joined[CST_FRAME_BYTES], junk[4096];
    memset(junk, 0xa5, sizeof junk);
    int fd = reach(&c->at);
    cst_deadline deadline = cst_deadline_in(IN_TIME);
    if (cst_hello_exchange(fd, &hello, deadline, why) || cst_recv_all(fd, joined, sizeof joined, deadline, why))
        return why->status;
    cst_send_all(fd, junk, sizeof junk, deadline, NULL);
    while (!cst_recv_all(fd, junk, 1, deadline, NULL))
        continue; /* until the root hangs up */
    cst_close(fd);
    return COSET_OK;
}

static void nonsense_from_a_rank_is_named(void **state)
{
    (void)state;
    crowd c;
    outcome o[MAX_RANKS];
    crowd_for(&c, 3);
    run_ranks(3, act_as_liar, &c, o);
    expect_all(o, 1, COSET_ERR_CORRUPT, 1, "rank 1");
    expect_all(o + 2, 1, COSET_ERR_CORRUPT, 1, "rank 1");
}

/* Process 0 plays a root that answers well and then sends nonsense, at every length of it. */
static coset_status act_as_false_root(int process, void *ctx, coset_error *why)
{
    const crowd *c = ctx;
    if (process)
        return act(1, (void *)(uintptr_t)&c->plan, why);
    int listener, fd = -1;
    uint8_t hello[CST_HELLO_BYTES], junk[512];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (uint8_t)(i * 31);
    if (cst_listen(&c->at, (cst_ports){0, 0}, &listener, NULL, why))
        return why->status;
    while (fd < 0 && !cst_accept(listener, &fd, why))
        usleep(1000);
    if (cst_recv_all(fd, hello, sizeof hello, cst_deadline_in(IN_TIME), why))
        return why->status;
    cst_hello_answer(fd, CST_WELCOME);
    cst_send_all(fd, junk, sizeof junk, cst_deadline_in(IN_TIME), NULL);
    cst_close(fd);
    cst_close(listener);
    return COSET_OK;
}

static void nonsense_from_a_root_is_an_error(void **state)
{
    (void)state;
    crowd c;
    outcome o[MAX_RANKS];
    crowd_for(&c, 2);
    run_ranks(2, act_as_false_root, &c, o);
    assert_int_equal(o[0].status, COSET_OK);
    expect_all(o + 1, 1, COSET_ERR_CORRUPT, 0, "rank 0");
}

/* -------- file -------- */

typedef struct {
    char path[64];
    int size, timeout_ms;
} place;

static coset_status meet_by_file(int rank, void *ctx, coset_error *why)
{
    const place *p = ctx;
    cst_bootstrap *b;
    coset_status status = cst_bootstrap_file(p->path, rank, p->size, p->timeout_ms, &b, why);
    if (!status)
        cst_bootstrap_close(b);
    return status;
}

static void a_file_that_exists_is_refused(void **state)
{
    (void)state;
    place p = {.size = 2, .timeout_ms = 300};
    outcome o[MAX_RANKS];
    snprintf(p.path, sizeof p.path, "/tmp/coset-fault-%d", (int)getpid());
    FILE *f = fopen(p.path, "w");
    assert_non_null(f);
    fputs("the diary of somebody else", f);
    fclose(f);
    run_ranks(2, meet_by_file, &p, o);
    expect_all(o, 1, COSET_ERR_ARGUMENT, -1, "exists");
    expect_all(o + 1, 1, COSET_ERR_LATE, -1, p.path); /* what is in it is no id */
    assert_int_equal(access(p.path, F_OK), 0);        /* and it is left alone */
    unlink(p.path);
    strcpy(p.path, "/nosuchfolder/file");
    run_ranks(1, meet_by_file, &p, o);
    expect_all(o, 1, COSET_ERR_SYSTEM, -1, "/nosuchfolder/file");
}

static void files_go_when_ranks_are_missing(void **state)
{
    (void)state;
    place p = {.size = 3, .timeout_ms = LATE};
    outcome o[MAX_RANKS];
    snprintf(p.path, sizeof p.path, "/tmp/coset-fault-%d", (int)getpid());
    run_ranks(2, meet_by_file, &p, o);
    expect_all(o, 2, COSET_ERR_LATE, 2, "rank 2");
    assert_int_equal(access(p.path, F_OK), -1);
}

/* Process 0 plays a root that is killed once rank 1 has joined. */
static coset_status die_as_root(int process, void *ctx, coset_error *why)
{
    const place *p = ctx;
    if (process)
        return meet_by_file(process, ctx, why);
    cst_id id;
    cst_gate gate;
    cst_hello hello;
    uint8_t bytes[128];
    int listener, fd = -1;
    if (cst_id_make(&id, &listener, why))
        return why->status;
    cst_id_write(&id, bytes);
    FILE *f = fopen(p->path, "w");
    if (!f || fwrite(bytes, sizeof bytes, 1, f) != 1 || fclose(f))
        return COSET_ERR_SYSTEM;
    cst_gate_open(&gate, listener, &id.token, 1u << CST_PURPOSE_BOOTSTRAP);
    while (fd < 0 && !cst_gate_next(&gate, &fd, &hello, why))
        usleep(1000);
    raise(SIGKILL);
    return COSET_OK;
}

static void the_file_of_a_killed_root_goes_too(void **state)
{
    (void)state;
    place p = {.size = 3, .timeout_ms = IN_TIME};
    outcome o[MAX_RANKS];
    snprintf(p.path, sizeof p.path, "/tmp/coset-fault-%d", (int)getpid());
    run_ranks(2, die_as_root, &p, o); /* the third never comes */
    /* rank 1 hears of the death at once, though its own deadline is far */
    assert_false(o[0].reported);
    expect_all(o + 1, 1, COSET_ERR_PEER, 0, "rank 0 went away");
    assert_int_equal(access(p.path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_ranks_are_named_everywhere),
        cmocka_unit_test(without_a_root_the_others_say_so),
        cmocka_unit_test(two_processes_with_one_rank),
        cmocka_unit_test(the_rest_hears_of_two_with_one_rank),
        cmocka_unit_test(sizes_that_differ),
        cmocka_unit_test(another_job_is_refused),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(a_rank_that_dies_is_named),
        cmocka_unit_test(parts_of_different_length),
        cmocka_unit_test(strangers_do_not_disturb),
        cmocka_unit_test(nonsense_from_a_rank_is_named),
        cmocka_unit_test(nonsense_from_a_root_is_an_error),
        cmocka_unit_test(a_file_that_exists_is_refused),
        cmocka_unit_test(files_go_when_ranks_are_missing),
        cmocka_unit_test(the_file_of_a_killed_root_goes_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
