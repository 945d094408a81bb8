/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/guests.h"

#include "base/error.h"
#include "base/fork.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Connections that have not said who they are. A rank says so at once; when there are more, the oldest one goes. */
enum { GUESTS = 32 };

typedef struct {
    int listener, rank, size;
    const cst_card *cards;
    cst_link *links;
    int missing;
    int count, guest[GUESTS]; /* oldest first */
} lobby;

uint64_t cst_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

coset_status cst_link_keep(cst_link *l, int fd, coset_error *why)
{
    struct ucred c;
    socklen_t length = sizeof c;
    l->fd = fd;
    l->pid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &length) ? 0 : c.pid;
    return cst_fork_guard(fd) ? cst_fail(why, COSET_ERR_MEMORY, -1, "transport shm: out of memory") : COSET_OK;
}

static void forget(lobby *b, int i)
{
    memmove(&b->guest[i], &b->guest[i + 1], (size_t)(--b->count - i) * sizeof b->guest[0]);
}

static coset_status let_in(lobby *b, coset_error *why)
{
    int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED
                   ? COSET_OK
                   : cst_fail_errno(why, "transport shm: accept (ulimit -n)");
    if (b->count == GUESTS) {
        close(b->guest[0]);
        forget(b, 0);
    }
    b->guest[b->count++] = fd;
    return COSET_OK;
}

/* The rank that this first packet is from, or -1. */
static int identify(const lobby *b, const cst_packet *p)
{
    const cst_card *me = &b->cards[b->rank];
    bool right = p->type == CST_PACKET_HELLO && !memcmp(p->u.hello.secret, me->secret, sizeof me->secret);
    int peer = p->number < (uint32_t)b->size ? (int)p->number : -1;
    return right && peer > b->rank && b->links[peer].fd < 0 ? peer : -1;
}

/* Guest i has something to say: a rank is seated, a stranger is shown out. */
static coset_status hear(lobby *b, int i, coset_error *why)
{
    cst_packet hello;
    int extra, fd = b->guest[i];
    cst_got got = cst_packet_receive(fd, &hello, &extra);
    if (got == CST_GOT_NOTHING)
        return COSET_OK;
    if (extra >= 0)
        close(extra);
    forget(b, i);
    int peer = got == CST_GOT_PACKET ? identify(b, &hello) : -1;
    if (peer < 0) {
        close(fd);
        return COSET_OK;
    }
    b->missing--;
    return cst_link_keep(&b->links[peer], fd, why);
}

/* Has this process ended (a zombie included)? False if that cannot be told. */
static bool has_died(const cst_card *c)
{
    struct pollfd p = {.events = POLLIN};
    if (!c->pid_namespace || c->pid_namespace != cst_pid_namespace())
        return false;
    p.fd = (int)syscall(SYS_pidfd_open, (pid_t)c->pid, 0);
    if (p.fd < 0)
        return errno == ESRCH;
    bool dead = poll(&p, 1, 0) == 1;
    close(p.fd);
    return dead;
}

static coset_status look_for_missing(const lobby *b, cst_deadline deadline, coset_error *why)
{
    for (int r = b->rank + 1; r < b->size; r++) {
        if (b->links[r].fd >= 0)
            continue;
        if (has_died(&b->cards[r]))
            return cst_fail(why, COSET_ERR_PEER, r, "transport shm: rank %d died before it connected", r);
        if (cst_deadline_passed(deadline))
            return cst_fail(why, COSET_ERR_LATE, r, "transport shm: rank %d did not connect", r);
    }
    return COSET_OK;
}

static coset_status one_turn(lobby *b, int timeout_ms, coset_error *why)
{
    struct pollfd p[GUESTS + 1];
    coset_status status = COSET_OK;
    int count = b->count;
    for (int i = 0; i < count; i++)
        p[i] = (struct pollfd){b->guest[i], POLLIN, 0};
    p[count] = (struct pollfd){b->listener, POLLIN, 0};
    if (poll(p, (nfds_t)count + 1, timeout_ms) <= 0)
        return COSET_OK;
    for (int i = count - 1; i >= 0 && !status; i--) /* from the end, since hear() takes guests out */
        if (p[i].revents)
            status = hear(b, i, why);
    return !status && p[count].revents ? let_in(b, why) : status;
}

coset_status cst_guests_admit(int listener, const cst_card *cards, int rank, int size, cst_deadline deadline,
                              cst_link *links, coset_error *why)
{
    enum { LOOK_MS = 250 };
    lobby b = {
        .listener = listener, .rank = rank, .size = size, .cards = cards, .links = links, .missing = size - 1 - rank};
    cst_deadline look = cst_deadline_in(LOOK_MS);
    coset_status status = COSET_OK;
    while (b.missing && !status) {
        status = one_turn(&b, cst_deadline_left(deadline, LOOK_MS), why);
        if (!status && b.missing && (cst_deadline_passed(look) || cst_deadline_passed(deadline))) {
            look = cst_deadline_in(LOOK_MS);
            status = look_for_missing(&b, deadline, why);
        }
    }
    for (int i = 0; i < b.count; i++)
        close(b.guest[i]);
    return status;
}
