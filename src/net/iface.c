/* SPDX-License-Identifier: Apache-2.0 */
#include "net/iface.h"

#include "base/env.h"
#include "base/error.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "COSET_IFNAME"

static int parse_item(const char *text, size_t length, cst_iface_spec *spec)
{
    char copy[64];
    if (length == 0 || length >= sizeof copy || spec->count == CST_IFACE_ITEMS)
        return -1;
    memcpy(copy, text, length);
    copy[length] = 0;
    int i = spec->count++;
    char *slash = strchr(copy, '/');
    long bits;
    if (slash)
        *slash = 0;
    if (cst_addr_parse(copy, &spec->item[i].net)) {
        strcpy(spec->item[i].name, copy);
        return slash ? -1 : 0;
    }
    spec->item[i].name[0] = 0;
    int width = spec->item[i].net.any.sa_family == AF_INET ? 32 : 128;
    spec->item[i].bits = width;
    if (!slash)
        return 0;
    if (cst_parse_long(slash + 1, 0, width, &bits))
        return -1;
    spec->item[i].bits = (int)bits;
    return 0;
}

int cst_iface_parse(const char *text, cst_iface_spec *out)
{
    cst_iface_spec spec = {0};
    if (*text == '^') {
        spec.exclude = true;
        text++;
    }
    if (*text == '=') {
        spec.whole = true;
        text++;
    }
    for (;;) {
        size_t n = strcspn(text, ",");
        if (parse_item(text, n, &spec))
            return -1;
        if (!text[n])
            break;
        text += n + 1;
    }
    *out = spec;
    return 0;
}

bool cst_iface_match(const cst_iface_spec *spec, const char *name, const cst_addr *addr)
{
    bool found = false;
    for (int i = 0; i < spec->count && !found; i++) {
        const char *wanted = spec->item[i].name;
        if (!*wanted)
            found = cst_addr_in_net(addr, &spec->item[i].net, spec->item[i].bits);
        else if (spec->whole)
            found = !strcmp(name, wanted);
        else
            found = !strncmp(name, wanted, strlen(wanted));
    }
    return found != spec->exclude;
}

bool cst_iface_asked(void)
{
    return cst_env(VARIABLE) != NULL;
}

/* Adds what `list` has on loopback (or not) and the specification takes. */
static int take(const struct ifaddrs *list, const cst_iface_spec *spec, bool loopback, cst_addr *out, int n, int max)
{
    for (; list && n < max; list = list->ifa_next) {
        if (!list->ifa_addr || !(list->ifa_flags & IFF_UP))
            continue;
        cst_addr a = cst_addr_from(list->ifa_addr);
        if (a.length == 0 || cst_addr_is_loopback(&a) != loopback)
            continue;
        /* a link-local IPv6 address means nothing on another host without its scope: only if asked for */
        if (spec ? cst_iface_match(spec, list->ifa_name, &a) : !cst_addr_is_link_local(&a))
            out[n++] = a;
    }
    return n;
}

static void list_names(const struct ifaddrs *list, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (; list && n < size; list = list->ifa_next) {
        char text[CST_ADDR_TEXT];
        cst_addr a = list->ifa_addr ? cst_addr_from(list->ifa_addr) : (cst_addr){0};
        if (a.length && list->ifa_flags & IFF_UP)
            n += (size_t)snprintf(out + n, size - n, "%s%s (%s)", n ? ", " : "", list->ifa_name,
                                  cst_addr_format(&a, text));
    }
}

coset_status cst_iface_env(cst_iface_spec *out, coset_error *why)
{
    const char *text = cst_env(VARIABLE);
    if (!text || !cst_iface_parse(text, out))
        return COSET_OK;
    return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                    VARIABLE "=%.80s: expected interfaces (eth,ib or =eth0 or ^docker), a network in CIDR form or an "
                             "address",
                    text);
}

coset_status cst_iface_addresses(cst_addr *out, int max, int *count, coset_error *why)
{
    cst_iface_spec spec;
    const char *text = cst_env(VARIABLE);
    struct ifaddrs *list;
    coset_status wrong = cst_iface_env(&spec, why);
    if (wrong)
        return wrong;
    if (getifaddrs(&list))
        return cst_fail_errno(why, "getifaddrs");
    int n = take(list, text ? &spec : NULL, false, out, 0, max);
    /* an exclusion list that does not name lo does not thereby ask for it: it is only the last resort */
    n = take(list, text ? &spec : NULL, true, out, n, max);
    coset_status status = COSET_OK;
    if (n == 0) {
        char names[160];
        list_names(list, names, sizeof names);
        status = text ? cst_fail(why, COSET_ERR_ARGUMENT, -1,
                                 VARIABLE "=%.40s takes no address of this host: it has %s", text, names)
                      : cst_fail(why, COSET_ERR_SYSTEM, -1, "no network interface has an address: not even lo is up");
    }
    freeifaddrs(list);
    *count = n;
    return status;
}

bool cst_iface_towards(const cst_addr *to, cst_addr *out)
{
    cst_addr target = *to;
    if (!cst_addr_port(&target))
        cst_addr_set_port(&target, 9); /* connecting a UDP socket sends nothing; the port only has to be some port */
    int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    bool found = !connect(fd, &target.any, target.length) && !getsockname(fd, (struct sockaddr *)&own, &length);
    close(fd);
    if (!found)
        return false;
    *out = cst_addr_from((struct sockaddr *)&own);
    cst_addr_set_port(out, 0);
    return out->length != 0;
}
#undef VARIABLE
