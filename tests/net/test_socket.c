/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, connecting, sending: with deadlines, on both families, when ports run out, and beside forked children. */
#include "base/fork.h"
#include "net/socket.h"
#include "net/unix.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const cst_ports any_port = {0, 0};

static cst_addr address(const char *text, uint16_t port)
{
    cst_addr a;
    assert_int_equal(cst_addr_parse(text, &a), 0);
    cst_addr_set_port(&a, port);
    return a;
}

static int accept_one(int listener)
{
    int fd = -1;
    coset_error why = COSET_ERROR_INIT;
    struct pollfd p = {listener, POLLIN, 0};
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_int_equal(cst_accept(listener, &fd, &why), COSET_OK);
    assert_true(fd >= 0);
    return fd;
}

static void talk(const char *listen_at, const char *connect_to)
{
    coset_error why = COSET_ERROR_INIT;
    cst_addr at = address(listen_at, 0), bound, to;
    int listener, client, server;
    char got[6] = "";
    assert_int_equal(cst_listen(&at, any_port, &listener, &bound, &why), COSET_OK);
    assert_int_not_equal(cst_addr_port(&bound), 0);
    to = address(connect_to, cst_addr_port(&bound));
    assert_int_equal(cst_connect(&to, cst_deadline_in(5000), &client, &why), COSET_OK);
    server = accept_one(listener);
    assert_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(server, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(cst_send_all(client, "hello", 6, cst_deadline_in(5000), &why), COSET_OK);
    assert_int_equal(cst_recv_all(server, got, 6, cst_deadline_in(5000), &why), COSET_OK);
    assert_string_equal(got, "hello");
    cst_addr seen = cst_socket_peer(server), own = cst_socket_own(client);
    assert_true(cst_addr_same(&seen, &own));
    assert_int_equal(cst_addr_port(&seen), cst_addr_port(&own));

    cst_close(client);
    assert_int_equal(cst_recv_all(server, got, 1, cst_deadline_in(5000), &why), COSET_ERR_PEER);
    assert_non_null(strstr(why.text, "closed the connection"));
    cst_close(server);
    cst_close(listener);
}

static void ipv4(void **state)
{
    (void)state;
    talk("127.0.0.1", "127.0.0.1");
}

static bool has_ipv6(void)
{
    cst_addr at = address("::1", 0);
    int fd;
    if (cst_listen(&at, any_port, &fd, NULL, NULL))
        return false;
    cst_close(fd);
    return true;
}

static void ipv6_and_dual_stack(void **state)
{
    (void)state;
    if (!has_ipv6()) {
        print_message("skipped: this host has no IPv6\n");
        skip();
    }
    talk("::1", "::1");
    talk("::", "::1");
    talk("::", "127.0.0.1"); /* and the IPv4 peer is seen as one: talk() compares */
}

static void listening_everywhere_works_without_ipv6_too(void **state)
{
    (void)state;
    int fd;
    cst_addr bound;
    assert_int_equal(cst_listen_everywhere(0, any_port, &fd, &bound, NULL), COSET_OK);
    cst_addr to = address("127.0.0.1", cst_addr_port(&bound));
    int client;
    assert_int_equal(cst_connect(&to, cst_deadline_in(5000), &client, NULL), COSET_OK);
    cst_close(client);
    cst_close(fd);
}

static void nobody_listens(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    cst_addr at = address("127.0.0.1", 0), bound;
    int fd, client = 7;
    char text[CST_ADDR_TEXT];
    assert_int_equal(cst_listen(&at, any_port, &fd, &bound, &why), COSET_OK);
    cst_close(fd);
    assert_int_equal(cst_connect(&bound, cst_deadline_in(5000), &client, &why), COSET_ERR_PEER);
    assert_int_equal(client, -1);
    assert_non_null(strstr(why.text, cst_addr_format(&bound, text)));
    assert_non_null(strstr(why.text, "refused"));
}

/* Fills the listener's backlog of one, so that a further connection finds nobody who answers. */
static void deadlines_hold(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    cst_addr at = address("127.0.0.1", 0), bound;
    int listener, client[8], n = 0;
    coset_status status = COSET_OK;
    assert_int_equal(cst_listen(&at, any_port, &listener, &bound, &why), COSET_OK);
    assert_int_equal(listen(listener, 0), 0);
    uint64_t before = cst_now_ns();
    while (n < 8 && !(status = cst_connect(&bound, cst_deadline_in(200), &client[n], &why)))
        n++;
    assert_int_equal(status, COSET_ERR_LATE);
    assert_non_null(strstr(why.text, "127.0.0.1"));
    assert_true(cst_now_ns() - before < 10000000000u);

    char byte;
    assert_int_equal(cst_recv_all(client[0], &byte, 1, cst_deadline_in(50), &why), COSET_ERR_LATE);
    static char bulk[1 << 16];
    do /* nobody reads: the socket fills up */
        status = cst_send_all(client[0], bulk, sizeof bulk, cst_deadline_in(50), &why);
    while (!status);
    assert_int_equal(status, COSET_ERR_LATE);
    while (n > 0)
        cst_close(client[--n]);
    cst_close(listener);
}

static void ports_run_out(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    cst_addr at = address("127.0.0.1", 0), bound;
    int probe, fd[3], one_more = -1;
    assert_int_equal(cst_listen(&at, any_port, &probe, &bound, &why), COSET_OK);
    /* three neighbouring ports, of which the middle one may be taken by others: then the range is shorter */
    uint16_t low = cst_addr_port(&bound) > 65000 ? 50000 : cst_addr_port(&bound);
    cst_ports range = {low, (uint16_t)(low + 2)};
    int n = 0;
    while (n < 3 && !cst_listen(&at, range, &fd[n], &bound, &why)) {
        assert_in_range(cst_addr_port(&bound), range.low, range.high);
        n++;
    }
    assert_int_equal(cst_listen(&at, range, &one_more, &bound, &why), COSET_ERR_SYSTEM);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "COSET_PORT_RANGE=%u-%u", range.low, range.high);
    assert_non_null(strstr(why.text, wanted));
    assert_non_null(strstr(why.text, "127.0.0.1"));
    assert_int_equal(one_more, -1);
    while (n > 0)
        cst_close(fd[--n]);

    cst_addr taken = cst_socket_own(probe);
    char text[CST_ADDR_TEXT];
    assert_int_equal(cst_listen(&taken, any_port, &one_more, &bound, &why), COSET_ERR_SYSTEM);
    assert_non_null(strstr(why.text, cst_addr_format(&taken, text)));
    cst_close(probe);
}

/* A child that lives on must not keep the connection open in the peer's eyes. */
static void children_hold_nothing(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    cst_addr at = address("127.0.0.1", 0), bound;
    int listener, client, go[2];
    char byte;
    assert_int_equal(pipe(go), 0);
    assert_int_equal(cst_listen(&at, any_port, &listener, &bound, &why), COSET_OK);
    assert_int_equal(cst_connect(&bound, cst_deadline_in(5000), &client, &why), COSET_OK);
    int server = accept_one(listener);
    unsigned generation = cst_fork_generation();
    pid_t child = fork();
    if (child == 0) {
        bool closed = fcntl(client, F_GETFD) < 0 && errno == EBADF && cst_fork_generation() != generation;
        close(go[1]);
        ssize_t n = read(go[0], &byte, 1); /* lives until the parent has seen what it wants to see */
        _exit(closed && n == 0 ? 0 : 1);
    }
    close(go[0]);
    cst_close(client);
    assert_int_equal(cst_recv_all(server, &byte, 1, cst_deadline_in(5000), &why), COSET_ERR_PEER);
    close(go[1]);
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    cst_close(server);
    cst_close(listener);
}

static void local_sockets(void **state)
{
    (void)state;
    coset_error why = COSET_ERROR_INIT;
    char name[300], other[300], got[3];
    snprintf(name, sizeof name, "coset-test-%d-", (int)getpid());
    memset(name + strlen(name), 'x', 250 - strlen(name)); /* longer than a socket address holds */
    name[250] = 0;
    strcpy(other, name);
    other[249] = 'y';
    int listener, second, client, server;
    assert_int_equal(cst_unix_listen(name, &listener, &why), COSET_OK);
    assert_int_equal(cst_unix_listen(name, &second, &why), COSET_ERR_SYSTEM);
    assert_int_equal(cst_unix_connect(other, cst_deadline_in(1000), &client, &why), COSET_ERR_PEER);
    assert_int_equal(cst_unix_connect(name, cst_deadline_in(1000), &client, &why), COSET_OK);
    server = accept_one(listener);
    assert_true(cst_unix_same_user(server));
    assert_int_equal(cst_send_all(server, "ab", 3, cst_deadline_in(1000), &why), COSET_OK);
    assert_int_equal(cst_recv_all(client, got, 3, cst_deadline_in(1000), &why), COSET_OK);
    assert_string_equal(got, "ab");
    cst_close(client);
    cst_close(server);
    cst_close(listener);
    assert_int_equal(cst_unix_listen(name, &listener, &why), COSET_OK); /* the name went with its socket */
    cst_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ipv4),
        cmocka_unit_test(ipv6_and_dual_stack),
        cmocka_unit_test(listening_everywhere_works_without_ipv6_too),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(deadlines_hold),
        cmocka_unit_test(ports_run_out),
        cmocka_unit_test(children_hold_nothing),
        cmocka_unit_test(local_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
