/* SPDX-License-Identifier: Apache-2.0 */
/* Names to addresses. In a cluster a name often appears only when its host has started, so a name that is not known
 * yet is asked for again until the deadline. */
#ifndef CST_NET_RESOLVE_H
#define CST_NET_RESOLVE_H
#include "base/clock.h"
#include "net/addr.h"

#include <coset.h>

/* Writes up to `max` distinct addresses of `host` (a name or a number), of every family, with `port`; *count >= 1 on
 * success. Blocks until the deadline at most, also where the system's resolver would block longer. ARGUMENT: the name
 * can never be one. SYSTEM: not known by the deadline. */
coset_status cst_resolve(const char *host, uint16_t port, cst_deadline deadline, cst_addr *out, int max, int *count,
                         coset_error *why);
#endif
