/* SPDX-License-Identifier: Apache-2.0 */
/* Internet addresses, IPv4 and IPv6 alike. Plain data; no function here talks to the network. */
#ifndef CST_NET_ADDR_H
#define CST_NET_ADDR_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef struct {
    socklen_t length; /* 0: no address */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
} cst_addr;

/* Enough for "[address%scope]:port". */
#define CST_ADDR_TEXT 80
#define CST_HOST_TEXT 256

/* "10.0.0.1", "fe80::1%eth0": an address without a port (port 0). Returns 0, or -1 if the text is no address. */
int cst_addr_parse(const char *text, cst_addr *out);
/* "10.0.0.1:99" or "[::1]:99"; without the port if it is 0. Returns out. */
const char *cst_addr_format(const cst_addr *addr, char out[CST_ADDR_TEXT]);
/* From what the kernel gave; an IPv4 address mapped into IPv6 becomes IPv4. A family that is neither gives length 0. */
cst_addr cst_addr_from(const struct sockaddr *from);
/* The wildcard address of a family. */
cst_addr cst_addr_wildcard(int family, uint16_t port);

uint16_t cst_addr_port(const cst_addr *addr);
void cst_addr_set_port(cst_addr *addr, uint16_t port);
bool cst_addr_is_loopback(const cst_addr *addr);
bool cst_addr_is_link_local(const cst_addr *addr);
bool cst_addr_is_wildcard(const cst_addr *addr);
/* The same host address; the ports do not count. */
bool cst_addr_same(const cst_addr *a, const cst_addr *b);
/* Do the first `bits` bits agree? False between families. */
bool cst_addr_in_net(const cst_addr *addr, const cst_addr *net, int bits);

/* "host:port", "[v6]:port" -> host and port (1..65535). Returns 0, or -1. */
int cst_hostport_split(const char *text, char host[CST_HOST_TEXT], uint16_t *port);
#endif
