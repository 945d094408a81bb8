/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one descriptor; the kernel closes what does not fit. */
typedef union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} descriptor_room;

int cst_packet_send(int socket, const cst_packet *p, int fd)
{
    struct iovec v = {(void *)p, p->type == CST_PACKET_KNOCK ? sizeof p->type : sizeof *p};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    descriptor_room room;
    if (fd >= 0) {
        memset(&room, 0, sizeof room);
        m.msg_control = room.bytes;
        m.msg_controllen = sizeof room.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n;
    do
        n = sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

static int take_descriptor(struct msghdr *m)
{
    int fd = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static cst_got judge(const cst_packet *p, ssize_t n, int fd)
{
    if (n == (ssize_t)sizeof p->type && p->type == CST_PACKET_KNOCK && fd < 0)
        return CST_GOT_PACKET;
    if (n != (ssize_t)sizeof *p)
        return CST_GOT_NONSENSE;
    bool pages = p->type == CST_PACKET_PAGES;
    bool known = pages || p->type == CST_PACKET_NOTICE || p->type == CST_PACKET_HELLO;
    return known && pages == (fd >= 0) ? CST_GOT_PACKET : CST_GOT_NONSENSE;
}

cst_got cst_packet_receive(int socket, cst_packet *p, int *fd)
{
    struct iovec v = {p, sizeof *p};
    descriptor_room room;
    *fd = -1;
    for (;;) {
        struct msghdr m = {
            .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
        ssize_t n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n == 0)
            return CST_GOT_END;
        if (n < 0) {
            /* Reset: the peer closed with something of ours unread. What it had sent before can still be read. */
            if (errno == EINTR || errno == ECONNRESET)
                continue;
            return errno == EAGAIN ? CST_GOT_NOTHING : CST_GOT_END;
        }
        *fd = take_descriptor(&m);
        cst_got got = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? CST_GOT_NONSENSE : judge(p, n, *fd);
        if (got != CST_GOT_PACKET && *fd >= 0) {
            close(*fd);
            *fd = -1;
        }
        return got;
    }
}
