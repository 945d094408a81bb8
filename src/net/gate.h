/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: a listener and the connections that have not yet said a whole hello.
 *
 * Anybody can connect to a port: scanners, other jobs, slow or broken clients. The gate reads from each newcomer the 64
 * bytes of a hello and nothing more, without ever waiting for one of them; wrong ones are answered or dropped, those
 * that say nothing are dropped after CST_GATE_PATIENCE_MS, or CST_GATE_CROWDED_MS when no descriptor is left for others,
 * and when too many wait at once the oldest goes. A good hello is answered with a welcome; the connection is let in when
 * the other end has chosen it (race.h).
 */
#ifndef CST_NET_GATE_H
#define CST_NET_GATE_H
#include "net/hello.h"

#include <poll.h>

#define CST_GATE_STRANGERS   64
#define CST_GATE_PATIENCE_MS 10000
#define CST_GATE_CROWDED_MS  200

typedef struct {
    int fd;
    bool welcome; /* it has shown the token; now it has to choose */
    size_t got;
    cst_deadline until;
    uint8_t bytes[CST_HELLO_BYTES];
    uint8_t choice[CST_CHOICE_BYTES];
} cst_guest;

typedef struct {
    int listener; /* owned; -1: closed */
    cst_token token;
    unsigned purposes; /* bit (1 << purpose) for each that is let in */
    bool full;         /* no descriptor for newcomers until a guest has left */
    bool patient; /* the caller's to set: being out of descriptors passes, since others of this process are about to
                     be given back */
    int guests, strangers, room;
    cst_guest *guest;
    int foreign; /* connections turned away because of their token or version, for error texts */
} cst_gate;

/* Takes over `listener`. */
void cst_gate_open(cst_gate *gate, int listener, const cst_token *token, unsigned purposes);
/* Closes the listener and the guests. */
void cst_gate_close(cst_gate *gate);
/* How many entries cst_gate_poll_set fills in. */
int cst_gate_poll_count(const cst_gate *gate);
void cst_gate_poll_set(const cst_gate *gate, struct pollfd *out);
/* The next connection that has shown a good hello and been chosen: *fd is the caller's, who must judge its rank.
 * *fd = -1: none now. Never blocks; to be called at least once a second. SYSTEM if no connection can be accepted. */
coset_status cst_gate_next(cst_gate *gate, int *fd, cst_hello *hello, coset_error *why);
#endif
