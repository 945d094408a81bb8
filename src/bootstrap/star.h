/* SPDX-License-Identifier: Apache-2.0 */
/* The bootstrap over connections to rank 0: what env, id and file have in common. */
#ifndef CST_BOOTSTRAP_STAR_H
#define CST_BOOTSTRAP_STAR_H
#include "base/clock.h"
#include "net/race.h"
#include "bootstrap/object.h"

/* On rank 0: lets the others in at `listener` (taken over, also on failure). `joined` (may be NULL) is called once all
 * have come, before any of them knows it. */
coset_status cst_star_root(int listener, const cst_token *token, int size, cst_deadline deadline,
                           void (*joined)(void *ctx), void *ctx, cst_bootstrap **out, coset_error *why);

/* On other ranks: `find` gives the routes to the root, and is asked again from time to time while none of them leads
 * there. It blocks until the deadline at most. */
typedef coset_status (*cst_find)(void *ctx, cst_deadline deadline, cst_routes *routes, cst_token *token,
                                 coset_error *why);
coset_status cst_star_join(cst_find find, void *ctx, int rank, int size, cst_deadline deadline, cst_bootstrap **out,
                           coset_error *why);
#endif
