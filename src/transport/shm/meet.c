/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank listens on an abstract unix socket, whose name and secret go to the others through the oob. Then rank i
 * connects to all ranks below it and shows the secret of each; others of the host can see the name but not the secret,
 * and are turned away (guests.h).
 */
#include "transport/shm/meet.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "transport/agree.h"
#include "transport/shm/guests.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

static coset_status open_listener(uint64_t job, int rank, int size, cst_card *me, int *out, coset_error *why)
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

static coset_status connect_to(const cst_card *to, uint64_t job, int peer, int rank, cst_deadline deadline, cst_link *l,
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
    if (cst_packet_send(fd, &hello, -1)) {
        close(fd);
        return cst_fail(why, COSET_ERR_PEER, peer, "transport shm: rank %d went away", peer);
    }
    return cst_link_keep(l, fd, why);
}

static coset_status exchange(const coset_oob *oob, const cst_card *me, cst_card *all, int timeout_ms, coset_error *why)
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

/* Also after a failure: ranks below wait for this one's connection, and would wait long. */
static coset_status connect_down(const coset_oob *oob, const cst_card *all, uint64_t job, cst_deadline deadline,
                                 cst_link *links, coset_error *why)
{
    coset_status status = COSET_OK;
    for (int r = 0; r < oob->rank; r++) {
        coset_status one = connect_to(&all[r], job, r, oob->rank, deadline, &links[r], status ? NULL : why);
        status = status ? status : one;
    }
    return status;
}

coset_status cst_meet(const coset_oob *oob, uint64_t job, int timeout_ms, cst_link *links, coset_status *mine,
                      coset_error *why)
{
    cst_card me = {.status = *mine, .pid = getpid(), .pid_namespace = cst_pid_namespace()};
    cst_room room;
    cst_card *all = cst_room_open(&room, oob->size, sizeof *all);
    int listener = -1;
    if (!all)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory");
    if (!me.status)
        me.status = open_listener(job, oob->rank, oob->size, &me, &listener, why);
    coset_status status = exchange(oob, &me, all, timeout_ms, why);
    cst_deadline deadline = cst_deadline_in(timeout_ms);
    if (!status)
        *mine = connect_down(oob, all, job, deadline, links, why);
    if (!status && !*mine)
        *mine = cst_guests_admit(listener, all, oob->rank, oob->size, deadline, links, why);
    if (listener >= 0) {
        cst_fork_unguard(listener);
        close(listener);
    }
    cst_room_close(&room);
    return status;
}
