/* SPDX-License-Identifier: Apache-2.0 */
#include "net/unix.h"

#include "base/error.h"
#include "base/hash.h"
#include "net/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static socklen_t abstract_name(const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t n = strlen(name), room = sizeof out->sun_path - 1;
    char *path = out->sun_path + 1; /* a zero byte in front makes it abstract */
    if (n <= room) {
        memcpy(path, name, n);
    } else {
        char end[20];
        snprintf(end, sizeof end, "#%016llx", (unsigned long long)cst_hash64(0, name, n));
        memcpy(path, name, room - strlen(end));
        memcpy(path + room - strlen(end), end, strlen(end));
        n = room;
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static coset_status open_unix(int *fd, coset_error *why)
{
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return *fd < 0 ? cst_fail_errno(why, "socket") : cst_adopt(*fd, why);
}

coset_status cst_unix_listen(const char *name, int *fd, coset_error *why)
{
    struct sockaddr_un at;
    socklen_t length = abstract_name(name, &at);
    coset_status status = open_unix(fd, why);
    if (status)
        return status;
    if (!bind(*fd, (struct sockaddr *)&at, length) && !listen(*fd, SOMAXCONN))
        return COSET_OK;
    cst_fail_errno(why, "cannot listen on the local socket '%.60s'", name);
    cst_close(*fd);
    *fd = -1;
    return COSET_ERR_SYSTEM;
}

coset_status cst_unix_connect(const char *name, cst_deadline deadline, int *fd, coset_error *why)
{
    struct sockaddr_un at;
    socklen_t length = abstract_name(name, &at);
    coset_status status = open_unix(fd, why);
    if (status)
        return status;
    int failed;
    /* EAGAIN: the listener's backlog is full, and there is nothing to poll for */
    while ((failed = connect(*fd, (struct sockaddr *)&at, length)) && (errno == EAGAIN || errno == EINTR) &&
           !cst_deadline_passed(deadline))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (!failed && cst_unix_same_user(*fd))
        return COSET_OK;
    if (!failed)
        status = cst_fail(why, COSET_ERR_SYSTEM, -1, "the local socket '%.60s' belongs to another user", name);
    else if (errno == ECONNREFUSED)
        status = cst_fail(why, COSET_ERR_PEER, -1, "nobody listens on the local socket '%.60s'", name);
    else
        status = cst_fail_errno(why, "cannot connect to the local socket '%.60s'", name);
    cst_close(*fd);
    *fd = -1;
    return status;
}

int cst_unix_same_user(int fd)
{
    struct ucred other;
    socklen_t length = sizeof other;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length))
        return 0;
    return other.uid == geteuid() || other.uid == 0;
}
