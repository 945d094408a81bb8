/* SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

#include "base/env.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static const uint8_t *octets(const cst_addr *a, size_t *count)
{
    if (a->any.sa_family == AF_INET) {
        *count = 4;
        return (const uint8_t *)&a->v4.sin_addr;
    }
    *count = 16;
    return a->v6.sin6_addr.s6_addr;
}

static int parse_v6(const char *text, cst_addr *out)
{
    char plain[INET6_ADDRSTRLEN];
    const char *scope = strchr(text, '%');
    size_t n = scope ? (size_t)(scope - text) : strlen(text);
    if (n >= sizeof plain)
        return -1;
    memcpy(plain, text, n);
    plain[n] = 0;
    *out = (cst_addr){.length = sizeof out->v6, .v6 = {.sin6_family = AF_INET6}};
    if (inet_pton(AF_INET6, plain, &out->v6.sin6_addr) != 1)
        return -1;
    if (!scope)
        return 0;
    long index;
    out->v6.sin6_scope_id = if_nametoindex(scope + 1);
    if (!out->v6.sin6_scope_id && !cst_parse_long(scope + 1, 1, INT32_MAX, &index))
        out->v6.sin6_scope_id = (uint32_t)index;
    return out->v6.sin6_scope_id ? 0 : -1;
}

int cst_addr_parse(const char *text, cst_addr *out)
{
    cst_addr a = {.length = sizeof a.v4, .v4 = {.sin_family = AF_INET}};
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) != 1 && parse_v6(text, &a))
        return -1;
    *out = a;
    return 0;
}

const char *cst_addr_format(const cst_addr *addr, char out[CST_ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?", scope[IF_NAMESIZE + 1] = "", name[IF_NAMESIZE];
    uint16_t port = cst_addr_port(addr);
    if (addr->length == 0) {
        snprintf(out, CST_ADDR_TEXT, "none");
        return out;
    }
    if (addr->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &addr->v4.sin_addr, ip, sizeof ip);
    } else {
        inet_ntop(AF_INET6, &addr->v6.sin6_addr, ip, sizeof ip);
        if (addr->v6.sin6_scope_id && if_indextoname(addr->v6.sin6_scope_id, name))
            snprintf(scope, sizeof scope, "%%%s", name);
    }
    if (!port)
        snprintf(out, CST_ADDR_TEXT, "%s%s", ip, scope);
    else
        snprintf(out, CST_ADDR_TEXT, addr->any.sa_family == AF_INET ? "%s%s:%u" : "[%s%s]:%u", ip, scope, port);
    return out;
}

cst_addr cst_addr_from(const struct sockaddr *from)
{
    cst_addr a = {0};
    if (from->sa_family == AF_INET) {
        memcpy(&a.v4, from, sizeof a.v4);
        a.length = sizeof a.v4;
    } else if (from->sa_family == AF_INET6) {
        memcpy(&a.v6, from, sizeof a.v6);
        a.length = sizeof a.v6;
        if (IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr)) {
            cst_addr v4 = {.length = sizeof v4.v4, .v4 = {.sin_family = AF_INET, .sin_port = a.v6.sin6_port}};
            memcpy(&v4.v4.sin_addr, a.v6.sin6_addr.s6_addr + 12, 4);
            a = v4;
        }
    }
    return a;
}

cst_addr cst_addr_wildcard(int family, uint16_t port)
{
    cst_addr a = {0};
    if (family == AF_INET)
        a = (cst_addr){.length = sizeof a.v4, .v4 = {.sin_family = AF_INET}};
    else
        a = (cst_addr){.length = sizeof a.v6, .v6 = {.sin6_family = AF_INET6}};
    cst_addr_set_port(&a, port);
    return a;
}

uint16_t cst_addr_port(const cst_addr *addr)
{
    if (addr->length == 0)
        return 0;
    return ntohs(addr->any.sa_family == AF_INET ? addr->v4.sin_port : addr->v6.sin6_port);
}

void cst_addr_set_port(cst_addr *addr, uint16_t port)
{
    if (addr->any.sa_family == AF_INET)
        addr->v4.sin_port = htons(port);
    else
        addr->v6.sin6_port = htons(port);
}

bool cst_addr_is_loopback(const cst_addr *addr)
{
    size_t n;
    const uint8_t *o = octets(addr, &n);
    return n == 4 ? o[0] == 127 : IN6_IS_ADDR_LOOPBACK(&addr->v6.sin6_addr);
}

bool cst_addr_is_link_local(const cst_addr *addr)
{
    size_t n;
    const uint8_t *o = octets(addr, &n);
    return n == 4 ? o[0] == 169 && o[1] == 254 : IN6_IS_ADDR_LINKLOCAL(&addr->v6.sin6_addr);
}

bool cst_addr_is_wildcard(const cst_addr *addr)
{
    static const uint8_t zero[16];
    size_t n;
    const uint8_t *o = octets(addr, &n);
    return !memcmp(o, zero, n);
}

bool cst_addr_same(const cst_addr *a, const cst_addr *b)
{
    size_t n, m;
    const uint8_t *x = octets(a, &n), *y = octets(b, &m);
    return a->length && a->length == b->length && n == m && !memcmp(x, y, n);
}

bool cst_addr_in_net(const cst_addr *addr, const cst_addr *net, int bits)
{
    size_t n, m;
    const uint8_t *a = octets(addr, &n), *b = octets(net, &m);
    if (n != m || bits < 0 || (size_t)bits > 8 * n)
        return false;
    size_t whole = (size_t)bits / 8;
    if (memcmp(a, b, whole))
        return false;
    int rest = bits % 8;
    return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

int cst_hostport_split(const char *text, char host[CST_HOST_TEXT], uint16_t *port)
{
    const char *start = text, *end, *colon;
    if (*text == '[') {
        start = text + 1;
        end = strchr(start, ']');
        if (!end || end[1] != ':')
            return -1;
        colon = end + 1;
    } else {
        colon = end = strchr(text, ':');
        if (!colon || strchr(colon + 1, ':')) /* a bare IPv6 address has no clear end: brackets are asked for */
            return -1;
    }
    long number;
    size_t n = (size_t)(end - start);
    if (n == 0 || n >= CST_HOST_TEXT || cst_parse_long(colon + 1, 1, 65535, &number))
        return -1;
    memcpy(host, start, n);
    host[n] = 0;
    *port = (uint16_t)number;
    return 0;
}
