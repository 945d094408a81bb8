/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a host's addresses ranks should use.
 *
 * COSET_IFNAME is a comma-separated list. As in NCCL an item is the beginning of an interface's name ("eth" takes eth0
 * and eth1); '=' in front of the list asks for whole names, '^' excludes what the list names, "^=" excludes whole
 * names. An item that is a network in CIDR form ("10.0.0.0/8", "fd00::/16") or an address takes what lies in it.
 * Without it: the address from which the kernel reaches the root.
 */
#ifndef CST_NET_IFACE_H
#define CST_NET_IFACE_H
#include "net/addr.h"

#include <coset.h>

#define CST_IFACE_ITEMS 16
#define CST_IFACE_MAX   32 /* addresses of a host that are considered */

typedef struct {
    bool exclude, whole;
    int count;
    struct {
        char name[64]; /* interface name or the beginning of one, empty for a network */
        cst_addr net;
        int bits;
    } item[CST_IFACE_ITEMS];
} cst_iface_spec;

/* Returns 0, or -1 if the text has no meaning. */
int cst_iface_parse(const char *text, cst_iface_spec *out);
/* From COSET_IFNAME; *out is left alone if it is not set. ARGUMENT, naming the variable. */
coset_status cst_iface_env(cst_iface_spec *out, coset_error *why);
/* Does the specification take an address of this interface? */
bool cst_iface_match(const cst_iface_spec *spec, const char *name, const cst_addr *addr);

/* The addresses of this host that COSET_IFNAME takes (all but link-local ones if it is unset), ordinary ones before
 * loopback; *count <= max, >= 1 on success. ARGUMENT if the variable has no meaning or takes no address of this host:
 * the text lists the interfaces there are. */
coset_status cst_iface_addresses(cst_addr *out, int max, int *count, coset_error *why);
/* Has COSET_IFNAME been set? */
bool cst_iface_asked(void);
/* The local address from which the kernel would send to `to`, port 0. False if it has no route. */
bool cst_iface_towards(const cst_addr *to, cst_addr *out);
#endif
