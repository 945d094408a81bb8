/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function as every rank of a group: as threads of this process, or as processes. */
#ifndef TESTS_COMM_GROUP_H
#define TESTS_COMM_GROUP_H
#include <coset.h>

/* What a rank does. Returns 0, or what went wrong as a non-zero number after printing it (group_fail). */
typedef int (*group_body)(coset_comm *comm, void *arg);

typedef struct {
    const char *transport; /* "threads", "shm", "tcp", "fault:shm" ... */
    int size;
    coset_comm_options options; /* transport is filled in */
    int seconds;                /* the whole run may take; ranks are killed after it. 0: 60 */
    int per_host;               /* > 0: ranks r / per_host pretend to be on hosts of their own */
    int expect_dead;            /* ranks that the test kills: their end is no failure */
} group;
#define GROUP(name, n) ((group){.transport = (name), .size = (n), .options = COSET_COMM_OPTIONS_INIT})

/* Number of ranks that failed (creation included); 0 is success. */
int group_run(const group *g, group_body body, void *arg);
/* The same without a communicator: body gets NULL and makes its own from group_oob(). Processes only. */
int group_run_bare(const group *g, group_body body, void *arg);
/* In a rank started by group_run_bare: the out-of-band all-gather. */
const coset_oob *group_oob(void);
/* Prints "rank R: text" and returns 1. */
int group_fail(const coset_comm *comm, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails unless `status` is `wanted`. */
int group_want(const coset_comm *comm, coset_status status, coset_status wanted, const char *what);
#endif
