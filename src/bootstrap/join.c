/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/join.h"

#include "base/error.h"
#include "base/log.h"
#include "net/socket.h"
#include "net/unix.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* An attempt that takes longer than this to connect leads nowhere: a filtered port, an address that is not ours. */
#define CONNECT_MS 3000
#define FIRST_PAUSE_MS 20
#define LONGEST_PAUSE_MS 500

typedef enum { RESTING, CONNECTING, ASKED, WRONG } phase;
typedef struct {
    phase phase;
    int fd;
    int pause_ms;
    cst_deadline until; /* RESTING: next try; CONNECTING: give up */
    size_t got;
    uint8_t answer[CST_ANSWER_BYTES];
} attempt;

typedef struct {
    const cst_routes *routes;
    const cst_hello *hello;
    cst_deadline deadline;
    int count;
    attempt attempt[CST_ROUTES];
    coset_error *why; /* never NULL */
} race;

static void rest(attempt *a)
{
    cst_close(a->fd);
    a->fd = -1;
    a->phase = RESTING;
    a->until = cst_deadline_in(a->pause_ms);
    a->pause_ms = a->pause_ms * 2 < LONGEST_PAUSE_MS ? a->pause_ms * 2 : LONGEST_PAUSE_MS;
}

static void say_hello(race *r, attempt *a)
{
    uint8_t bytes[CST_HELLO_BYTES];
    cst_hello_write(r->hello, bytes);
    a->got = 0;
    /* a new connection has room for a hello */
    if (send(a->fd, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes) {
        a->phase = ASKED;
        return;
    }
    char text[CST_ADDR_TEXT];
    cst_fail_errno(r->why, "sending to %s", cst_socket_peer_text(a->fd, text));
    rest(a);
}

static void start(race *r, int i)
{
    attempt *a = &r->attempt[i];
    if (r->routes->local[0]) {
        if (cst_unix_connect(r->routes->local, r->deadline, &a->fd, r->why))
            rest(a);
        else
            say_hello(r, a);
        return;
    }
    if (cst_connect_begin(&r->routes->addr[i], &a->fd, r->why)) {
        rest(a);
        return;
    }
    a->phase = CONNECTING;
    a->until = cst_deadline_in(CONNECT_MS);
}

/* Returns true when the answer is a welcome. */
static bool hear_answer(race *r, attempt *a)
{
    ssize_t n = recv(a->fd, a->answer + a->got, sizeof a->answer - a->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        /* the root, or what stands before it, has closed: it may be starting or ending */
        char text[CST_ADDR_TEXT];
        cst_fail(r->why, COSET_ERR_PEER, -1, "%s closed the connection", cst_socket_peer_text(a->fd, text));
        rest(a);
        return false;
    }
    a->got += (size_t)n;
    if (a->got < sizeof a->answer)
        return false;
    if (!cst_hello_judge(a->fd, a->answer, r->why))
        return true;
    cst_log(CST_LOG_INFO, "not our root: %s", r->why->text);
    cst_close(a->fd);
    a->fd = -1;
    a->phase = WRONG;
    return false;
}

/* Moves attempt i on as far as it goes without waiting. True when it has won. */
static bool advance(race *r, int i, short events)
{
    attempt *a = &r->attempt[i];
    if (a->phase == RESTING && cst_deadline_passed(a->until))
        start(r, i);
    else if (a->phase == CONNECTING && events) {
        if (cst_connect_end(&r->routes->addr[i], &a->fd, r->why))
            rest(a);
        else
            say_hello(r, a);
    } else if (a->phase == CONNECTING && cst_deadline_passed(a->until)) {
        char text[CST_ADDR_TEXT];
        cst_fail(r->why, COSET_ERR_LATE, -1, "%s does not answer", cst_addr_format(&r->routes->addr[i], text));
        rest(a);
    } else if (a->phase == ASKED && events) {
        return hear_answer(r, a);
    }
    return false;
}

/* Sleeps until something may have changed. events[i]: what poll said about attempt i. */
static void wait_all(const race *r, cst_deadline limit, short *events)
{
    struct pollfd set[CST_ROUTES];
    cst_deadline next = limit;
    for (int i = 0; i < r->count; i++) {
        const attempt *a = &r->attempt[i];
        bool open = a->phase == CONNECTING || a->phase == ASKED;
        set[i] = (struct pollfd){open ? a->fd : -1, a->phase == CONNECTING ? POLLOUT : POLLIN, 0};
        if ((a->phase == RESTING || a->phase == CONNECTING) && a->until < next)
            next = a->until;
    }
    poll(set, (nfds_t)r->count, cst_deadline_left(next, 1000));
    for (int i = 0; i < r->count; i++)
        events[i] = set[i].revents;
}

static int count_in(const race *r, phase p)
{
    int n = 0;
    for (int i = 0; i < r->count; i++)
        n += r->attempt[i].phase == p;
    return n;
}

static coset_status run(race *r, cst_deadline recheck, int *fd)
{
    short events[CST_ROUTES] = {0};
    for (;;) {
        for (int i = 0; i < r->count; i++)
            if (advance(r, i, events[i])) {
                *fd = r->attempt[i].fd;
                r->attempt[i].fd = -1;
                return COSET_OK;
            }
        if (count_in(r, WRONG) == r->count)
            return r->why->status;
        if (cst_deadline_passed(r->deadline))
            return COSET_ERR_LATE;
        if (cst_deadline_passed(recheck) && !count_in(r, ASKED))
            return COSET_IN_PROGRESS;
        cst_deadline limit = count_in(r, ASKED) || r->deadline < recheck ? r->deadline : recheck;
        wait_all(r, limit, events);
    }
}

coset_status cst_join(const cst_routes *routes, const cst_hello *hello, cst_deadline deadline, cst_deadline recheck,
                      int *fd, coset_error *why)
{
    coset_error last = COSET_ERROR_INIT;
    race r = {routes, hello, deadline, routes->local[0] ? 1 : routes->count, {{0}}, why ? why : &last};
    for (int i = 0; i < r.count; i++)
        r.attempt[i] = (attempt){.phase = RESTING, .fd = -1, .pause_ms = FIRST_PAUSE_MS, .until = 0};
    coset_status status = run(&r, recheck, fd);
    for (int i = 0; i < r.count; i++)
        cst_close(r.attempt[i].fd);
    return status;
}
