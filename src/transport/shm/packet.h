/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through the socket between two ranks: packets (SOCK_SEQPACKET), some with a descriptor. */
#ifndef CST_TRANSPORT_SHM_PACKET_H
#define CST_TRANSPORT_SHM_PACKET_H
#include <coset_transport.h>
#include <stdbool.h>

typedef enum {
    CST_PACKET_KNOCK = 1, /* wakes a sleeper; nothing but the type is sent */
    CST_PACKET_NOTICE,
    CST_PACKET_PAGES, /* with the descriptor of segment `number` */
    CST_PACKET_HELLO  /* the first one: who connects, and the secret of whom it connects to */
} cst_packet_type;

typedef struct {
    uint32_t type, number;
    union {
        coset_notice notice;
        struct {
            uint64_t secret[2];
        } hello;
    } u;
} cst_packet;

/* Never blocks. fd: a descriptor to go with it, or -1. Returns 0, or -1 with errno (EAGAIN: the peer does not read). */
int cst_packet_send(int socket, const cst_packet *p, int fd);

typedef enum { CST_GOT_PACKET, CST_GOT_NOTHING, CST_GOT_END, CST_GOT_NONSENSE } cst_got;
/* Never blocks. *fd: the descriptor that came with a PAGES packet (the caller's), else -1. */
cst_got cst_packet_receive(int socket, cst_packet *p, int *fd);
#endif
