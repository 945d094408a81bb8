/* SPDX-License-Identifier: Apache-2.0 */
/* What the instances of one communicator share: made by rank 0, found by the others through the oob. */
#ifndef CST_TRANSPORT_THREADS_GROUP_H
#define CST_TRANSPORT_THREADS_GROUP_H
#include "transport/channel/channel.h"
#include "transport/notices.h"

#include <pthread.h>

typedef struct {
    char *area;    /* channel/layout.h */
    void *control; /* the caller's */
    pthread_mutex_t lock;
    cst_notices mail; /* under lock */
    _Atomic bool has_mail;
} cst_member;

typedef struct {
    int size;
    _Atomic int references; /* instances that may still use it */
    cst_layout layout;
    size_t control_bytes;
    cst_member member[];
} cst_group;

/* Collective; `mine`: what this rank has to report already, a failure makes all ranks fail. On success every instance holds a reference to the same group, with all members' areas in place.
 * UNSUPPORTED: the ranks are not in one process. MISMATCH: different control_bytes. MEMORY; or what the oob said. */
coset_status cst_group_join(const coset_oob *oob, size_t control_bytes, int timeout_ms, coset_status mine,
                            cst_group **out, coset_error *why);
/* Gives the reference back; the last one frees everything. */
void cst_group_leave(cst_group *g);

/* Any thread: puts a notice into the mailbox of `rank` and wakes it. */
void cst_group_mail(cst_group *g, int rank, const coset_notice *notice);
/* Moves the mail of `rank` to the end of `to`. */
void cst_group_collect(cst_group *g, int rank, cst_notices *to);
/* Any thread: wakes `rank`. */
void cst_group_ring(cst_group *g, int rank);
#endif
