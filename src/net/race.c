/* SPDX-License-Identifier: Apache-2.0 */
#include "net/race.h"

#include "base/error.h"
#include "base/log.h"
#include "net/descriptors.h"
#include "net/socket.h"
#include "net/unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* An attempt that takes longer than this to connect leads nowhere: a filtered port, an address that is not ours. */
#define CONNECT_MS       3000
#define FIRST_PAUSE_MS   20
#define LONGEST_PAUSE_MS 500

void cst_race_begin(cst_race *race, const cst_routes *routes, const cst_hello *hello, cst_deadline deadline)
{
    memset(race, 0, sizeof *race);
    race->routes = routes;
    race->hello = *hello;
    race->deadline = deadline;
    race->count = routes->local[0] ? 1 : routes->count;
    race->obstacle = (coset_error)COSET_ERROR_INIT;
    for (int i = 0; i < race->count; i++)
        race->attempt[i] = (cst_attempt){.state = CST_RESTING, .fd = -1, .pause_ms = FIRST_PAUSE_MS};
}

void cst_race_end(cst_race *race)
{
    for (int i = 0; i < race->count; i++) {
        cst_close(race->attempt[i].fd);
        race->attempt[i].fd = -1;
    }
}

static void rest(cst_attempt *a)
{
    cst_close(a->fd);
    a->fd = -1;
    a->state = CST_RESTING;
    a->until = cst_deadline_in(a->pause_ms);
    a->pause_ms = a->pause_ms * 2 < LONGEST_PAUSE_MS ? a->pause_ms * 2 : LONGEST_PAUSE_MS;
}

static void say_hello(cst_race *race, cst_attempt *a)
{
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello_write(&race->hello, bytes);
    a->got = 0;
    /* a new connection has room for a hello */
    if (send(a->fd, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes) {
        a->state = CST_ASKED;
        return;
    }
    char text[CST_ADDR_TEXT];
    cst_fail_errno(&race->obstacle, "sending to %s", cst_socket_peer_text(a->fd, text));
    rest(a);
}

static void start(cst_race *race, int i)
{
    cst_attempt *a = &race->attempt[i];
    a->refused = false;
    if (race->routes->local[0]) {
        if (cst_unix_connect(race->routes->local, race->deadline, &a->fd, &race->obstacle))
            rest(a);
        else
            say_hello(race, a);
        return;
    }
    coset_status status = cst_connect_begin(&race->routes->addr[i], &a->fd, &race->obstacle);
    if (status) {
        a->refused = status == COSET_ERR_PEER;
        rest(a);
        return;
    }
    a->state = CST_CONNECTING;
    a->until = cst_deadline_in(CONNECT_MS);
}

/* Returns true when the answer is a welcome. */
static bool hear_answer(cst_race *race, cst_attempt *a)
{
    ssize_t n = recv(a->fd, a->answer + a->got, sizeof a->answer - a->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        /* whoever stands there has closed: it may be starting or ending */
        char text[CST_ADDR_TEXT];
        cst_fail(&race->obstacle, COSET_ERR_PEER, -1, "%s closed the connection", cst_socket_peer_text(a->fd, text));
        rest(a);
        return false;
    }
    a->got += (size_t)n;
    if (a->got < sizeof a->answer)
        return false;
    if (!cst_hello_judge(a->fd, a->answer, &race->obstacle))
        return true;
    cst_log(CST_LOG_INFO, "not whom we look for: %s", race->obstacle.text);
    cst_close(a->fd);
    a->fd = -1;
    a->state = CST_WRONG;
    return false;
}

/* Moves attempt i on as far as it goes without waiting. True when it has won. */
static bool advance(cst_race *race, int i, short events)
{
    cst_attempt *a = &race->attempt[i];
    if (a->state == CST_RESTING && cst_deadline_passed(a->until)) {
        start(race, i);
    } else if (a->state == CST_CONNECTING && events) {
        coset_status status = cst_connect_end(&race->routes->addr[i], &a->fd, &race->obstacle);
        a->refused = status == COSET_ERR_PEER;
        if (status)
            rest(a);
        else
            say_hello(race, a);
    } else if (a->state == CST_CONNECTING && cst_deadline_passed(a->until)) {
        char text[CST_ADDR_TEXT];
        cst_fail(&race->obstacle, COSET_ERR_LATE, -1, "%s does not answer",
                 cst_addr_format(&race->routes->addr[i], text));
        rest(a);
    } else if (a->state == CST_ASKED && events) {
        return hear_answer(race, a);
    }
    return false;
}

int cst_race_poll_set(const cst_race *race, struct pollfd *out, cst_deadline *until)
{
    for (int i = 0; i < race->count; i++) {
        const cst_attempt *a = &race->attempt[i];
        bool open = a->state == CST_CONNECTING || a->state == CST_ASKED;
        out[i] = (struct pollfd){open ? a->fd : -1, a->state == CST_CONNECTING ? POLLOUT : POLLIN, 0};
        if ((a->state == CST_RESTING || a->state == CST_CONNECTING) && a->until < *until)
            *until = a->until;
    }
    if (race->deadline < *until)
        *until = race->deadline;
    return race->count;
}

static int count_in(const cst_race *race, cst_attempt_state state)
{
    int n = 0;
    for (int i = 0; i < race->count; i++)
        n += race->attempt[i].state == state;
    return n;
}

bool cst_race_has_connection(const cst_race *race)
{
    return count_in(race, CST_ASKED) > 0;
}

bool cst_race_is_refused(const cst_race *race)
{
    bool refused = race->count > 0;
    for (int i = 0; i < race->count; i++)
        refused = refused && (race->attempt[i].refused || race->attempt[i].state == CST_WRONG);
    return refused;
}

coset_status cst_race_step(cst_race *race, const struct pollfd *set, int *fd)
{
    for (int i = 0; i < race->count; i++) {
        cst_attempt *a = &race->attempt[i];
        if (!advance(race, i, set ? set[i].revents : 0))
            continue;
        if (!cst_hello_choose(a->fd)) {
            rest(a);
            continue;
        }
        *fd = a->fd;
        a->fd = -1;
        return COSET_OK;
    }
    if (count_in(race, CST_WRONG) == race->count)
        return race->obstacle.status;
    return cst_deadline_passed(race->deadline) ? COSET_ERR_LATE : COSET_IN_PROGRESS;
}

coset_status cst_race_run(const cst_routes *routes, const cst_hello *hello, cst_deadline deadline, cst_deadline recheck,
                          int *fd, coset_error *why)
{
    struct pollfd set[CST_ROUTES];
    cst_race race;
    cst_race_begin(&race, routes, hello, deadline);
    coset_status status = cst_race_step(&race, NULL, fd);
    while (status == COSET_IN_PROGRESS && (cst_race_has_connection(&race) || !cst_deadline_passed(recheck))) {
        cst_deadline until = cst_race_has_connection(&race) ? CST_NEVER : recheck;
        int n = cst_race_poll_set(&race, set, &until);
        cst_poll(set, n, cst_deadline_left(until, 1000));
        status = cst_race_step(&race, set, fd);
    }
    cst_error_copy(why, &race.obstacle);
    cst_race_end(&race);
    return status;
}
