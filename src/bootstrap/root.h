/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's side: lets the others in, collects and spreads. */
#ifndef CST_BOOTSTRAP_ROOT_H
#define CST_BOOTSTRAP_ROOT_H
#include "bootstrap/frame.h"
#include "net/addr.h"
#include "net/gate.h"

typedef struct {
    int fd; /* -1: not joined */
    uint32_t pid;
    bool cut;                    /* half a frame has been sent to it: nothing else can be said */
    bool told;                   /* that the job has failed */
    size_t head_done, body_done; /* of the frame under way, in or out */
    uint8_t head[CST_FRAME_BYTES];
} cst_line;

typedef struct {
    int size, joined;
    uint32_t number; /* of the next gathering */
    cst_gate gate;
    int room;
    struct pollfd *set; /* [room] */
    cst_line line[];    /* by rank; [0] is not used */
} cst_root;

/* Takes over `listener`, also on failure. NULL: out of memory. */
cst_root *cst_root_new(int size, int listener, const cst_token *token);
void cst_root_free(cst_root *root);
/* Waits until all have joined, then closes the gate. On failure every rank that has come is told. */
coset_status cst_root_admit(cst_root *root, cst_deadline deadline, coset_error *why);
/* Tells every rank that all have joined. */
coset_status cst_root_welcome(cst_root *root, cst_deadline deadline, coset_error *why);
/* One gathering. */
coset_status cst_root_gather(cst_root *root, const void *send, void *recv, size_t bytes, cst_deadline deadline,
                             coset_error *why);
/* An address of this host at which a rank of elsewhere reached it, else any that was used; length 0: local sockets
 * only. */
cst_addr cst_root_address(const cst_root *root);
#endif
