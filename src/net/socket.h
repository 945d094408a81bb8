/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections with deadlines. Every descriptor made here is non-blocking, close-on-exec and guarded against fork()
 * (a child cannot keep it open in the peer's eyes), and is closed with cst_close.
 *
 * Errors: LATE the deadline passed; PEER the other end closed or refused; MEMORY, SYSTEM otherwise. Texts name the
 * addresses; `peer` in *why is -1, since nothing here knows ranks.
 */
#ifndef CST_NET_SOCKET_H
#define CST_NET_SOCKET_H
#include "base/clock.h"
#include "net/addr.h"
#include "net/ports.h"

#include <coset.h>

/* Sets non-blocking and close-on-exec, and guards fd. On failure fd is closed. */
coset_status cst_adopt(int fd, coset_error *why);
/* Unguards and closes; fd < 0 is a no-op. Keeps errno. */
void cst_close(int fd);

/* Listens at `at`. If its port is 0 the port comes from `ports`. The IPv6 wildcard takes IPv4 connections too.
 * *bound (may be NULL) has the port. SYSTEM: the address or every allowed port is taken; the text names both. */
coset_status cst_listen(const cst_addr *at, cst_ports ports, int *fd, cst_addr *bound, coset_error *why);
/* Listens on every address of the host, on IPv4 alone where there is no IPv6. */
coset_status cst_listen_everywhere(uint16_t port, cst_ports ports, int *fd, cst_addr *bound, coset_error *why);
/* One attempt; blocks until it succeeds, fails, or the deadline. */
coset_status cst_connect(const cst_addr *to, cst_deadline deadline, int *fd, coset_error *why);
/* The same in two steps, for those who try several at once: begin never blocks; once *fd is writable (poll), end says
 * whether it is connected. On failure *fd is closed and -1. */
coset_status cst_connect_begin(const cst_addr *to, int *fd, coset_error *why);
coset_status cst_connect_end(const cst_addr *to, int *fd, coset_error *why);
/* The next connection that waits on `listener`, adopted; *fd = -1 if none does. Never blocks. */
coset_status cst_accept(int listener, int *fd, coset_error *why);
/* Low delay, and quick recovery after an outage where the kernel can limit its retransmission timer. */
void cst_socket_tune(int fd);
/* For connections within a host, where there is no network to be fair to: without the pacing of congestion controls such
 * as bbr, which cost 10 to 40 % of the speed there (docs/performance.md). */
void cst_socket_unpaced(int fd);

/* The other end's and the own address; length 0 if it is no internet socket. */
cst_addr cst_socket_peer(int fd);
cst_addr cst_socket_own(int fd);
/* "10.0.0.1:5000" or "a local socket". */
const char *cst_socket_peer_text(int fd, char out[CST_ADDR_TEXT]);

/* All bytes or an error; block until the deadline. */
coset_status cst_send_all(int fd, const void *data, size_t bytes, cst_deadline deadline, coset_error *why);
coset_status cst_recv_all(int fd, void *data, size_t bytes, cst_deadline deadline, coset_error *why);
#endif
