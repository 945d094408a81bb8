/* SPDX-License-Identifier: Apache-2.0 */
/* The watch of rank 0 among three; ranks 1 and 2 are bare sockets in the test's hand. */
#include "net/socket.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/watch.h"
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, DEAD_MS = 500 };
static struct {
    cst_watch *watch;
    int far[RANKS];
    _Atomic int wakes;
} t;

static void on_wake(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&t.wakes, 1);
}

static void start(int dead_ms)
{
    int fds[RANKS] = {-1, -1, -1};
    for (int r = 1; r < RANKS; r++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_int_equal(cst_adopt(ends[0], NULL), COSET_OK);
        assert_int_equal(cst_adopt(ends[1], NULL), COSET_OK);
        fds[r] = ends[0];
        t.far[r] = ends[1];
    }
    assert_int_equal(cst_watch_start(0, RANKS, fds, dead_ms, on_wake, NULL, &t.watch, NULL), COSET_OK);
}

static void stop(void)
{
    cst_watch_stop(t.watch, 1000);
    for (int r = 1; r < RANKS; r++)
        cst_close(t.far[r]);
}

static void put_beat(int r)
{
    uint8_t bytes[CST_RECORD_BYTES];
    ssize_t n = send(t.far[r], bytes, cst_beat_write(bytes), MSG_NOSIGNAL);
    (void)n; /* in some tests nobody is there any more */
}

static void put_notice(int r, coset_notice_kind kind, int about, coset_status status, const char *text)
{
    uint8_t bytes[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    coset_notice n = {kind, about, status, -1, 5, {0}};
    strcpy(n.text, text);
    assert_int_equal(cst_send_all(t.far[r], bytes, cst_notice_write(&n, bytes), cst_deadline_in(5000), NULL), COSET_OK);
}

/* The next notice, while the ranks in `living` (bits) go on beating. False after limit_ms without one. */
static bool next_notice(unsigned living, int limit_ms, coset_notice *out)
{
    cst_deadline limit = cst_deadline_in(limit_ms);
    while (!cst_watch_poll_notice(t.watch, out)) {
        if (cst_deadline_passed(limit))
            return false;
        for (int r = 1; r < RANKS; r++)
            if (living >> r & 1)
                put_beat(r);
        poll(NULL, 0, 5);
    }
    return true;
}

static void expect_death(unsigned living, int about, coset_status status, const char *words)
{
    coset_notice n;
    assert_true(next_notice(living, 5000, &n));
    assert_int_equal(n.kind, COSET_NOTICE_DEATH);
    assert_int_equal(n.about, about);
    assert_int_equal(n.status, status);
    assert_non_null(strstr(n.text, words));
    assert_int_equal(cst_watch_fate(t.watch, about), CST_LOST);
    assert_int_equal(cst_watch_fate_status(t.watch, about), status);
    assert_true(atomic_load(&t.wakes) > 0);
}

/* What rank r hears next that is no beat. */
static coset_notice heard_by(int r)
{
    uint8_t bytes[CST_RECORD_BYTES + CST_NOTICE_BYTES];
    coset_notice n;
    bool is_notice;
    for (;;) {
        assert_int_equal(cst_recv_all(t.far[r], bytes, CST_RECORD_BYTES, cst_deadline_in(5000), NULL), COSET_OK);
        int length = cst_record_read(bytes, CST_RECORD_BYTES, &is_notice, &n);
        if (length > 0)
            continue;
        assert_int_equal(length, 0);
        assert_int_equal(
            cst_recv_all(t.far[r], bytes + CST_RECORD_BYTES, CST_NOTICE_BYTES, cst_deadline_in(5000), NULL), COSET_OK);
        assert_true(cst_record_read(bytes, sizeof bytes, &is_notice, &n) > 0);
        return n;
    }
}

static void silence_is_death_and_others_are_told(void **state)
{
    (void)state;
    uint64_t before = cst_now_ns();
    start(DEAD_MS);
    expect_death(1u << 2, 1, COSET_ERR_PEER, "nothing has been heard");
    assert_true(cst_now_ns() - before >= DEAD_MS * 1000000ull);
    assert_int_equal(cst_watch_fate(t.watch, 2), CST_LIVES);
    coset_notice told = heard_by(2);
    assert_int_equal(told.kind, COSET_NOTICE_DEATH);
    assert_int_equal(told.about, 1);
    stop();
}

static void the_end_of_a_connection_is_death(void **state)
{
    (void)state;
    start(60000);
    cst_close(t.far[1]);
    t.far[1] = -1;
    expect_death(0, 1, COSET_ERR_PEER, "ended without a goodbye");
    assert_int_equal(heard_by(2).about, 1);
    stop();
}

static void a_goodbye_is_not(void **state)
{
    (void)state;
    coset_notice n;
    start(DEAD_MS);
    put_notice(1, COSET_NOTICE_GOODBYE, 1, COSET_OK, "");
    assert_true(next_notice(1u << 2, 5000, &n));
    assert_int_equal(n.kind, COSET_NOTICE_GOODBYE);
    assert_int_equal(n.about, 1);
    assert_int_equal(cst_watch_fate(t.watch, 1), CST_DEPARTED);
    cst_close(t.far[1]);
    t.far[1] = -1;
    assert_false(next_notice(1u << 2, DEAD_MS / 2, &n));
    /* what it had sent may have been lost on the way: in the end nothing more is waited for, and that is no news */
    while (cst_watch_fate(t.watch, 1) != CST_OVERDUE)
        assert_false(next_notice(1u << 2, 20, &n));
    cst_watch_still_arrives(t.watch, 1);
    assert_int_equal(cst_watch_fate(t.watch, 1), CST_DEPARTED);
    while (cst_watch_fate(t.watch, 1) != CST_OVERDUE)
        assert_false(next_notice(1u << 2, 20, &n));
    assert_false(next_notice(1u << 2, 20, &n));
    stop();
}

static void a_death_that_another_has_seen(void **state)
{
    (void)state;
    coset_notice n;
    start(60000);
    put_notice(1, COSET_NOTICE_DEATH, 2, COSET_ERR_PEER, "gone");
    expect_death(0, 2, COSET_ERR_PEER, "gone");
    put_notice(1, COSET_NOTICE_DEATH, 2, COSET_ERR_PEER, "gone"); /* told again: no news */
    cst_close(t.far[2]);                                          /* and seen */
    t.far[2] = -1;
    assert_false(next_notice(0, 50, &n));
    stop();
}

static void other_notices_pass(void **state)
{
    (void)state;
    static const struct {
        coset_notice_kind kind;
        coset_status status;
    } row[] = {
        {COSET_NOTICE_ABORT, COSET_ERR_ABORTED},
        {COSET_NOTICE_MISMATCH, COSET_ERR_MISMATCH},
        {COSET_NOTICE_LATE, COSET_ERR_LATE},
    };
    coset_notice n;
    start(60000);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put_notice(2, row[i].kind, 2, row[i].status, "why");
        assert_true(next_notice(0, 5000, &n));
        assert_int_equal(n.kind, row[i].kind);
        assert_int_equal(n.about, 2);
        assert_int_equal(n.op, 5);
        assert_string_equal(n.text, "why");
    }
    stop();
}

static void nonsense_is_death(void **state)
{
    (void)state;
    static const struct {
        coset_notice_kind kind;
        int about;
        coset_status status;
    } row[] = {
        {COSET_NOTICE_ABORT, 2, COSET_ERR_ABORTED}, /* speaks for another */
        {COSET_NOTICE_GOODBYE, 2, COSET_OK},        /* says goodbye for another */
        {COSET_NOTICE_GOODBYE, 1, COSET_ERR_PEER},  /* a goodbye that fails */
        {COSET_NOTICE_ABORT, 1, COSET_OK},          /* an abort that succeeds */
        {COSET_NOTICE_DEATH, 1, COSET_ERR_PEER},    /* the dead speak */
        {COSET_NOTICE_DEATH, 3, COSET_ERR_PEER},    /* there is no rank 3 */
        {COSET_NOTICE_DEATH, -1, COSET_ERR_PEER},
        {COSET_NOTICE_DEATH, INT32_MIN, COSET_ERR_PEER},
        {(coset_notice_kind)0, 1, COSET_ERR_PEER},
        {(coset_notice_kind)99, 1, COSET_ERR_PEER},
        {COSET_NOTICE_ABORT, 1, (coset_status)12345},
        {COSET_NOTICE_ABORT, 1, COSET_IN_PROGRESS},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        start(60000);
        put_notice(1, row[i].kind, row[i].about, row[i].status, "lie");
        expect_death(0, 1, COSET_ERR_CORRUPT, "no record");
        stop();
    }
    start(60000);
    assert_int_equal(cst_send_all(t.far[1], "GET / HTTP/1.1\r\n\r\n", 18, cst_deadline_in(5000), NULL), COSET_OK);
    expect_death(0, 1, COSET_ERR_CORRUPT, "no record");
    stop();
}

/* A data connection that ends is a death only if nothing is heard of it on the control connection. */
static void the_end_of_data_waits_for_a_goodbye(void **state)
{
    (void)state;
    coset_notice n;
    start(60000);
    cst_watch_data_ended(t.watch, 1);
    put_notice(1, COSET_NOTICE_GOODBYE, 1, COSET_OK, "");
    assert_true(next_notice(0, 5000, &n));
    assert_int_equal(n.kind, COSET_NOTICE_GOODBYE);
    stop();
    start(1000); /* beats every 200 ms: it looks often enough */
    cst_watch_data_ended(t.watch, 1);
    assert_false(next_notice(1u << 1 | 1u << 2, 1500, &n)); /* one that leaves may wait for others before it says so */
    expect_death(1u << 1 | 1u << 2, 1, COSET_ERR_PEER, "data connection");
    stop();
}

static void *stop_main(void *unused)
{
    cst_watch_stop(t.watch, 1000);
    return unused;
}

/* Of two that leave at the same time one hears the other's goodbye, says none to it and is gone. */
static void who_leaves_declares_nobody_dead(void **state)
{
    (void)state;
    uint8_t bytes[CST_RECORD_BYTES];
    coset_notice n;
    bool is_notice;
    pthread_t thread;
    start(60000);
    assert_int_equal(pthread_create(&thread, NULL, stop_main, NULL), 0);
    assert_int_equal(heard_by(1).kind, COSET_NOTICE_GOODBYE);
    cst_close(t.far[1]);
    pthread_join(thread, NULL); /* it waits for rank 2, which has not read its goodbye yet */
    assert_int_equal(heard_by(2).kind, COSET_NOTICE_GOODBYE);
    while (!cst_recv_all(t.far[2], bytes, sizeof bytes, cst_deadline_in(5000), NULL))
        assert_true(cst_record_read(bytes, sizeof bytes, &is_notice, &n) > 0); /* a beat */
    cst_close(t.far[2]);
}

/* A peer that reads nothing cannot make announcing block, nor one that talks endlessly fill the memory. */
static void stuck_and_talkative_peers(void **state)
{
    (void)state;
    coset_notice n = {COSET_NOTICE_ABORT, 0, COSET_ERR_ABORTED, 0, 0, "enough"};
    start(60000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(cst_watch_announce(t.watch, &n), COSET_OK);
    for (int i = 0; i < 20000; i++) {
        put_notice(1, COSET_NOTICE_LATE, 1, COSET_ERR_LATE, "and another thing");
    }
    int count = 0;
    poll(NULL, 0, 50);
    while (cst_watch_poll_notice(t.watch, &n))
        count++;
    assert_in_range(count, 1, 64 * RANKS);
    stop();
}

/* A process that was stopped must not take its own absence for the others'. */
static void who_was_away_does_not_judge(void **state)
{
    (void)state;
    int go[2], done[2];
    char byte = 0;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    start(60000); /* sockets for a child to inherit are not wanted here: the child makes its own below */
    stop();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        start(500);
        /* the other ranks of this test live in a thread-less way: their beats are in the sockets before the stop, and
         * more come only after it */
        put_beat(1);
        put_beat(2);
        if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(2);
        coset_notice n;
        for (int i = 0; i < 40; i++) { /* 200 ms of life, more than the beats are apart, less than 500 */
            put_beat(1);
            put_beat(2);
            if (cst_watch_poll_notice(t.watch, &n))
                _exit(1);
            poll(NULL, 0, 5);
        }
        _exit(0);
    }
    assert_int_equal(read(done[0], &byte, 1), 1);
    kill(child, SIGSTOP);
    poll(NULL, 0, 900);
    kill(child, SIGCONT);
    assert_int_equal(write(go[1], &byte, 1), 1);
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(done[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_death_and_others_are_told),
        cmocka_unit_test(the_end_of_a_connection_is_death),
        cmocka_unit_test(a_goodbye_is_not),
        cmocka_unit_test(a_death_that_another_has_seen),
        cmocka_unit_test(other_notices_pass),
        cmocka_unit_test(nonsense_is_death),
        cmocka_unit_test(the_end_of_data_waits_for_a_goodbye),
        cmocka_unit_test(who_leaves_declares_nobody_dead),
        cmocka_unit_test(stuck_and_talkative_peers),
        cmocka_unit_test(who_was_away_does_not_judge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
