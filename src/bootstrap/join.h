/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank gets to the root: by one of several addresses, of which some may be wrong, and which may open late. */
#ifndef CST_BOOTSTRAP_JOIN_H
#define CST_BOOTSTRAP_JOIN_H
#include "net/addr.h"
#include "net/hello.h"

#include <coset.h>

#define CST_ROUTES 24 /* at most as many addresses of one root */

/* Where the root may be: at internet addresses, or at a local socket (local[0] != 0, then count is 0). */
typedef struct {
    int count;
    cst_addr addr[CST_ROUTES];
    char local[200];
} cst_routes;

/* Tries all routes side by side, again and again, until one leads to a root that welcomes the hello: *fd. An open
 * connection that is not answered yet is kept, since the root may be busy elsewhere, and others are tried beside it.
 * LATE at the deadline; MISMATCH or PEER when every route has led to somebody who is not our root.
 * IN_PROGRESS at `recheck`, if no connection stands then: the caller may look for better addresses. `why` has the last
 * obstacle met. */
coset_status cst_join(const cst_routes *routes, const cst_hello *hello, cst_deadline deadline, cst_deadline recheck,
                      int *fd, coset_error *why);
#endif
