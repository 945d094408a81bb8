/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets between the ranks of one host: one pair per two ranks, so that every rank sees the death of every other
 * by itself. The driver's thread calls; cst_mesh_tell and cst_mesh_wake may be called from any thread.
 */
#ifndef CST_TRANSPORT_SHM_MESH_H
#define CST_TRANSPORT_SHM_MESH_H
#include "transport/shm/packet.h"

#include <stdatomic.h>
#include <sys/types.h>

typedef struct {
    int fd;     /* -1: own rank. Stays open until cst_mesh_close, so that other threads may use it */
    pid_t pid;  /* as this process sees it; 0 if it cannot (another pid namespace) */
    bool ended; /* end of file seen */
} cst_link;

typedef struct {
    int rank, size;
    int epoll;          /* readable when any link or `event` is */
    int event;          /* wakes this rank from its own process */
    _Atomic bool woken; /* `event` has been rung and not yet read */
    bool called;        /* it has been read; for idle to take notice of and clear */
    cst_link *links;
    /* What the first notice that was no goodbye, or the first end of a link, means for all, and whom it is about; or OK. */
    coset_status trouble;
    int troubled;
    int pages; /* the descriptor of segment pages_number, which rank 0 sent and nobody has taken; or -1 */
    uint32_t pages_number;
} cst_mesh;

/* Collective, blocking. PEER, LATE, SYSTEM, MEMORY. */
coset_status cst_mesh_open(const coset_oob *oob, uint64_t job, int timeout_ms, cst_mesh *m, coset_error *why);
void cst_mesh_close(cst_mesh *m);

/* Any thread. Best effort: a peer that has gone, or does not read, is passed over. */
void cst_mesh_tell(const cst_mesh *m, int peer, const cst_packet *p);
void cst_mesh_wake(cst_mesh *m);

/* What cst_mesh_poll found: called for every notice, and once for the end of each link. */
typedef struct {
    void *self;
    void (*notice)(void *self, int peer, const coset_notice *notice);
    void (*ended)(void *self, int peer, bool nonsense);
} cst_mesh_handler;
/* Waits at most timeout_ms for something (0: not at all) and hands all of it over. Returns whether there was anything. */
bool cst_mesh_poll(cst_mesh *m, int timeout_ms, const cst_mesh_handler *h);
#endif
