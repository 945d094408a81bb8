/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports may be listened on: COSET_PORT_RANGE=LOW-HIGH, for firewalls; without it the kernel chooses. */
#ifndef CST_NET_PORTS_H
#define CST_NET_PORTS_H
#include <coset.h>
#include <stdint.h>

typedef struct {
    uint16_t low, high;
} cst_ports; /* both ends count; 0-0: any */

/* "40000-40100" or "40000". Returns 0, or -1. */
int cst_ports_parse(const char *text, cst_ports *out);
/* From COSET_PORT_RANGE. ARGUMENT, naming the variable. */
coset_status cst_ports_env(cst_ports *out, coset_error *why);
#endif
