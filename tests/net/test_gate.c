/* SPDX-License-Identifier: Apache-2.0 */
/* The gate lets in who shows the token, whatever strangers do meanwhile. */
#include "descriptors.h"
#include "net/gate.h"
#include "net/socket.h"
#include "unit.h"

#include <string.h>
#include <sys/socket.h>

typedef struct {
    cst_gate gate;
    cst_addr at;
    cst_hello hello; /* a good one */
} fixture;

static int open_gate(void **state)
{
    static fixture f;
    int listener;
    cst_addr any;
    assert_int_equal(cst_addr_parse("127.0.0.1", &any), 0);
    assert_int_equal(cst_listen(&any, (cst_ports){0, 0}, &listener, &f.at, NULL), COSET_OK);
    cst_token token = cst_token_from_text("the job");
    cst_gate_open(&f.gate, listener, &token, 1u << CST_PURPOSE_DATA);
    f.hello = (cst_hello){token, COSET_WIRE_VERSION, CST_PURPOSE_DATA, 3, 8, 1, 2, 4711};
    *state = &f;
    return 0;
}

static int shut_gate(void **state)
{
    cst_gate_close(&((fixture *)*state)->gate);
    return 0;
}

static int knock(const fixture *f, const void *bytes, size_t n)
{
    int fd;
    assert_int_equal(cst_connect(&f->at, cst_deadline_in(5000), &fd, NULL), COSET_OK);
    assert_int_equal(cst_send_all(fd, bytes, n, cst_deadline_in(5000), NULL), COSET_OK);
    return fd;
}

/* Runs the gate until somebody is let in, or for 5 ms in which nothing happens. */
static int let_in(fixture *f, cst_hello *hello)
{
    struct pollfd set[2 * CST_GATE_STRANGERS];
    int fd;
    do {
        assert_int_equal(cst_gate_next(&f->gate, &fd, hello, NULL), COSET_OK);
        if (fd >= 0)
            return fd;
        assert_true(cst_gate_poll_count(&f->gate) <= 2 * CST_GATE_STRANGERS);
        cst_gate_poll_set(&f->gate, set);
    } while (poll(set, (nfds_t)cst_gate_poll_count(&f->gate), 5) > 0);
    return -1;
}

/* The client's side after its hello: is welcome, and chooses this connection. */
static void choose(fixture *f, int client)
{
    cst_hello got;
    uint8_t answer[CST_ANSWER_BYTES];
    assert_int_equal(let_in(f, &got), -1); /* not before it has chosen */
    assert_int_equal(cst_recv_all(client, answer, sizeof answer, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(cst_hello_judge(client, answer, NULL), COSET_OK);
    assert_true(cst_hello_choose(client));
}

/* The client chooses, is let in, and leaves. */
static void enters(fixture *f, int client)
{
    cst_hello got;
    choose(f, client);
    int server = let_in(f, &got);
    assert_true(server >= 0);
    cst_close(client);
    cst_close(server);
}

static void expect_closed(int fd)
{
    char byte;
    assert_int_equal(cst_recv_all(fd, &byte, 1, cst_deadline_in(5000), NULL), COSET_ERR_PEER);
    cst_close(fd);
}

static void the_right_token_enters(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got = {0};
    cst_hello_write(&f->hello, bytes);
    int client = knock(f, bytes, sizeof bytes);
    choose(f, client);
    int server = let_in(f, &got);
    assert_true(server >= 0);
    assert_memory_equal(&got, &f->hello, sizeof got);
    cst_close(client);
    cst_close(server);
}

static void byte_by_byte_enters_too(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    int client = knock(f, bytes, 1), server;
    for (size_t i = 1; i < sizeof bytes; i++) {
        assert_int_equal(cst_gate_next(&f->gate, &server, &got, NULL), COSET_OK);
        assert_int_equal(server, -1);
        assert_int_equal(cst_send_all(client, bytes + i, 1, cst_deadline_in(5000), NULL), COSET_OK);
    }
    enters(f, client);
}

/* A process that reaches the gate by two ways takes one of them; the other leaves no trace. */
static void of_two_ways_one_is_chosen(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    int first = knock(f, bytes, sizeof bytes), second = knock(f, bytes, sizeof bytes);
    choose(f, second);
    int server = let_in(f, &got);
    assert_true(server >= 0);
    assert_int_equal(cst_send_all(server, "x", 1, cst_deadline_in(5000), NULL), COSET_OK);
    char byte;
    assert_int_equal(cst_recv_all(second, &byte, 1, cst_deadline_in(5000), NULL), COSET_OK); /* it is the second */
    cst_close(first);
    assert_int_equal(let_in(f, &got), -1);
    assert_int_equal(f->gate.guests, 0);
    cst_close(second);
    cst_close(server);
}

static void who_comes_for_something_else_is_refused(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES], answer[CST_ANSWER_BYTES];
    static const uint32_t purposes[] = {0, CST_PURPOSE_BOOTSTRAP, CST_PURPOSE_CONTROL, 31, 32, UINT32_MAX};
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++) {
        cst_hello other = f->hello, got;
        other.purpose = purposes[i];
        cst_hello_write(&other, bytes);
        int client = knock(f, bytes, sizeof bytes);
        assert_int_equal(let_in(f, &got), -1);
        assert_int_equal(cst_recv_all(client, answer, sizeof answer, cst_deadline_in(5000), NULL), COSET_OK);
        assert_int_equal(cst_hello_judge(client, answer, NULL), COSET_ERR_MISMATCH);
        expect_closed(client);
    }
}

static void a_wrong_choice_is_turned_away(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES], answer[CST_ANSWER_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    int client = knock(f, bytes, sizeof bytes);
    assert_int_equal(let_in(f, &got), -1);
    assert_int_equal(cst_recv_all(client, answer, sizeof answer, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(cst_send_all(client, "COSETxx\n", 8, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(let_in(f, &got), -1);
    expect_closed(client);
}

static void every_wrong_byte_of_magic_and_token_is_turned_away(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    for (size_t i = 0; i < 24; i++) {
        cst_hello_write(&f->hello, bytes);
        bytes[i] ^= 1;
        int client = knock(f, bytes, sizeof bytes);
        assert_int_equal(let_in(f, &got), -1);
        if (i >= 8) { /* it is a coset process: told why, and no more than that */
            coset_error why = COSET_ERROR_INIT;
            uint8_t answer[CST_ANSWER_BYTES];
            assert_int_equal(cst_recv_all(client, answer, sizeof answer, cst_deadline_in(5000), NULL), COSET_OK);
            assert_int_equal(cst_hello_judge(client, answer, &why), COSET_ERR_MISMATCH);
            assert_non_null(strstr(why.text, "another coset job"));
        }
        expect_closed(client);
    }
    assert_int_equal(f->gate.foreign, 16);
    assert_int_equal(f->gate.strangers, 0);
}

/* Nothing after the token counts before the token is right: not even a wrong version is told. */
static void other_versions_are_told_so(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES], answer[CST_ANSWER_BYTES];
    cst_hello old = f->hello, got;
    coset_error why = COSET_ERROR_INIT;
    old.version = COSET_WIRE_VERSION + 1;
    cst_hello_write(&old, bytes);
    int client = knock(f, bytes, sizeof bytes);
    assert_int_equal(let_in(f, &got), -1);
    assert_int_equal(cst_recv_all(client, answer, sizeof answer, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(cst_hello_judge(client, answer, &why), COSET_ERR_MISMATCH);
    assert_non_null(strstr(why.text, "wire version"));
    expect_closed(client);
}

static void garbage_gets_no_answer(void **state)
{
    fixture *f = *state;
    cst_hello got;
    uint32_t seed = 12345;
    for (int round = 0; round < 200; round++) {
        uint8_t bytes[300];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        int client = knock(f, bytes, 1 + (size_t)round % sizeof bytes);
        assert_int_equal(let_in(f, &got), -1);
        expect_closed(client);
    }
    int client = knock(f, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_int_equal(let_in(f, &got), -1);
    expect_closed(client);
}

/* More silent connections than places, and a good one in between and after. */
static void silence_does_not_stall(void **state)
{
    fixture *f = *state;
    enum { STRANGERS = CST_GATE_STRANGERS + 20 };
    int stranger[STRANGERS];
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    for (int i = 0; i < STRANGERS; i++) {
        stranger[i] = knock(f, bytes, (size_t)i % 24); /* some show a beginning */
        if (i % 20 == 19) {
            int client = knock(f, bytes, sizeof bytes);
            enters(f, client);
        }
    }
    assert_true(f->gate.strangers <= CST_GATE_STRANGERS);
    assert_int_equal(let_in(f, &got), -1);
    expect_closed(stranger[0]); /* the oldest had to go */
    for (int i = 1; i < STRANGERS; i++)
        cst_close(stranger[i]);
    assert_int_equal(let_in(f, &got), -1);
    assert_int_equal(f->gate.strangers, 0);
}

/* With one descriptor for two who come together, the first is not sent away before it can have spoken. */
static void the_last_descriptor_goes_round(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    int slow = knock(f, NULL, 0), quick = knock(f, bytes, sizeof bytes);
    limit_descriptors(limit_for(1));
    assert_int_equal(let_in(f, &got), -1);
    assert_int_equal(f->gate.guests, 1);
    assert_int_equal(cst_send_all(slow, bytes, sizeof bytes, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(let_in(f, &got), -1);
    enters(f, slow);
    assert_int_equal(let_in(f, &got), -1);
    enters(f, quick);
    limit_descriptors(RLIM_INFINITY);
}

static void silence_does_not_keep_the_last_descriptor(void **state)
{
    fixture *f = *state;
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello got;
    cst_hello_write(&f->hello, bytes);
    int silent = knock(f, NULL, 0), honest = knock(f, bytes, sizeof bytes);
    limit_descriptors(limit_for(1));
    assert_int_equal(let_in(f, &got), -1);
    f->gate.guest[0].until -= CST_GATE_CROWDED_MS * 1000000ull; /* as if it had been here so long */
    assert_int_equal(let_in(f, &got), -1);
    expect_closed(silent);
    enters(f, honest);
    limit_descriptors(RLIM_INFINITY);
}

static void clients_tell_a_stranger_from_a_closed_door(void **state)
{
    fixture *f = *state;
    coset_error why = COSET_ERROR_INIT;
    int client, server;
    assert_int_equal(cst_connect(&f->at, cst_deadline_in(5000), &client, NULL), COSET_OK);
    assert_int_equal(cst_hello_exchange(client, &f->hello, cst_deadline_in(50), &why), COSET_ERR_LATE);
    cst_close(client);

    assert_int_equal(cst_connect(&f->at, cst_deadline_in(5000), &client, NULL), COSET_OK);
    do
        assert_int_equal(cst_accept(f->gate.listener, &server, NULL), COSET_OK);
    while (server >= 0 && (cst_close(server), 1)); /* whoever was left over */
    cst_close(client);

    assert_int_equal(cst_connect(&f->at, cst_deadline_in(5000), &client, NULL), COSET_OK);
    struct pollfd p = {f->gate.listener, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_int_equal(cst_accept(f->gate.listener, &server, NULL), COSET_OK);
    assert_int_equal(cst_send_all(server, "SSH-2.0-OpenSSH_9.2p1\r\n", 23, cst_deadline_in(5000), NULL), COSET_OK);
    assert_int_equal(cst_hello_exchange(client, &f->hello, cst_deadline_in(5000), &why), COSET_ERR_PEER);
    assert_non_null(strstr(why.text, "not a coset process"));
    cst_close(client);
    cst_close(server);
}

int main(void)
{
#define GATED(test) cmocka_unit_test_setup_teardown(test, open_gate, shut_gate)
    const struct CMUnitTest tests[] = {
        GATED(the_right_token_enters),
        GATED(byte_by_byte_enters_too),
        GATED(of_two_ways_one_is_chosen),
        GATED(who_comes_for_something_else_is_refused),
        GATED(a_wrong_choice_is_turned_away),
        GATED(every_wrong_byte_of_magic_and_token_is_turned_away),
        GATED(other_versions_are_told_so),
        GATED(garbage_gets_no_answer),
        GATED(silence_does_not_stall),
        GATED(the_last_descriptor_goes_round),
        GATED(silence_does_not_keep_the_last_descriptor),
        GATED(clients_tell_a_stranger_from_a_closed_door),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
