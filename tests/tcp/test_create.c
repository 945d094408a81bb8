/* SPDX-License-Identifier: Apache-2.0 */
/* Making the connections: addresses that are wrong, ranks that fail, strangers at the door. */
#include "base/clock.h"
#include "net/iface.h"
#include "net/socket.h"
#include "transport/ranks.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static coset_status try_create(rank_env *e, coset_error *why)
{
    *why = (coset_error)COSET_ERROR_INIT;
    coset_status status = e->ops->create(&e->oob, &e->config, &e->t, why);
    CHECK(status == COSET_OK || strlen(why->text) > 10);
    return status;
}

static void expect_failure(rank_env *e, coset_status status, const char *words)
{
    coset_error why;
    cst_deadline soon = cst_deadline_in(10000);
    coset_status got = try_create(e, &why);
    if (got != status || !strstr(why.text, words))
        rank_fail(__FILE__, __LINE__, "status %d: %s", got, why.text);
    CHECK(!cst_deadline_passed(soon));
    CHECK(!e->t);
}

/* Loopback only, but ranks on two hosts: refused on every rank, with what to set. */
static void loopback_between_hosts(rank_env *e)
{
    const char *hosts[] = {"a", "a", "b"};
    e->config.host = hosts;
    setenv("COSET_IFNAME", "=lo", 1);
    expect_failure(e, COSET_ERR_ARGUMENT, "COSET_IFNAME");
    unsetenv("COSET_IFNAME");
}

/* Rank 0 was reached by loopback, being on the root's host; the others by this host's address: it finds its own. */
static void loopback_is_replaced(rank_env *e)
{
    const char *hosts[] = {"a", "b", "b"};
    cst_addr list[CST_IFACE_MAX];
    int count;
    char text[CST_ADDR_TEXT];
    coset_error why;
    CHECK_INT(cst_iface_addresses(list, CST_IFACE_MAX, &count, NULL), COSET_OK);
    if (cst_addr_is_loopback(&list[0]))
        return; /* this host has nothing else */
    e->config.host = hosts;
    e->config.address = e->rank ? cst_addr_format(&list[0], text) : "127.0.0.1";
    CHECK_INT(try_create(e, &why), COSET_OK);
    rank_destroy(e);
}

static void the_address_given_is_used(rank_env *e)
{
    coset_error why;
    e->config.address = "127.0.0.1";
    CHECK_INT(try_create(e, &why), COSET_OK);
    rank_barrier(e);
    rank_destroy(e);
    e->config.address = "not an address"; /* it is a hint: without it all addresses are offered */
    CHECK_INT(try_create(e, &why), COSET_OK);
    rank_barrier(e);
    rank_destroy(e);
}

static int open_descriptors(void)
{
    enum { MOST = 1024 };
    int n = 0;
    for (int fd = 0; fd < MOST; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* One rank asks for something wrong: it says what, the others say who. */
static void wrong_sockets(rank_env *e)
{
    setenv("COSET_SOCKETS", e->rank == 1 ? "17" : "2", 1);
    expect_failure(e, e->rank == 1 ? COSET_ERR_ARGUMENT : COSET_ERR_MISMATCH, "COSET_SOCKETS");
    setenv("COSET_SOCKETS", e->rank == 1 ? "3" : "2", 1);
    expect_failure(e, COSET_ERR_MISMATCH, "COSET_SOCKETS");
    setenv("COSET_SOCKETS", "17", 1); /* all of them */
    int before = open_descriptors();
    expect_failure(e, COSET_ERR_ARGUMENT, "COSET_SOCKETS");
    CHECK_INT(open_descriptors(), before);
}

static void wrong_interface(rank_env *e)
{
    if (e->rank == 1)
        setenv("COSET_IFNAME", "=nosuch0", 1);
    expect_failure(e, e->rank == 1 ? COSET_ERR_ARGUMENT : COSET_ERR_MISMATCH, e->rank == 1 ? "=nosuch0" : "rank 1");
}

/* Rank 1 may listen on one port only, and that is taken. */
static void no_port(rank_env *e)
{
    int fd = -1;
    if (e->rank == 1) {
        cst_addr bound;
        char range[16];
        CHECK_INT(cst_listen_everywhere(0, (cst_ports){0, 0}, &fd, &bound, NULL), COSET_OK);
        snprintf(range, sizeof range, "%u", cst_addr_port(&bound));
        setenv("COSET_PORT_RANGE", range, 1);
    }
    expect_failure(e, COSET_ERR_SYSTEM, e->rank == 1 ? "COSET_PORT_RANGE" : "rank 1");
    cst_close(fd);
}

/* Ranks whose job numbers differ do not take each other's connections; the error says so and comes in time. */
static void another_job(rank_env *e)
{
    coset_error why;
    e->config.job += e->rank == 1;
    e->config.late_ms = 3000;
    CHECK(try_create(e, &why) != COSET_OK);
}

/* Dies in the oob's call number `fuse`, counted from 0. */
typedef struct {
    rank_env *e;
    coset_oob inner;
    int fuse;
} dying;

static coset_status gather_or_die(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    dying *d = ctx;
    if (d->e->rank == 1 && d->fuse-- == 0)
        rank_die(d->e);
    return d->inner.allgather(d->inner.ctx, send, recv, bytes, timeout_ms);
}

static void dies_at(rank_env *e, int fuse)
{
    dying d = {e, e->oob, fuse};
    e->oob = (coset_oob){sizeof(coset_oob), e->rank, e->size, &d, gather_or_die};
    e->config.late_ms = 1000;
    coset_error why;
    cst_deadline soon = cst_deadline_in(8000);
    coset_status status = try_create(e, &why);
    CHECK(status == COSET_ERR_LATE || status == COSET_ERR_PEER);
    CHECK(!cst_deadline_passed(soon));
}

static void dies_at_0(rank_env *e)
{
    dies_at(e, 0);
}
static void dies_at_2(rank_env *e)
{
    dies_at(e, 2);
}
static void dies_at_4(rank_env *e)
{
    dies_at(e, 4);
}
static void dies_at_5(rank_env *e)
{
    dies_at(e, 5);
}

/* Strangers knock at every listening port of this process's host while ranks connect. */
static void strangers(rank_env *e)
{
    coset_error why;
    char range[32];
    /* a range of ten ports, so that the strangers know where to knock */
    int low = 43000 + 10 * (getpid() % 1000);
    snprintf(range, sizeof range, "%d-%d", low, low + 9);
    atomic_store(&e->shared->word[e->rank], (uint32_t)low);
    rank_barrier(e);
    setenv("COSET_PORT_RANGE", range, 1);
    if (e->rank == 1)
        for (int k = 0; k < 100; k++) {
            int fd;
            cst_addr to;
            CHECK_INT(cst_addr_parse("127.0.0.1", &to), 0);
            cst_addr_set_port(&to, (uint16_t)(atomic_load(&e->shared->word[0]) + (uint32_t)k % 3));
            if (cst_connect(&to, cst_deadline_in(50), &fd, NULL) == COSET_OK && k % 2)
                cst_send_all(fd, "COSEThi\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 38, cst_deadline_in(50), NULL);
        } /* they stay connected */
    CHECK_INT(try_create(e, &why), COSET_OK);
    rank_destroy(e);
}

typedef struct {
    const char *name;
    void (*body)(rank_env *e);
    int size;
} one;
static const one rows[] = {
    {"loopback_between_hosts", loopback_between_hosts, 3},
    {"loopback_is_replaced", loopback_is_replaced, 3},
    {"the_address_given_is_used", the_address_given_is_used, 3},
    {"wrong_sockets", wrong_sockets, 3},
    {"wrong_interface", wrong_interface, 3},
    {"no_port", no_port, 3},
    {"another_job", another_job, 3},
    {"dies_at_0", dies_at_0, 3},
    {"dies_at_2", dies_at_2, 3},
    {"dies_at_4", dies_at_4, 3},
    {"dies_at_5", dies_at_5, 3},
    {"strangers", strangers, 2},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void run_row(void **state)
{
    const one *r = *state;
    const rank_test test = {r->name, r->body, true, NULL};
    assert_true(ranks_run("tcp", true, r->size, &test, 40));
}

int main(void)
{
    struct CMUnitTest tests[ROWS];
    for (int i = 0; i < ROWS; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, run_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return _cmocka_run_group_tests("tcp_create", tests, ROWS, NULL, NULL);
}
