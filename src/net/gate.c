/* SPDX-License-Identifier: Apache-2.0 */
#include "net/gate.h"

#include "base/log.h"
#include "net/socket.h"
#include "net/unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void cst_gate_open(cst_gate *gate, int listener, const cst_token *token)
{
    memset(gate, 0, sizeof *gate);
    gate->listener = listener;
    gate->token = *token;
}

void cst_gate_close(cst_gate *gate)
{
    for (int i = 0; i < gate->waiting; i++)
        cst_close(gate->guest[i].fd);
    gate->waiting = 0;
    cst_close(gate->listener);
    gate->listener = -1;
}

int cst_gate_poll_set(const cst_gate *gate, struct pollfd *out)
{
    int n = 0;
    if (gate->listener >= 0)
        out[n++] = (struct pollfd){gate->listener, POLLIN, 0};
    for (int i = 0; i < gate->waiting; i++)
        out[n++] = (struct pollfd){gate->guest[i].fd, POLLIN, 0};
    return n;
}

/* Guests stay in the order in which they came. */
static void forget(cst_gate *gate, int i)
{
    gate->waiting--;
    memmove(&gate->guest[i], &gate->guest[i + 1], (size_t)(gate->waiting - i) * sizeof gate->guest[0]);
}

static void turn_away(cst_gate *gate, int i, const char *reason)
{
    char text[CST_ADDR_TEXT];
    cst_log(CST_LOG_INFO, "turned away %s: %s", cst_socket_peer_text(gate->guest[i].fd, text), reason);
    cst_close(gate->guest[i].fd);
    forget(gate, i);
}

static bool is_local_stranger(int fd)
{
    return cst_socket_own(fd).length == 0 && !cst_unix_same_user(fd);
}

/* Lets one connection in as the last guest; *admitted is 0 if none waits. */
static coset_status admit(cst_gate *gate, int *admitted, coset_error *why)
{
    int fd;
    *admitted = 0;
    do {
        coset_status status = cst_accept(gate->listener, &fd, why);
        if (status == COSET_ERR_SYSTEM && errno == EMFILE && gate->waiting) {
            turn_away(gate, 0, "out of descriptors");
            return COSET_OK;
        }
        if (status || fd < 0)
            return status;
        if (is_local_stranger(fd)) {
            cst_close(fd);
            fd = -1;
        }
    } while (fd < 0);
    if (gate->waiting == CST_GATE_WAITING)
        turn_away(gate, 0, "too many connections that say nothing");
    int i = gate->waiting++;
    gate->guest[i].fd = fd;
    gate->guest[i].got = 0;
    gate->guest[i].until = cst_deadline_in(CST_GATE_PATIENCE_MS);
    *admitted = 1;
    return COSET_OK;
}

/* Reads what guest i has sent. Returns 1 if its hello is good (it stays), 0 if it waits on, -1 if it has been turned away. */
static int listen_to(cst_gate *gate, int i)
{
    uint8_t *bytes = gate->guest[i].bytes;
    size_t *got = &gate->guest[i].got;
    ssize_t n = recv(gate->guest[i].fd, bytes + *got, CST_HELLO_BYTES - *got, 0);
    if (n > 0)
        *got += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        turn_away(gate, i, "it closed the connection");
        return -1;
    }
    switch (cst_hello_check(bytes, *got, &gate->token)) {
    case CST_HELLO_GOOD:
        return 1;
    case CST_HELLO_FOREIGN_TOKEN:
        cst_hello_answer(gate->guest[i].fd, CST_REFUSED_TOKEN);
        gate->foreign++;
        turn_away(gate, i, "another job");
        return -1;
    case CST_HELLO_FOREIGN_VERSION:
        cst_hello_answer(gate->guest[i].fd, CST_REFUSED_VERSION);
        gate->foreign++;
        turn_away(gate, i, "another wire version");
        return -1;
    case CST_HELLO_GARBAGE:
        turn_away(gate, i, "not a coset process");
        return -1;
    case CST_HELLO_MORE:
        break;
    }
    if (!cst_deadline_passed(gate->guest[i].until))
        return 0;
    turn_away(gate, i, "it said nothing");
    return -1;
}

/* Listens to the guests from number `first` on; true if one of them leaves with a good hello. */
static bool hear(cst_gate *gate, int first, int *fd, cst_hello *hello)
{
    for (int i = first; i < gate->waiting;) {
        int heard = listen_to(gate, i);
        if (heard == 1) {
            *fd = gate->guest[i].fd;
            cst_hello_read(gate->guest[i].bytes, hello);
            forget(gate, i);
            return true;
        }
        i += heard == 0;
    }
    return false;
}

coset_status cst_gate_next(cst_gate *gate, int *fd, cst_hello *hello, coset_error *why)
{
    *fd = -1;
    int first = 0, admitted = gate->listener >= 0;
    while (!hear(gate, first, fd, hello) && admitted) {
        coset_status status = admit(gate, &admitted, why);
        if (status)
            return status;
        /* the newcomer's hello is usually there already, and then it takes no place */
        first = gate->waiting - admitted;
    }
    return COSET_OK;
}
