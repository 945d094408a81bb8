/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over data connections: the message part of the contract.
 *
 * Each peer has one or more links (connections). A message travels whole over one of them, in turn. Outgoing: a list
 * per link, gathered into as few system calls as fit. Incoming: a link reads a head, finds the posted receive with
 * its (op, tag), and scatters the payload straight into the receiver's memory.
 *
 * What nobody has posted a receive for yet is kept if it is small, up to CST_EARLY_BYTES per peer. Else the link is
 * held: it is left in the kernel, so that the sender waits, and costs no copy when the receive comes. But a held link
 * also holds up what is behind. So when nothing has moved for CST_QUIET_TURNS, and a receive from that peer waits,
 * the held message is kept after all, whatever its size: what is waited for may be behind it.
 *
 * Not thread-safe: the driver calls. No function blocks.
 */
#ifndef CST_TRANSPORT_TCP_ENGINE_H
#define CST_TRANSPORT_TCP_ENGINE_H
#include "base/hash.h"
#include "transport/iov.h"
#include "transport/tcp/frame.h"

#include <coset_transport.h>
#include <stdbool.h>

/* Early messages kept for a peer, with their overhead, and the largest of them. */
#define CST_EARLY_BYTES   (256u << 10)
#define CST_EARLY_MESSAGE (64u << 10)
#define CST_QUIET_TURNS   16
/* Memory for a kept segment is used again: fresh memory of that size costs more than the copy. */
#define CST_SPARE_BYTES (256u << 10)
#define CST_SPARES      8
/* Longest message. The library cuts longer ones; a head that claims more is nonsense. */
#define CST_MESSAGE_BYTES (64u << 20)
/* Read ahead: enough for several small messages in one call, little enough to be copied. */
#define CST_STAGE_BYTES 4096

typedef struct cst_early cst_early;
typedef struct cst_link cst_link;

/* What a link is reading. HELD: a head whose payload has no place to go. */
typedef enum { CST_IN_HEAD, CST_IN_BODY, CST_IN_TAIL, CST_IN_HELD } cst_in_state;

typedef struct {
    cst_in_state state;
    size_t got; /* of the head or tail */
    uint8_t part[CST_HEAD_BYTES];
    cst_head head;
    uint64_t left;     /* of the payload */
    coset_msg *msg;    /* where the payload goes: a receive, ... */
    cst_early *early;  /* ... or a kept message; neither: it is thrown away */
    cst_cursor cursor; /* in msg */
    cst_hash hash;
    size_t stage_from, stage_to;
    uint8_t stage[CST_STAGE_BYTES];
} cst_incoming;

/* What is still owed to the peer of a message that was cancelled half-way: the ends of its head and tail as they are,
 * and filling for its payload. */
typedef struct {
    size_t head_left, tail_left;
    uint64_t filling;
    uint8_t head[CST_HEAD_BYTES], tail[CST_TAIL_BYTES];
} cst_debt;

typedef struct {
    coset_msg *first, **last;
    cst_debt debt;
} cst_outgoing;

/* One connection. */
struct cst_link {
    int fd; /* -1: closed */
    int peer;
    bool readable, writable; /* as far as is known; edges come from epoll */
    bool hung_up;            /* the end is in sight: read until it is reached */
    bool ended;              /* nothing more can be read */
    bool in_listed, out_listed;
    cst_link *next_in, *next_out;
    cst_incoming in;
    cst_outgoing out;
};

typedef struct {
    cst_link *links; /* [sockets] */
    unsigned turn;   /* the link for the next message */
    int open;        /* links that have not ended */
    coset_msg *posted, **posted_last;
    cst_early *early, **early_last;
    size_t early_bytes;
    bool closed; /* everything with it has been ended */
} cst_tcp_peer;

/* What the engine reports: a peer's link that has ended, or has carried nonsense. */
typedef struct {
    void *ctx;
    void (*link_ended)(void *ctx, int peer);
    void (*nonsense)(void *ctx, int peer, const char *text);
} cst_engine_events;

typedef struct {
    int rank, size, sockets;
    bool checksum;
    int epoll;
    cst_engine_events events;
    void (*on_entry)(void *ctx, int peer, uint64_t op, const coset_entry *entry);
    void *on_entry_ctx;
    cst_tcp_peer *peers;
    cst_link *links;              /* [size * sockets] */
    cst_link *in_list, **in_last; /* links to be read, and to be written, in this order */
    cst_link *out_list, **out_last;
    coset_msg *done, **done_last; /* messages whose outcome (priv[1]) is told at the next progress */
    coset_transport_counters counters;
    bool moved;
    int held;         /* links that are held */
    int quiet;        /* turns since something moved */
    cst_early *spare; /* memory of kept messages, for the next ones */
    int spares;
    uint8_t *scrap; /* where unwanted payload goes, CST_SCRAP_BYTES */
} cst_engine;
#define CST_SCRAP_BYTES (64u << 10)

/* fds[size * sockets]: taken over on success. */
coset_status cst_engine_open(cst_engine *e, int *fds, coset_error *why);
void cst_engine_close(cst_engine *e);

/* Arguments have been checked, `bytes` is the message's length; the peer is not closed. */
void cst_engine_send(cst_engine *e, coset_msg *msg, size_t bytes);
void cst_engine_receive(cst_engine *e, coset_msg *msg, size_t bytes);
void cst_engine_cancel(cst_engine *e, coset_msg *msg);
/* Takes in what epoll says, waiting at most timeout_ms. Returns how many events there were; *other tells whether an
 * event of the owner's (data.ptr NULL) was among them. */
int cst_engine_poll(cst_engine *e, int timeout_ms, bool *other);
/* Instead of asking epoll: takes the links on which something is waited for as readable, if they are few. False if
 * epoll has to be asked. */
bool cst_engine_try_links(cst_engine *e);
/* Moves what can be moved; e->moved tells whether anything was. */
void cst_engine_move(cst_engine *e);
/* The driver is about to sleep: are there held links before it which a waiting receive may need to have read? Then the
 * next cst_engine_move reads them. */
bool cst_engine_release_held(cst_engine *e);
bool cst_engine_has_work(const cst_engine *e);
/* Reads what the peer's links still have, to their end if they have one. Was there anything, or is there something whose
 * receive has not been posted? Then more may be behind it. */
bool cst_engine_drain(cst_engine *e, int peer);
/* Ends the sends to a peer, and its receives too, with `status`; with both its links are closed. Inside progress. */
void cst_engine_end_sends(cst_engine *e, int peer, coset_status status);
void cst_engine_end_peer(cst_engine *e, int peer, coset_status status);
/* Has a message with this key come, wholly or in part, or can one still come? */
bool cst_engine_may_arrive(const cst_engine *e, int peer, uint64_t op, uint32_t tag);

/* -------- between in.c, out.c and engine.c -------- */

/* Where a message is, in priv[0] beside the number of its link. The other words: priv[1] bytes sent, head and tail
 * included (in the done list: the outcome); priv[2] payload bytes; priv[3] its checksum when it is sent. */
enum { CST_AT_NOWHERE, CST_AT_POSTED, CST_AT_LINK_IN, CST_AT_LINK_OUT, CST_AT_DONE };
static inline void cst_msg_at(coset_msg *msg, int where, int link)
{
    msg->priv[0] = (uint64_t)where | (uint64_t)link << 8;
}
static inline int cst_msg_where(const coset_msg *msg)
{
    return (int)(msg->priv[0] & 0xff);
}
static inline int cst_msg_link(const coset_msg *msg)
{
    return (int)(msg->priv[0] >> 8);
}

void cst_tcp_append(coset_msg **last[], coset_msg *msg);
/* Takes msg out of the list; it must be in it. */
void cst_tcp_remove(coset_msg **first, coset_msg **last[], coset_msg *msg);

void cst_link_list_in(cst_engine *e, cst_link *l);
void cst_link_list_out(cst_engine *e, cst_link *l);
/* Nothing more can be read from it. */
void cst_link_end(cst_engine *e, cst_link *l);
/* Gives msg its outcome (inside progress). */
void cst_tcp_finish(coset_msg *msg, coset_status status);

void cst_link_read(cst_engine *e, cst_link *l);
void cst_link_write(cst_engine *e, cst_link *l);

/* A message for which nobody has posted a receive. `got` bytes of it are in data. */
struct cst_early {
    cst_early *next;
    cst_head head;
    uint64_t got;
    cst_link *link; /* that reads it still; NULL: whole */
    bool reusable;  /* has room for CST_SPARE_BYTES */
    coset_status status;
    uint8_t data[];
};
cst_early *cst_early_find(const cst_tcp_peer *p, uint64_t op, uint32_t tag);
void cst_early_drop(cst_engine *e, cst_tcp_peer *p, cst_early *early);
void cst_early_free_spares(cst_engine *e);
/* Is the message the one that the receive expects? */
bool cst_head_suits(const cst_head *head, const coset_msg *msg);
/* A receive for a message of which a part or all is kept. */
void cst_early_claim(cst_engine *e, cst_early *early, coset_msg *msg);
/* The receive is cancelled: what is still coming of its message is thrown away. */
void cst_link_forget_msg(cst_link *l);
#endif
