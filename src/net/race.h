/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a process of the job that may be at one of several addresses, of which some may be wrong, and which
 * may open late: all are tried side by side, again and again, until one leads to a process that welcomes our hello.
 *
 * The process at the other end may be reached by more than one of them, so the winner of the race says that it is the
 * one (cst_hello_choose): its gate counts a connection only from then on.
 */
#ifndef CST_NET_RACE_H
#define CST_NET_RACE_H
#include "net/addr.h"
#include "net/hello.h"

#include <poll.h>

#define CST_ROUTES 24 /* at most as many addresses of one process */

/* Internet addresses, or a local socket (local[0] != 0, then count is 0). */
typedef struct {
    int count;
    cst_addr addr[CST_ROUTES];
    char local[200];
} cst_routes;

/* One address of a race. */
typedef enum { CST_RESTING, CST_CONNECTING, CST_ASKED, CST_WRONG } cst_attempt_state;
typedef struct {
    cst_attempt_state state;
    int fd;
    bool refused; /* nobody listened there at the last try */
    int pause_ms;
    cst_deadline until; /* resting: next try; connecting: give up */
    size_t got;
    uint8_t answer[CST_ANSWER_BYTES];
} cst_attempt;

typedef struct {
    const cst_routes *routes; /* not owned */
    cst_hello hello;
    cst_deadline deadline;
    int count;
    cst_attempt attempt[CST_ROUTES];
    coset_error obstacle; /* the last one met */
} cst_race;

void cst_race_begin(cst_race *race, const cst_routes *routes, const cst_hello *hello, cst_deadline deadline);
/* Closes what is open. */
void cst_race_end(cst_race *race);
/* What to wait for: race->count entries (some with fd -1), and *until lowered to the next point in time at which
 * something is due. */
int cst_race_poll_set(const cst_race *race, struct pollfd *out, cst_deadline *until);
/* Moves on without waiting; `set` as filled in by poll(), NULL at the first time. OK: *fd is connected, welcome and
 * chosen. IN_PROGRESS. LATE at the deadline; MISMATCH or PEER when every address has led to somebody else. An open
 * connection that is not answered yet is kept, since the other end may be busy. race->obstacle tells why. */
coset_status cst_race_step(cst_race *race, const struct pollfd *set, int *fd);
/* Does nobody listen at any of the addresses? For a process that is known to have listened: it has stopped. */
bool cst_race_is_refused(const cst_race *race);
/* Is a connection open that waits for its answer? */
bool cst_race_has_connection(const cst_race *race);

/* All of it, blocking. IN_PROGRESS at `recheck`, if no connection stands then: the caller may look for better
 * addresses. */
coset_status cst_race_run(const cst_routes *routes, const cst_hello *hello, cst_deadline deadline, cst_deadline recheck,
                          int *fd, coset_error *why);
#endif
