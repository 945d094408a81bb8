/* SPDX-License-Identifier: Apache-2.0 */
#include "net/gate.h"

#include "base/error.h"
#include "base/log.h"
#include "net/descriptors.h"
#include "net/socket.h"
#include "net/unix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void cst_gate_open(cst_gate *gate, int listener, const cst_token *token, unsigned purposes)
{
    memset(gate, 0, sizeof *gate);
    gate->listener = listener;
    gate->token = *token;
    gate->purposes = purposes;
}

void cst_gate_close(cst_gate *gate)
{
    for (int i = 0; i < gate->guests; i++)
        cst_close(gate->guest[i].fd);
    free(gate->guest);
    gate->guest = NULL;
    gate->guests = gate->strangers = gate->room = 0;
    cst_close(gate->listener);
    gate->listener = -1;
}

int cst_gate_poll_count(const cst_gate *gate)
{
    return gate->guests + 1;
}

void cst_gate_poll_set(const cst_gate *gate, struct pollfd *out)
{
    out[0] = (struct pollfd){gate->full ? -1 : gate->listener, POLLIN, 0};
    for (int i = 0; i < gate->guests; i++)
        out[1 + i] = (struct pollfd){gate->guest[i].fd, POLLIN, 0};
}

/* Guests stay in the order in which they came. */
static void forget(cst_gate *gate, int i)
{
    gate->strangers -= !gate->guest[i].welcome;
    gate->guests--;
    memmove(&gate->guest[i], &gate->guest[i + 1], (size_t)(gate->guests - i) * sizeof gate->guest[0]);
}

static void turn_away(cst_gate *gate, int i, const char *reason)
{
    char text[CST_ADDR_TEXT];
    cst_log(CST_LOG_INFO, "turned away %s: %s", cst_socket_peer_text(gate->guest[i].fd, text), reason);
    cst_close(gate->guest[i].fd);
    forget(gate, i);
}

/* -1: none. */
static int oldest_stranger(const cst_gate *gate)
{
    for (int i = 0; i < gate->guests; i++)
        if (!gate->guest[i].welcome)
            return i;
    return -1;
}

static bool is_local_stranger(int fd)
{
    return cst_socket_own(fd).length == 0 && !cst_unix_same_user(fd);
}

static bool make_room(cst_gate *gate)
{
    if (gate->strangers == CST_GATE_STRANGERS)
        turn_away(gate, oldest_stranger(gate), "too many connections that say nothing");
    if (gate->guests < gate->room)
        return true;
    int room = gate->room ? 2 * gate->room : 16;
    cst_guest *grown = realloc(gate->guest, (size_t)room * sizeof *grown);
    if (!grown)
        return false;
    gate->guest = grown;
    gate->room = room;
    return true;
}

/* Without a descriptor for a newcomer: a guest that has said nothing for a while has to go; one that has just come may
 * stay, or two honest ones would turn each other out for ever, and one that is about to choose, since it gives its
 * descriptor back or takes its place. */
static bool can_wait(cst_gate *gate)
{
    int i = oldest_stranger(gate);
    if (i >= 0 &&
        cst_deadline_left(gate->guest[i].until, CST_GATE_PATIENCE_MS) <= CST_GATE_PATIENCE_MS - CST_GATE_CROWDED_MS) {
        turn_away(gate, i, "out of descriptors");
        return true;
    }
    gate->full = gate->guests > 0 || gate->patient;
    return gate->full;
}

/* Lets one connection in as the last guest; *admitted is 0 if none waits, or if there is no room for it now. */
static coset_status admit(cst_gate *gate, int *admitted, coset_error *why)
{
    int fd;
    coset_error own = COSET_ERROR_INIT;
    *admitted = 0;
    gate->full = false;
    do {
        coset_status status = cst_accept(gate->listener, &fd, &own);
        if (status == COSET_ERR_SYSTEM && cst_descriptors_exhausted(errno) && can_wait(gate))
            return COSET_OK;
        if (status)
            cst_error_copy(why, &own);
        if (status || fd < 0)
            return status;
        if (is_local_stranger(fd)) {
            cst_close(fd);
            fd = -1;
        }
    } while (fd < 0);
    if (!make_room(gate)) {
        cst_close(fd);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "out of memory for connections");
    }
    gate->guest[gate->guests++] = (cst_guest){.fd = fd, .until = cst_deadline_in(CST_GATE_PATIENCE_MS)};
    gate->strangers++;
    *admitted = 1;
    return COSET_OK;
}

/* Reads up to `bytes` bytes in all. False if the connection has ended. */
static bool read_more(cst_guest *g, uint8_t *into, size_t bytes)
{
    ssize_t n = recv(g->fd, into + g->got, bytes - g->got, 0);
    if (n > 0)
        g->got += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* A whole good hello: is it for what is let in here? */
static bool bid_welcome(cst_gate *gate, cst_guest *g)
{
    cst_hello hello;
    cst_hello_read(g->bytes, &hello);
    bool wanted = hello.purpose < 32 && gate->purposes >> hello.purpose & 1;
    cst_hello_answer(g->fd, wanted ? CST_WELCOME : CST_REFUSED_RANK);
    g->welcome = wanted;
    gate->strangers -= wanted;
    g->got = 0;
    return wanted;
}

/* Why guest i has to go; NULL: it may stay. */
static const char *hear_hello(cst_gate *gate, cst_guest *g)
{
    if (!read_more(g, g->bytes, CST_HELLO_BYTES))
        return "it closed the connection";
    switch (cst_hello_check(g->bytes, g->got, &gate->token)) {
    case CST_HELLO_GOOD: return bid_welcome(gate, g) ? NULL : "it has come for something else";
    case CST_HELLO_FOREIGN_TOKEN:
        cst_hello_answer(g->fd, CST_REFUSED_TOKEN);
        gate->foreign++;
        return "another job";
    case CST_HELLO_FOREIGN_VERSION:
        cst_hello_answer(g->fd, CST_REFUSED_VERSION);
        gate->foreign++;
        return "another wire version";
    case CST_HELLO_GARBAGE: return "not a coset process";
    case CST_HELLO_MORE: break;
    }
    return cst_deadline_passed(g->until) ? "it said nothing" : NULL;
}

static const char *hear_choice(cst_guest *g)
{
    if (!read_more(g, g->choice, CST_CHOICE_BYTES))
        return "it has taken another way";
    return cst_hello_is_choice(g->choice, g->got) ? NULL : "it does not keep to the protocol";
}

/* Listens to the guests from number `first` on; true if one of them leaves as chosen. */
static bool hear(cst_gate *gate, int first, int *fd, cst_hello *hello)
{
    for (int i = first; i < gate->guests;) {
        cst_guest *g = &gate->guest[i];
        const char *reason = g->welcome ? NULL : hear_hello(gate, g);
        if (!reason && g->welcome)
            reason = hear_choice(g);
        if (reason) {
            turn_away(gate, i, reason);
        } else if (g->welcome && g->got == CST_CHOICE_BYTES) {
            *fd = g->fd;
            cst_hello_read(g->bytes, hello);
            forget(gate, i);
            return true;
        } else {
            i++;
        }
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
        /* the newcomer's hello is usually there already */
        first = gate->guests - admitted;
    }
    return COSET_OK;
}
