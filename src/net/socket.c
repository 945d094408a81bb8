/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket.h"

#include "base/error.h"
#include "base/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

coset_status cst_adopt(int fd, coset_error *why)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
        cst_fail_errno(why, "fcntl");
        close(fd);
        return COSET_ERR_SYSTEM;
    }
    if (cst_fork_guard(fd)) {
        close(fd);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for the table of descriptors");
    }
    return COSET_OK;
}

void cst_close(int fd)
{
    int saved = errno;
    if (fd < 0)
        return;
    cst_fork_unguard(fd);
    close(fd);
    errno = saved;
}

static coset_status open_socket(int family, int *fd, coset_error *why)
{
    *fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return cst_fail_errno(why, errno == EMFILE ? "socket (raise the limit with ulimit -n)" : "socket");
    return cst_adopt(*fd, why);
}

static int bind_and_listen(int fd, const cst_addr *at)
{
    int on = 1, off = 0;
    /* the port of a job that has just ended must be usable again at once */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, cst_addr_is_wildcard(at) ? &off : &on, sizeof on);
    /* the kernel lowers the backlog to its own limit */
    return bind(fd, &at->any, at->length) || listen(fd, SOMAXCONN) ? -1 : 0;
}

/* A socket that has failed to listen is not used for another try: it may stay half bound. */
static coset_status try_listen(const cst_addr *at, int *fd, coset_error *why)
{
    coset_status status = open_socket(at->any.sa_family, fd, why);
    if (status)
        return status;
    if (!bind_and_listen(*fd, at))
        return COSET_OK;
    char text[CST_ADDR_TEXT];
    cst_fail_errno(why, "cannot listen on %s", cst_addr_format(at, text));
    cst_close(*fd);
    *fd = -1;
    return COSET_ERR_SYSTEM;
}

coset_status cst_listen(const cst_addr *at, cst_ports ports, int *fd, cst_addr *bound, coset_error *why)
{
    cst_addr here = *at;
    coset_status status;
    if (cst_addr_port(at) || !ports.low) {
        status = try_listen(&here, fd, why);
    } else {
        unsigned port = ports.low;
        do {
            cst_addr_set_port(&here, (uint16_t)port);
            status = try_listen(&here, fd, why);
        } while (status && errno == EADDRINUSE && ++port <= ports.high);
        if (status && errno == EADDRINUSE) {
            char text[CST_ADDR_TEXT];
            cst_fail(why, status, -1, "every port of COSET_PORT_RANGE=%u-%u is in use on %s: allow more ports",
                     ports.low, ports.high, cst_addr_format(at, text));
        }
    }
    if (!status && bound)
        *bound = cst_socket_own(*fd);
    return status;
}

coset_status cst_listen_everywhere(uint16_t port, cst_ports ports, int *fd, cst_addr *bound, coset_error *why)
{
    cst_addr any = cst_addr_wildcard(AF_INET6, port);
    coset_status status = cst_listen(&any, ports, fd, bound, why);
    if (status && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        any = cst_addr_wildcard(AF_INET, port);
        status = cst_listen(&any, ports, fd, bound, why);
    }
    return status;
}

/* 0 when fd is ready for `events`, -1 with errno (ETIMEDOUT at the deadline). */
static int wait_for(int fd, short events, cst_deadline deadline)
{
    for (;;) {
        struct pollfd p = {fd, events, 0};
        int n = poll(&p, 1, cst_deadline_left(deadline, 60000));
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0 && cst_deadline_passed(deadline)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

static coset_status status_of_errno(void)
{
    switch (errno) {
    case ETIMEDOUT: return COSET_ERR_LATE;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED: return COSET_ERR_PEER;
    default: return COSET_ERR_SYSTEM;
    }
}

/* Closes a socket that could not be connected, for the reason in errno. */
static coset_status not_connected(const cst_addr *to, int *fd, coset_error *why)
{
    char text[CST_ADDR_TEXT], own_text[CST_ADDR_TEXT];
    int reason = errno;
    cst_addr own = cst_socket_own(*fd);
    cst_addr_set_port(&own, 0);
    errno = reason;
    coset_status status = status_of_errno();
    cst_fail_errno(why, "cannot connect from %s to %s", cst_addr_format(&own, own_text), cst_addr_format(to, text));
    if (why)
        why->status = status;
    cst_close(*fd);
    *fd = -1;
    return status;
}

coset_status cst_connect_begin(const cst_addr *to, int *fd, coset_error *why)
{
    coset_status status = open_socket(to->any.sa_family, fd, why);
    if (status)
        return status;
    cst_socket_tune(*fd);
    if (connect(*fd, &to->any, to->length) && errno != EINPROGRESS && errno != EINTR)
        return not_connected(to, fd, why);
    return COSET_OK;
}

coset_status cst_connect_end(const cst_addr *to, int *fd, coset_error *why)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (!getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error)
        return COSET_OK;
    if (error)
        errno = error;
    return not_connected(to, fd, why);
}

coset_status cst_connect(const cst_addr *to, cst_deadline deadline, int *fd, coset_error *why)
{
    coset_status status = cst_connect_begin(to, fd, why);
    if (status)
        return status;
    return wait_for(*fd, POLLOUT, deadline) ? not_connected(to, fd, why) : cst_connect_end(to, fd, why);
}

coset_status cst_accept(int listener, int *fd, coset_error *why)
{
    for (;;) {
        *fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (*fd >= 0) {
            coset_status status = cst_adopt(*fd, why);
            if (status)
                *fd = -1;
            else
                cst_socket_tune(*fd);
            return status;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return COSET_OK;
        /* the connection died while it waited: not our trouble (accept(2) lists what else a network may leave here) */
        if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO || errno == ENETDOWN || errno == EHOSTUNREACH ||
            errno == ENETUNREACH)
            continue;
        return cst_fail_errno(why, errno == EMFILE ? "accept (raise the limit with ulimit -n)" : "accept");
    }
}

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

void cst_socket_tune(int fd)
{
    int on = 1, longest_retransmission_ms = 1000;
    /* Both fail on a local socket, the second on an older kernel; neither matters. Without the second a link that was
     * away for 7 s is tried again only after 13, since the timer doubles. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &longest_retransmission_ms, sizeof longest_retransmission_ms);
}

void cst_socket_unpaced(int fd)
{
    static const char plain[] = "reno"; /* every kernel has it and lets everybody use it */
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

static cst_addr address_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage s = {0};
    socklen_t length = sizeof s;
    if (get(fd, (struct sockaddr *)&s, &length))
        return (cst_addr){0};
    return cst_addr_from((struct sockaddr *)&s);
}

static int peer_name(int fd, struct sockaddr *out, socklen_t *length)
{
    return getpeername(fd, out, length);
}

static int own_name(int fd, struct sockaddr *out, socklen_t *length)
{
    return getsockname(fd, out, length);
}

cst_addr cst_socket_peer(int fd)
{
    return address_of(fd, peer_name);
}

cst_addr cst_socket_own(int fd)
{
    return address_of(fd, own_name);
}

const char *cst_socket_peer_text(int fd, char out[CST_ADDR_TEXT])
{
    cst_addr a = cst_socket_peer(fd);
    return a.length ? cst_addr_format(&a, out) : "a local socket";
}

/* What ended a transfer early; n is what send or recv returned. */
static coset_status broken(int fd, ssize_t n, const char *doing, coset_error *why)
{
    char text[CST_ADDR_TEXT];
    if (n == 0)
        return cst_fail(why, COSET_ERR_PEER, -1, "%s closed the connection", cst_socket_peer_text(fd, text));
    coset_status status = status_of_errno();
    cst_fail_errno(why, "%s %s", doing, cst_socket_peer_text(fd, text));
    if (why)
        why->status = status;
    return status;
}

coset_status cst_send_all(int fd, const void *data, size_t bytes, cst_deadline deadline, coset_error *why)
{
    const char *p = data;
    while (bytes) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        } else if (n < 0 && errno != EINTR && (errno != EAGAIN || wait_for(fd, POLLOUT, deadline))) {
            return broken(fd, -1, "sending to", why);
        }
    }
    return COSET_OK;
}

coset_status cst_recv_all(int fd, void *data, size_t bytes, cst_deadline deadline, coset_error *why)
{
    char *p = data;
    while (bytes) {
        ssize_t n = recv(fd, p, bytes, 0);
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        } else if (n == 0 || (errno != EINTR && (errno != EAGAIN || wait_for(fd, POLLIN, deadline)))) {
            return broken(fd, n, "receiving from", why);
        }
    }
    return COSET_OK;
}
