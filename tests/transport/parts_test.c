/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that transports are made of, by themselves. */
#include "transport/agree.h"
#include "base/alloc.h"
#include "transport/channel/channel.h"
#include "transport/drive.h"
#include "transport/hostile.h"
#include "transport/iov.h"
#include "transport/limits.h"
#include "transport/notices.h"
#include "transport/registry.h"
#include "transport/shm/mesh.h"
#include "transport/shm/packet.h"
#include "transport/shm/pages.h"
#include "transport/shm/segments.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every way to copy a list of pieces gives what one copy of the whole would. */
static void test_cursor(void **state)
{
    (void)state;
    enum { BYTES = 3000, PIECES = 40 };
    uint32_t seed = 1;
    unsigned char from[BYTES], to[BYTES], out[BYTES];
    for (int round = 0; round < 300; round++) {
        struct iovec a[PIECES];
        size_t at = 0;
        for (int i = 0; i < PIECES; i++) {
            size_t n = next_random(&seed) % 100;
            n = i == PIECES - 1 || n > BYTES - at ? BYTES - at : n;
            a[i] = (struct iovec){from + at, n};
            at += n;
        }
        for (size_t i = 0; i < BYTES; i++)
            from[i] = (unsigned char)next_random(&seed);
        size_t total, skip = next_random(&seed) % (BYTES + 1);
        assert_true(cst_iov_bytes(a, PIECES, &total));
        assert_int_equal(total, BYTES);
        cst_cursor c = cst_cursor_at(a, PIECES, skip);
        size_t first = next_random(&seed) % (BYTES - skip + 1);
        cst_cursor_get(&c, to, first);
        struct iovec slice[3];
        size_t done = first;
        for (;;) {
            size_t taken;
            int n = cst_cursor_slice(&c, 500, slice, 3, &taken);
            if (!n)
                break;
            for (int i = 0; i < n; i++) {
                memcpy(to + done, slice[i].iov_base, slice[i].iov_len);
                done += slice[i].iov_len;
            }
        }
        assert_int_equal(done, BYTES - skip);
        assert_memory_equal(to, from + skip, BYTES - skip);
        struct iovec b[2] = {{out, 1234}, {out + 1234, BYTES - 1234}};
        c = cst_cursor_at(b, 2, skip);
        cst_cursor_put(&c, to, BYTES - skip);
        assert_memory_equal(out + skip, from + skip, BYTES - skip);
    }
    struct iovec huge[2] = {{NULL, SIZE_MAX}, {NULL, 1}};
    size_t ignored;
    assert_false(cst_iov_bytes(huge, 2, &ignored));
    assert_false(cst_iov_bytes(huge, -1, &ignored));
}

static void test_notice_queue(void **state)
{
    (void)state;
    cst_notices a, b;
    coset_notice n;
    cst_notices_init(&a, 3);
    cst_notices_init(&b, 10);
    assert_false(cst_notices_pop(&a, &n));
    for (int i = 0; i < 5; i++) {
        n = cst_notice_make(COSET_NOTICE_LATE, i, COSET_ERR_LATE, -1, "number %d%0300d", i, 0);
        assert_int_equal(n.text[sizeof n.text - 1], 0);
        assert_int_equal(cst_notices_push(&a, &n), i < 3);
    }
    n.about = 9;
    assert_true(cst_notices_push(&b, &n));
    cst_notices_move(&b, &a);
    assert_false(cst_notices_pop(&a, &n));
    const int order[] = {9, 0, 1, 2};
    for (int i = 0; i < 4; i++) {
        assert_true(cst_notices_pop(&b, &n));
        assert_int_equal(n.about, order[i]);
    }
    assert_false(cst_notices_pop(&b, &n));
    assert_true(cst_notices_push(&a, &n));
    cst_notices_free(&a);
    cst_notices_free(&b);
}

static void test_notice_valid(void **state)
{
    (void)state;
    coset_notice good = {.kind = COSET_NOTICE_ABORT, .about = 2, .peer = -1}, n = good;
    assert_true(cst_notice_valid(&good, 3));
    assert_false(cst_notice_valid(&good, 2));
    n.about = -1;
    assert_false(cst_notice_valid(&n, 3));
    n = good;
    n.peer = 3;
    assert_false(cst_notice_valid(&n, 3));
    n.peer = -2;
    assert_false(cst_notice_valid(&n, 3));
    n = good;
    n.kind = (coset_notice_kind)0;
    assert_false(cst_notice_valid(&n, 3));
    n.kind = (coset_notice_kind)77;
    assert_false(cst_notice_valid(&n, 3));
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1000; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Garbage of any length and type, with and without descriptors, is nonsense, and leaks none. */
static void test_packet_nonsense(void **state)
{
    (void)state;
    int pair[2], fd;
    cst_packet p;
    int before = open_descriptors();
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_NOTHING);
    char bytes[2 * sizeof p];
    for (size_t n = 1; n <= sizeof bytes; n++)
        for (uint32_t type = 0; type < 6; type++) {
            memset(bytes, 0x55, sizeof bytes);
            memcpy(bytes, &type, sizeof type);
            assert_int_equal(send(pair[0], bytes, n, 0), (ssize_t)n);
            cst_got got = cst_packet_receive(pair[1], &p, &fd);
            bool knock = n == sizeof type && type == CST_PACKET_KNOCK;
            bool whole = n == sizeof p && (type == CST_PACKET_NOTICE || type == CST_PACKET_HELLO);
            assert_int_equal(got, knock || whole ? CST_GOT_PACKET : CST_GOT_NONSENSE);
            assert_int_equal(fd, -1);
        }
    p.type = CST_PACKET_NOTICE; /* with a descriptor that does not belong to it */
    assert_int_equal(cst_packet_send(pair[0], &p, pair[0]), 0);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_NONSENSE);
    p.type = CST_PACKET_PAGES;
    assert_int_equal(cst_packet_send(pair[0], &p, pair[0]), 0);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_PACKET);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
    close(pair[0]);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_END);
    close(pair[1]);
    assert_int_equal(open_descriptors(), before);
}

/* What was sent before an end with unread data is still read. */
static void test_packet_last_words(void **state)
{
    (void)state;
    int pair[2], fd;
    cst_packet p = {.type = CST_PACKET_NOTICE};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(cst_packet_send(pair[1], &p, -1), 0); /* never read: the close becomes a reset */
    assert_int_equal(cst_packet_send(pair[0], &p, -1), 0);
    close(pair[0]);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_PACKET);
    assert_int_equal(cst_packet_receive(pair[1], &p, &fd), CST_GOT_END);
    close(pair[1]);
}

/* Memory of fixed size: it cannot shrink under those who map it, and a wrong size is refused. */
static void test_pages(void **state)
{
    (void)state;
    int fd;
    char *base;
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_pages_create(8192, &fd, &why), COSET_OK);
    assert_int_not_equal(ftruncate(fd, 4096), 0);
    assert_int_not_equal(ftruncate(fd, 16384), 0);
    assert_int_equal(cst_pages_map(fd, 4096, &base, &why), COSET_ERR_CORRUPT);
    assert_int_equal(cst_pages_map(fd, 12288, &base, &why), COSET_ERR_CORRUPT);
    assert_int_equal(cst_pages_map(fd, 8192, &base, &why), COSET_OK);
    assert_int_equal(cst_pages_populate(base, 8192, fd, 0, 1, &why), COSET_OK);
    assert_int_equal(base[0] | base[8191], 0);
    close(fd);
    assert_int_equal(cst_pages_create((size_t)1 << 50, &fd, &why), COSET_ERR_MEMORY);
    assert_non_null(strstr(why.text, "available"));
}

static void test_limits(void **state)
{
    (void)state;
    const char *where = NULL;
    size_t room = cst_memory_room(&where);
    assert_non_null(where);
    assert_true(room > (size_t)1 << 20 && room < (size_t)1 << 46);
}

/* No part of an area overlaps another, whatever the number of ranks. */
static void test_layout(void **state)
{
    (void)state;
    for (int size = 1; size <= 300; size++)
        for (uint32_t blocks = 0; blocks <= 16; blocks += 8) {
            cst_layout l = cst_layout_for(size, blocks, 65536);
            assert_true(l.left >= sizeof(cst_post));
            assert_true(l.slots >= l.left + (size_t)size * sizeof(cst_word));
            assert_true(l.block_flags >= l.slots + CST_SLOTS * sizeof(cst_word));
            assert_true(l.rings >= l.block_flags + blocks * sizeof(cst_word));
            assert_true(l.ring_bytes >= sizeof(cst_ring) + l.cells * sizeof(cst_cell));
            assert_true(l.stage >= l.rings + (size_t)size * l.ring_bytes);
            assert_true(l.bytes >= l.stage + blocks * l.block_bytes);
            assert_int_equal(l.cells & (l.cells - 1), 0);
            assert_int_equal(l.rings % CST_LINE | l.ring_bytes % CST_LINE | l.stage % 4096 | l.bytes % 4096, 0);
        }
}

static void test_segment_bytes(void **state)
{
    (void)state;
    size_t stride;
    assert_int_equal(cst_segment_bytes(3, 0, &stride), 3 * 4096);
    assert_int_equal(cst_segment_bytes(3, 4097, &stride), 3 * 8192);
    assert_int_equal(stride, 8192);
    assert_int_equal(cst_segment_bytes(2, SIZE_MAX, &stride), 0);
    assert_int_equal(cst_segment_bytes(2, SIZE_MAX / 2, &stride), 0);
    assert_int_equal(cst_segment_bytes(1 << 20, (size_t)1 << 45, &stride), 0);
}

static void test_registry(void **state)
{
    (void)state;
    char names[200];
    int n = 0;
    while (cst_transport_at(n)) {
        const coset_transport_ops *ops = cst_transport_at(n++);
        assert_ptr_equal(cst_transport_find(ops->name), ops);
        assert_int_equal(ops->abi, COSET_TRANSPORT_ABI);
        char why[100] = "?";
        assert_int_equal(ops->probe(why, sizeof why), COSET_OK);
        assert_string_equal(why, "");
        char wrapped[50];
        snprintf(wrapped, sizeof wrapped, "fault:%s", ops->name);
        assert_string_equal(cst_transport_find(wrapped)->name, wrapped);
    }
    assert_true(n >= 2);
    assert_null(cst_transport_at(-1));
    assert_null(cst_transport_find("pigeon"));
    assert_null(cst_transport_find("fault:pigeon"));
    assert_null(cst_transport_find("fault:fault:shm"));
    assert_null(cst_transport_find(""));
    cst_transport_names(names, sizeof names);
    assert_non_null(strstr(names, "threads, shm"));
    cst_transport_names(names, 4);
    assert_string_equal(names, "thr");
}

/* Random scripts; the fuzz target of the same name looks harder. */
static void test_hostile_channel(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    uint8_t script[400];
    for (int round = 0; round < 3000; round++) {
        size_t n = next_random(&seed) % sizeof script;
        for (size_t i = 0; i < n; i++)
            script[i] = (uint8_t)(next_random(&seed) >> 11);
        hostile_channel(script, n);
    }
}

/* The oob's own failures and disagreements, on every rank alike. */
static coset_status fake_gather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    (void)send;
    (void)timeout_ms;
    memcpy(recv, ctx, 2 * bytes);
    return COSET_OK;
}

static coset_status refuse(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    (void)ctx;
    (void)send;
    (void)recv;
    (void)bytes;
    (void)timeout_ms;
    return COSET_ERR_LATE;
}

static void test_agree(void **state)
{
    (void)state;
    uint64_t votes[4] = {COSET_OK, 5, COSET_OK, 5};
    coset_oob oob = {sizeof oob, 0, 2, votes, fake_gather};
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(cst_agree(&oob, "it", COSET_OK, 5, 100, &why), COSET_OK);
    votes[3] = 6;
    assert_int_equal(cst_agree(&oob, "it", COSET_OK, 5, 100, &why), COSET_ERR_MISMATCH);
    assert_string_equal(why.text, "it: ranks disagree: 5 here, 6 on rank 1");
    votes[2] = COSET_ERR_MEMORY;
    assert_int_equal(cst_agree(&oob, "it", COSET_OK, 5, 100, &why), COSET_ERR_MEMORY);
    assert_int_equal(why.peer, 1);
    votes[2] = COSET_ERR_ARGUMENT;
    assert_int_equal(cst_agree(&oob, "it", COSET_OK, 5, 100, &why), COSET_ERR_MISMATCH);
    assert_int_equal(cst_agree(&oob, "it", COSET_ERR_ARGUMENT, 5, 100, &why), COSET_ERR_ARGUMENT);
    oob.allgather = refuse;
    assert_int_equal(cst_agree(&oob, "it", COSET_OK, 5, 100, &why), COSET_ERR_LATE);
}

/* A sender that gives its message up while the receiver is in the middle of copying it. */
typedef struct {
    cst_channel *sender;
    coset_msg msg;
    char memory[5000];
} given_up;

static void no_doorbell(void *self, int peer)
{
    (void)self, (void)peer;
}

static coset_location in_segment(void *self, const void *ptr, size_t bytes)
{
    (void)self, (void)ptr, (void)bytes;
    return (coset_location){COSET_LOC_SEGMENT, 0, 0};
}

static void *map_and_give_up(void *self, int peer, const coset_location *at, size_t bytes)
{
    given_up *g = self;
    (void)peer, (void)at, (void)bytes;
    cst_channel_cancel(g->sender, &g->msg);
    memset(g->memory, 9, sizeof g->memory); /* its owner's again */
    return g->memory;
}

/* What has been copied by then may be anything: it is no message. */
static void test_given_up(void **state)
{
    (void)state;
    static given_up g;
    char got[sizeof g.memory], *areas[2];
    struct iovec from = {g.memory, sizeof g.memory}, to = {got, sizeof got};
    cst_layout layout = cst_layout_for(2, 4, 8192);
    for (int r = 0; r < 2; r++)
        assert_non_null(areas[r] = cst_alloc_aligned(4096, layout.bytes));
    cst_channel_backend be = {.self = &g, .doorbell = no_doorbell, .locate = in_segment, .map = map_and_give_up};
    cst_channel *receiver = cst_channel_new(1, &layout, areas, &be);
    g.sender = cst_channel_new(0, &layout, areas, &be);
    g.msg = (coset_msg){.peer = 1, .iov = &from, .iovcnt = 1};
    coset_msg receive = {.peer = 0, .iov = &to, .iovcnt = 1};
    assert_int_equal(cst_channel_isend(g.sender, &g.msg), COSET_OK);
    assert_int_equal(cst_channel_irecv(receiver, &receive), COSET_OK);
    cst_channel_progress(receiver);
    assert_int_equal(g.msg.status, COSET_ERR_ABORTED);
    assert_int_equal(receive.status, COSET_ERR_ABORTED);
    cst_channel_free(receiver);
    cst_channel_free(g.sender);
    free(areas[0]);
    free(areas[1]);
}

static void no_notice(void *self, int peer, const coset_notice *notice)
{
    (void)self, (void)peer, (void)notice;
}

static void no_end(void *self, int peer, bool nonsense)
{
    (void)self, (void)peer, (void)nonsense;
}

typedef struct {
    cst_mesh mesh;
    _Atomic bool stop;
} bell;

static void *ring_on(void *p)
{
    bell *b = p;
    while (!atomic_load(&b->stop))
        cst_mesh_wake(&b->mesh);
    return NULL;
}

/* However rings and looks fall together, the next ring is heard, and silence is silence. */
static void test_mesh_wake(void **state)
{
    (void)state;
    enum { HEARD = 10000, LOOKS_IN_VAIN = 200000 }; /* so many until the thread has started, or its rings are lost */
    cst_link own = {.fd = -1};
    bell b = {.mesh = {.size = 1, .links = &own, .pages = -1, .epoll = epoll_create1(0)}};
    b.mesh.event = eventfd(0, EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = 0};
    assert_int_equal(epoll_ctl(b.mesh.epoll, EPOLL_CTL_ADD, b.mesh.event, &e), 0);
    const cst_mesh_handler h = {NULL, no_notice, no_end};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ring_on, &b), 0);
    for (int heard = 0, vain = 0; heard < HEARD && vain < LOOKS_IN_VAIN;)
        *(cst_mesh_poll(&b.mesh, 0, &h) ? &heard : &vain) += 1;
    atomic_store(&b.stop, true);
    pthread_join(thread, NULL);
    while (cst_mesh_poll(&b.mesh, 0, &h))
        ;
    assert_false(b.mesh.woken);
    cst_mesh_wake(&b.mesh);
    assert_true(cst_mesh_poll(&b.mesh, 0, &h));
    close(b.mesh.event);
    close(b.mesh.epoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_notice_queue),
        cmocka_unit_test(test_notice_valid),
        cmocka_unit_test(test_packet_nonsense),
        cmocka_unit_test(test_packet_last_words),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_segment_bytes),
        cmocka_unit_test(test_registry),
        cmocka_unit_test(test_hostile_channel),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_mesh_wake),
        cmocka_unit_test(test_given_up),
    };
    return cmocka_run_group_tests_name("transport parts", tests, NULL, NULL);
}
