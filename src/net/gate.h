/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: a listener and the connections that have not yet said a whole hello.
 *
 * Anybody can connect to a port: scanners, other jobs, slow or broken clients. The gate reads from each newcomer the 64
 * bytes of a hello and nothing more, without ever waiting for one of them; wrong ones are answered or dropped, those
 * that say nothing are dropped after CST_GATE_PATIENCE_MS, and when too many wait at once the oldest goes.
 */
#ifndef CST_NET_GATE_H
#define CST_NET_GATE_H
#include "net/hello.h"

#include <poll.h>

#define CST_GATE_WAITING 64
#define CST_GATE_PATIENCE_MS 10000

typedef struct {
    int listener; /* owned; -1: closed */
    cst_token token;
    int waiting;
    struct {
        int fd;
        size_t got;
        cst_deadline until;
        uint8_t bytes[CST_HELLO_BYTES];
    } guest[CST_GATE_WAITING];
    int foreign; /* connections turned away because of their token or version, for the error text */
} cst_gate;

/* Takes over `listener`. */
void cst_gate_open(cst_gate *gate, int listener, const cst_token *token);
/* Closes the listener and the guests. */
void cst_gate_close(cst_gate *gate);
/* Fills in what to poll, at most CST_GATE_WAITING + 1 entries; returns how many. */
int cst_gate_poll_set(const cst_gate *gate, struct pollfd *out);
/* The next connection with a good hello: *fd is the caller's, who must answer it and judge its rank. *fd = -1: none
 * now. Never blocks. SYSTEM if no connection can be accepted any more. */
coset_status cst_gate_next(cst_gate *gate, int *fd, cst_hello *hello, coset_error *why);
#endif
