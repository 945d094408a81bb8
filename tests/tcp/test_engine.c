/* SPDX-License-Identifier: Apache-2.0 */
/* One engine against a bare socket in the test's hand: every cut, every cancellation, and bytes that no peer would
 * send. */
#include "net/socket.h"
#include "transport/tcp/engine.h"
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct {
    cst_engine engine;
    int far; /* the other end; this engine is rank 0 of 2 */
    int ended, nonsense, entries;
} t;

static void on_end(void *ctx, int peer)
{
    (void)ctx;
    assert_int_equal(peer, 1);
    t.ended++;
}

static void on_nonsense(void *ctx, int peer, const char *text)
{
    (void)ctx;
    assert_int_equal(peer, 1);
    assert_non_null(text);
    t.nonsense++;
}

static void on_entry(void *ctx, int peer, uint64_t op, const coset_entry *entry)
{
    (void)ctx;
    (void)op;
    (void)entry;
    assert_int_equal(peer, 1);
    t.entries++;
}

static void start(bool checksum)
{
    int ends[2], fds[2] = {-1, -1};
    memset(&t, 0, sizeof t);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(cst_adopt(ends[0], NULL), COSET_OK);
    assert_int_equal(cst_adopt(ends[1], NULL), COSET_OK);
    fds[1] = ends[0];
    t.far = ends[1];
    t.engine = (cst_engine){.rank = 0,
                            .size = 2,
                            .sockets = 1,
                            .checksum = checksum,
                            .events = {NULL, on_end, on_nonsense},
                            .on_entry = on_entry};
    assert_int_equal(cst_engine_open(&t.engine, fds, NULL), COSET_OK);
}

static void stop(void)
{
    cst_engine_close(&t.engine);
    cst_close(t.far);
}

/* Until nothing has moved for so long that held links are read. */
static void turn(void)
{
    bool other;
    for (int quiet = 0; quiet <= CST_QUIET_TURNS; quiet = t.engine.moved ? 0 : quiet + 1) {
        t.engine.moved = false;
        cst_engine_poll(&t.engine, 0, &other);
        cst_engine_move(&t.engine);
    }
}

static size_t whole_message(uint32_t tag, uint64_t op, const void *data, size_t bytes, uint8_t *out, bool cancelled)
{
    cst_head_write(tag, op, bytes, NULL, out);
    if (bytes)
        memcpy(out + CST_HEAD_BYTES, data, bytes);
    cst_tail_write(cancelled, cst_hash64(0, data, bytes), out + CST_HEAD_BYTES + bytes);
    return CST_HEAD_BYTES + bytes + CST_TAIL_BYTES;
}

static void put(const void *bytes, size_t n)
{
    assert_int_equal(cst_send_all(t.far, bytes, n, cst_deadline_in(5000), NULL), COSET_OK);
}

typedef struct {
    coset_msg msg;
    struct iovec iov;
    uint8_t data[6000];
} receive;

static void post(receive *r, uint32_t tag, uint64_t op, size_t bytes)
{
    memset(r->data, 0xee, sizeof r->data);
    r->iov = (struct iovec){r->data, bytes};
    r->msg = (coset_msg){.peer = 1, .tag = tag, .op = op, .iov = &r->iov, .iovcnt = 1};
    cst_engine_receive(&t.engine, &r->msg, bytes);
}

static const size_t lengths[] = {0, 1, 5, 100, 5000};
static uint8_t pattern[6000];

static int fill_pattern(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251);
    return 0;
}

/* The message comes in two pieces, cut at every byte; the receive is posted before, between or after them. */
static void every_cut(void **state)
{
    (void)state;
    static uint8_t wire[6100];
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (int when = 0; when < 3; when++) {
            size_t n = whole_message(3, 9, pattern, lengths[k], wire, false);
            start(true);
            for (size_t cut = 0; cut <= n; cut += cut < 200 || cut > n - 100 ? 1 : 97) {
                receive r;
                if (when == 0)
                    post(&r, 3, 9, lengths[k]);
                put(wire, cut);
                turn();
                if (when == 1)
                    post(&r, 3, 9, lengths[k]);
                put(wire + cut, n - cut);
                turn();
                if (when == 2)
                    post(&r, 3, 9, lengths[k]);
                turn();
                assert_int_equal(r.msg.status, COSET_OK);
                assert_memory_equal(r.data, pattern, lengths[k]);
                assert_int_equal(r.data[lengths[k]], 0xee);
                assert_int_equal(t.engine.peers[1].early_bytes, 0);
            }
            assert_int_equal(t.nonsense, 0);
            stop();
        }
}

/* The receive is cancelled after `cut` bytes of its message: its memory is left alone, the next message arrives. */
static void cancelled_receives(void **state)
{
    (void)state;
    static uint8_t wire[6100], next[200];
    size_t n = whole_message(3, 9, pattern, 5000, wire, false), m = whole_message(4, 9, pattern, 10, next, false);
    start(false);
    for (size_t cut = 0; cut < n; cut += 61) {
        receive r, after;
        post(&r, 3, 9, 5000);
        put(wire, cut);
        turn();
        cst_engine_cancel(&t.engine, &r.msg);
        assert_int_equal(r.msg.status, COSET_ERR_ABORTED);
        memset(r.data, 0xdd, sizeof r.data);
        post(&after, 4, 9, 10);
        put(wire + cut, n - cut);
        put(next, m);
        turn();
        assert_int_equal(after.msg.status, COSET_OK);
        for (size_t i = 0; i < sizeof r.data; i++)
            assert_int_equal(r.data[i], 0xdd);
        if (t.engine.peers[1].early) /* cut inside the head: the message was nobody's yet */
            cst_early_drop(&t.engine, &t.engine.peers[1], t.engine.peers[1].early);
    }
    stop();
}

/* A send is cancelled when `sent` bytes of it have gone, for every number: what follows completes a cancelled message
 * (or a whole one, if its tail has begun), and the next message is whole. */
static void cancelled_sends(void **state)
{
    (void)state;
    enum { BYTES = 37, ALL = CST_HEAD_BYTES + BYTES + CST_TAIL_BYTES };
    uint8_t as_it_was[ALL], got[2 * ALL];
    coset_entry entry = {{1, 2, 3}};
    cst_head_write(3, 9, BYTES, &entry, as_it_was);
    memcpy(as_it_was + CST_HEAD_BYTES, pattern, BYTES);
    cst_tail_write(false, 0, as_it_was + CST_HEAD_BYTES + BYTES);
    for (size_t sent = 0; sent < ALL; sent++) {
        start(false);
        struct iovec iov = {pattern, BYTES};
        coset_msg first = {.peer = 1, .tag = 3, .op = 9, .entry = &entry, .iov = &iov, .iovcnt = 1}, second = first;
        cst_engine_send(&t.engine, &first, BYTES);
        first.priv[1] = sent; /* as if they had gone */
        cst_engine_cancel(&t.engine, &first);
        assert_int_equal(first.status, COSET_ERR_ABORTED);
        cst_engine_send(&t.engine, &second, BYTES);
        turn();
        assert_int_equal(second.status, COSET_OK);
        size_t rest = sent ? ALL - sent : 0;
        memcpy(got, as_it_was, sent);
        assert_int_equal(cst_recv_all(t.far, got + sent, rest + ALL, cst_deadline_in(5000), NULL), COSET_OK);
        uint8_t *next = sent ? got + ALL : got;
        assert_memory_equal(next, as_it_was, ALL);
        if (sent) {
            cst_head head;
            bool cancelled;
            uint64_t sum;
            assert_true(cst_head_read(got, &head));
            assert_true(cst_tail_read(got + CST_HEAD_BYTES + BYTES, &cancelled, &sum));
            assert_int_equal(cancelled, sent <= CST_HEAD_BYTES + BYTES);
        }
        stop();
    }
}

static void cancelled_messages_end_their_receives(void **state)
{
    (void)state;
    uint8_t wire[200];
    size_t n = whole_message(3, 9, pattern, 20, wire, true);
    start(false);
    for (int early = 0; early < 2; early++) {
        receive r;
        if (!early)
            post(&r, 3, 9, 20);
        put(wire, n);
        turn();
        if (early)
            post(&r, 3, 9, 20);
        turn();
        assert_int_equal(r.msg.status, COSET_ERR_ABORTED);
    }
    stop();
}

static void changed_payload_is_noticed(void **state)
{
    (void)state;
    uint8_t wire[200];
    size_t n = whole_message(3, 9, pattern, 20, wire, false);
    start(true);
    for (int bit = 0; bit < 20 * 8; bit++)
        for (int early = 0; early < 2; early++) {
            receive r;
            wire[CST_HEAD_BYTES + bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (!early)
                post(&r, 3, 9, 20);
            put(wire, n);
            turn();
            if (early)
                post(&r, 3, 9, 20);
            turn();
            assert_int_equal(r.msg.status, COSET_ERR_CORRUPT);
            wire[CST_HEAD_BYTES + bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    assert_int_equal(t.nonsense, 0); /* the connection is as good as before */
    stop();
}

static void changed_heads_and_tails_end_the_connection(void **state)
{
    (void)state;
    uint8_t wire[200];
    size_t n = whole_message(3, 9, pattern, 20, wire, false);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        size_t at = bit / 8, tail = CST_HEAD_BYTES + 20;
        bool decides = at < CST_HEAD_BYTES || (at >= tail && at < tail + 8 && bit - 8 * tail != 32);
        if (!decides)
            continue;
        receive r;
        start(false);
        post(&r, 3, 9, 20);
        wire[at] ^= (uint8_t)(1u << bit % 8);
        put(wire, n);
        turn();
        assert_int_equal(t.nonsense, 1);
        assert_int_equal(r.msg.status, COSET_IN_PROGRESS); /* its end is decided elsewhere */
        cst_engine_end_peer(&t.engine, 1, COSET_ERR_CORRUPT);
        assert_int_equal(r.msg.status, COSET_ERR_CORRUPT);
        wire[at] ^= (uint8_t)(1u << bit % 8);
        stop();
    }
}

/* A head may claim any length: nothing is allocated for it before it is known to be wanted. */
static void lengths_that_lie(void **state)
{
    (void)state;
    static const uint64_t claims[] = {1ull << 20, CST_MESSAGE_BYTES, CST_MESSAGE_BYTES + 1ull,
                                      1ull << 40, 1ull << 62,        UINT64_MAX};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        for (int other = 0; other < 2; other++) {
            uint8_t head[CST_HEAD_BYTES];
            receive r, wanted;
            start(false);
            if (other)
                post(&r, 99, 99, 10);
            cst_head_write(3, 9, claims[i], NULL, head);
            put(head, sizeof head);
            put(pattern, 100);
            turn();
            assert_int_equal(t.nonsense, claims[i] > CST_MESSAGE_BYTES);
            assert_int_equal(t.entries, claims[i] <= CST_MESSAGE_BYTES);
            if (!other || t.nonsense)
                assert_int_equal(t.engine.peers[1].early_bytes, 0);
            if (t.nonsense) {
                cst_engine_end_peer(&t.engine, 1, COSET_ERR_CORRUPT);
                stop();
                continue;
            }
            post(&wanted, 3, 9, 10); /* another length than claimed */
            turn();
            assert_int_equal(wanted.msg.status, COSET_ERR_MISMATCH);
            cst_engine_end_peer(&t.engine, 1, COSET_ERR_PEER);
            stop();
        }
}

/* What nobody has asked for is kept up to a bound, and then left with the sender; but a receive that waits for a later
 * message gets it, however much is in the way. */
static void early_messages_are_bounded(void **state)
{
    (void)state;
    enum { BYTES = 5000, MESSAGES = 400 };
    static uint8_t wire[BYTES + 100];
    start(false);
    size_t n = whole_message(0, 0, pattern, BYTES, wire, false), part = 0;
    uint64_t sent = 0;
    for (;;) {
        ssize_t k = send(t.far, wire + part, n - part, MSG_NOSIGNAL);
        if (k < 0) {
            assert_int_equal(errno, EAGAIN);
            turn();
            k = send(t.far, wire + part, n - part, MSG_NOSIGNAL);
            if (k < 0)
                break; /* the engine takes no more */
        }
        part += (size_t)k;
        if (part == n) {
            part = 0;
            n = whole_message(0, ++sent, pattern, BYTES, wire, false);
        }
        assert_true(sent < MESSAGES);
    }
    assert_true(t.engine.peers[1].early_bytes <= CST_EARLY_BYTES);
    assert_true(t.engine.peers[1].early_bytes > CST_EARLY_BYTES / 2);
    receive last;
    post(&last, 0, sent + 1, BYTES);
    turn();
    put(wire + part, n - part);
    n = whole_message(0, ++sent, pattern, BYTES, wire, false);
    put(wire, n);
    turn();
    assert_int_equal(last.msg.status, COSET_OK);
    for (uint64_t op = 0; op < sent; op++) { /* nothing was lost */
        receive r;
        post(&r, 0, op, BYTES);
        turn();
        assert_int_equal(r.msg.status, COSET_OK);
        assert_memory_equal(r.data, pattern, BYTES);
    }
    assert_int_equal(t.engine.peers[1].early_bytes, 0);
    stop();
}

/* The peer's end: what it had sent is there, what it had not is not. */
static void ends(void **state)
{
    (void)state;
    static uint8_t wire[6100];
    size_t n = whole_message(3, 9, pattern, 5000, wire, false);
    for (size_t cut = 0; cut <= n; cut += 211) {
        receive r, other;
        start(false);
        post(&r, 3, 9, 5000);
        post(&other, 4, 9, 1);
        put(wire, cut == n - n % 211 ? n : cut);
        shutdown(t.far, SHUT_WR);
        turn();
        assert_int_equal(t.ended, 1);
        assert_int_equal(t.engine.peers[1].open, 0);
        assert_false(cst_engine_may_arrive(&t.engine, 1, 4, 9));
        assert_int_equal(r.msg.status, cut == n - n % 211 ? COSET_OK : COSET_IN_PROGRESS);
        cst_engine_end_peer(&t.engine, 1, COSET_ERR_PEER);
        assert_int_equal(other.msg.status, COSET_ERR_PEER);
        stop();
    }
}

/* 1 MiB in pieces that the socket takes, then the rest: partial writes of every kind. */
static void large_sends_are_whole(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    uint8_t *data = malloc(BYTES), *got = malloc(BYTES + CST_HEAD_BYTES + CST_TAIL_BYTES);
    assert_true(data && got);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(i * 13 + i / 4096);
    start(true);
    struct iovec iov[100];
    for (size_t i = 0; i < 100; i++)
        iov[i] = (struct iovec){data + i * 10000, i < 99 ? 10000 : BYTES - 990000};
    coset_msg msg = {.peer = 1, .tag = 1, .op = 2, .iov = iov, .iovcnt = 100};
    cst_engine_send(&t.engine, &msg, BYTES);
    size_t have = 0;
    while (have < BYTES + CST_HEAD_BYTES + CST_TAIL_BYTES) {
        turn();
        ssize_t n = recv(t.far, got + have, 1 + have % 7919, 0);
        if (n > 0)
            have += (size_t)n;
    }
    turn();
    assert_int_equal(msg.status, COSET_OK);
    assert_memory_equal(got + CST_HEAD_BYTES, data, BYTES);
    bool cancelled;
    uint64_t sum;
    assert_true(cst_tail_read(got + CST_HEAD_BYTES + BYTES, &cancelled, &sum));
    assert_int_equal(sum, cst_hash64(0, data, BYTES));
    assert_int_equal(t.engine.counters.sent_bytes, BYTES);
    assert_int_equal(t.engine.counters.wire_sent_bytes, BYTES + CST_HEAD_BYTES + CST_TAIL_BYTES);
    stop();
    free(data);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut),
        cmocka_unit_test(cancelled_receives),
        cmocka_unit_test(cancelled_sends),
        cmocka_unit_test(cancelled_messages_end_their_receives),
        cmocka_unit_test(changed_payload_is_noticed),
        cmocka_unit_test(changed_heads_and_tails_end_the_connection),
        cmocka_unit_test(lengths_that_lie),
        cmocka_unit_test(early_messages_are_bounded),
        cmocka_unit_test(ends),
        cmocka_unit_test(large_sends_are_whole),
    };
    return cmocka_run_group_tests(tests, fill_pattern, NULL);
}
