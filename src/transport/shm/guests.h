/* SPDX-License-Identifier: Apache-2.0 */
/* Letting in the ranks that connect, and nobody else. */
#ifndef CST_TRANSPORT_SHM_GUESTS_H
#define CST_TRANSPORT_SHM_GUESTS_H
#include "base/clock.h"
#include "transport/shm/mesh.h"

/* What each rank tells all others through the oob. */
typedef struct {
    int64_t status;         /* of its preparations */
    uint64_t name;          /* of its listener */
    uint64_t secret[2];     /* that whoever connects to it must know */
    int64_t pid;            /* in its own namespace: */
    uint64_t pid_namespace; /* 0: unknown */
} cst_card;

uint64_t cst_pid_namespace(void);

/* Takes over fd as the socket of a link. MEMORY, PEER. */
coset_status cst_link_keep(cst_link *l, int fd, coset_error *why);

/* Fills the links to all ranks above `rank`, as they connect. Strangers neither get in nor keep ranks waiting. PEER: a
 * rank that is missing has died. LATE: it has not come by the deadline. SYSTEM. */
coset_status cst_guests_admit(int listener, const cst_card *cards, int rank, int size, cst_deadline deadline,
                              cst_link *links, coset_error *why);
#endif
