/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank listens on an abstract unix socket, whose name and secret go to the others through the oob. Then rank i
 * connects to all ranks below it and shows the secret of each; others of the host, who can see the name but not the
 * secret, are turned away, and so are other users.
 */
#include "transport/shm/meet.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    int64_t status;
    uint64_t name, secret[2];
} card;

/* How long a newcomer may take for its first word. It is a rank, or an intruder: ranks send it at once. */
enum { PATIENCE_MS = 2000 };

static struct sockaddr_un address(uint64_t job, int rank, uint64_t name, socklen_t *length)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "coset-%016llx-%d-%016llx", (unsigned long long)job, rank,
                     (unsigned long long)name);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return a;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static coset_status open_listener(uint64_t job, int rank, int size, card *me, int *out, coset_error *why)
{
    socklen_t length;
    struct sockaddr_un a;
    if (getrandom(&me->name, sizeof me->name, 0) < 0 || getrandom(me->secret, sizeof me->secret, 0) < 0)
        return cst_fail_errno(why, "transport shm: getrandom");
    int fd = new_socket();
    if (fd < 0)
        return cst_fail_errno(why, "transport shm: no socket (ulimit -n)");
    a = address(job, rank, me->name, &length);
    if (bind(fd, (struct sockaddr *)&a, length) || listen(fd, size + 16)) {
        coset_status status = cst_fail_errno(why, "transport shm: cannot listen on an abstract unix socket");
        close(fd);
        return status;
    }
    cst_fork_guard(fd);
    *out = fd;
    return COSET_OK;
}

/* The peer's process and user, as this process sees them. */
static bool credentials(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred c;
    socklen_t length = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &length))
        return false;
    *pid = c.pid;
    *uid = c.uid;
    return true;
}

static coset_status keep(cst_link *l, int fd, pid_t pid, coset_error *why)
{
    l->pid = pid;
    l->fd = fd;
    return cst_fork_guard(fd) ? cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory") : COSET_OK;
}

static coset_status connect_to(const card *to, uint64_t job, int peer, int rank, cst_deadline deadline, cst_link *l,
                               coset_error *why)
{
    socklen_t length;
    struct sockaddr_un a = address(job, peer, to->name, &length);
    int fd = new_socket();
    if (fd < 0)
        return cst_fail_errno(why, "transport shm: no socket for rank %d (ulimit -n)", peer);
    while (connect(fd, (struct sockaddr *)&a, length)) {
        bool full = errno == EAGAIN || errno == EINTR; /* many ranks connect at once */
        if (full && !cst_deadline_passed(deadline)) {
            poll(NULL, 0, 1);
            continue;
        }
        coset_status status = full ? COSET_ERR_LATE : errno == ECONNREFUSED ? COSET_ERR_PEER : COSET_ERR_SYSTEM;
        cst_fail(why, status, peer, "transport shm: cannot connect to rank %d: %s", peer, strerror(errno));
        close(fd);
        return status;
    }
    cst_packet hello = {.type = CST_PACKET_HELLO, .number = (uint32_t)rank};
    memcpy(hello.u.hello.secret, to->secret, sizeof to->secret);
    pid_t pid;
    uid_t uid;
    if (!credentials(fd, &pid, &uid) || cst_packet_send(fd, &hello, -1)) {
        coset_status status = cst_fail(why, COSET_ERR_PEER, peer, "transport shm: rank %d went away", peer);
        close(fd);
        return status;
    }
    return keep(l, fd, pid, why);
}

/* Who is it? -1: nobody we know. */
static int identify(int fd, const card *me, int rank, int size)
{
    struct pollfd p = {fd, POLLIN, 0};
    cst_packet hello;
    int extra;
    if (poll(&p, 1, PATIENCE_MS) != 1 || cst_packet_receive(fd, &hello, &extra) != CST_GOT_PACKET)
        return -1;
    if (extra >= 0)
        close(extra);
    bool right = hello.type == CST_PACKET_HELLO && !memcmp(hello.u.hello.secret, me->secret, sizeof me->secret);
    int peer = hello.number < (uint32_t)size ? (int)hello.number : -1;
    return right && peer > rank ? peer : -1;
}

/* Accepts one connection, if it is a rank's that is not there yet. */
static coset_status accept_one(int listener, const card *me, const coset_oob *oob, cst_link *links, int *missing,
                               coset_error *why)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED
                   ? COSET_OK
                   : cst_fail_errno(why, "transport shm: accept (ulimit -n)");
    pid_t pid;
    uid_t uid;
    int peer = credentials(fd, &pid, &uid) && uid == geteuid() ? identify(fd, me, oob->rank, oob->size) : -1;
    if (peer < 0 || links[peer].fd >= 0) {
        close(fd);
        return COSET_OK;
    }
    --*missing;
    return keep(&links[peer], fd, pid, why);
}

static coset_status accept_all(int listener, const card *me, const coset_oob *oob, cst_deadline deadline, cst_link *links,
                               coset_error *why)
{
    int missing = oob->size - 1 - oob->rank;
    while (missing) {
        struct pollfd p = {listener, POLLIN, 0};
        if (cst_deadline_passed(deadline)) {
            int r = oob->rank + 1;
            while (links[r].fd >= 0)
                r++;
            return cst_fail(why, COSET_ERR_LATE, r, "transport shm: rank %d did not connect", r);
        }
        if (poll(&p, 1, cst_deadline_left(deadline, 1000)) > 0) {
            coset_status status = accept_one(listener, me, oob, links, &missing, why);
            if (status)
                return status;
        }
    }
    return COSET_OK;
}

static coset_status exchange(const coset_oob *oob, const card *me, card *all, int timeout_ms, coset_error *why)
{
    coset_status status = oob->allgather(oob->ctx, me, all, sizeof *me, timeout_ms);
    if (status)
        return cst_fail(why, status, -1, "transport shm: the ranks did not all meet: %s", coset_strerror(status));
    if (me->status)
        return (coset_status)me->status;
    for (int r = 0; r < oob->size; r++)
        if (all[r].status)
            return cst_fail(why, (coset_status)all[r].status, r, "transport shm: rank %d failed: %s", r,
                            coset_strerror((coset_status)all[r].status));
    return COSET_OK;
}

coset_status cst_meet(const coset_oob *oob, uint64_t job, int timeout_ms, cst_link *links, coset_status mine,
                      coset_error *why)
{
    card me = {.status = mine}, *all = calloc((size_t)oob->size, sizeof *all);
    int listener = -1;
    if (!all)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory");
    if (!mine)
        me.status = open_listener(job, oob->rank, oob->size, &me, &listener, why);
    coset_status status = exchange(oob, &me, all, timeout_ms, why);
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    for (int r = 0; r < oob->rank && !status; r++)
        status = connect_to(&all[r], job, r, oob->rank, deadline, &links[r], why);
    if (!status)
        status = accept_all(listener, &me, oob, deadline, links, why);
    if (listener >= 0) {
        cst_fork_unguard(listener);
        close(listener);
    }
    free(all);
    return status;
}
