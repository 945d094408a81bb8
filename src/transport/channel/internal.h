/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the channel share. */
#ifndef CST_TRANSPORT_CHANNEL_INTERNAL_H
#define CST_TRANSPORT_CHANNEL_INTERNAL_H
#include "transport/channel/channel.h"
#include "transport/iov.h"

/* Where a message is; in msg->priv[STAGE]. Each stage but the last two is a list. */
typedef enum {
    CST_MSG_ENDED = 0,
    CST_MSG_QUEUED,  /* send: waits for a cell, a slot or a block */
    CST_MSG_OFFERED, /* send: in a slot */
    CST_MSG_STREAM,  /* send: in a slot, going out through stage blocks */
    CST_MSG_POSTED,  /* receive: its message has not arrived */
    CST_MSG_INBOUND, /* receive: its message streams in */
    CST_MSG_MATCHED, /* receive: its message had arrived before; delivered by the next progress() */
    CST_MSG_FINISHED /* outcome known, to be told by the next progress() */
} cst_msg_stage;
enum { STAGE = 0, TOTAL = 1, AUX = 2, OUTCOME = 3 }; /* uses of msg->priv; AUX: slot, or bytes streamed */

typedef struct {
    coset_msg *first, **last;
} cst_msg_list;
void cst_msg_list_init(cst_msg_list *l);
void cst_msg_list_add(cst_msg_list *l, coset_msg *msg);
void cst_msg_list_put_back(cst_msg_list *l, coset_msg *msg); /* at the front */
void cst_msg_list_remove(cst_msg_list *l, coset_msg *msg);
coset_msg *cst_msg_list_take(cst_msg_list *l);

/* A message that has arrived and waits: for its receive, or (an offered one) for its data. */
typedef struct cst_arrival {
    struct cst_arrival *next;
    int peer;
    coset_msg *msg;    /* its receive, once known */
    uint64_t received; /* bytes that streamed in */
    cst_head head;
    unsigned char payload[]; /* of the cell: only what the kind uses */
} cst_arrival;

/* Kept per peer at most; beyond it the peer's ring is left full, and the peer waits. */
enum { CST_EARLY_LIMIT = 1024 };

typedef struct {
    cst_ring *out, *in;
    uint32_t produced, out_consumed; /* cells written to `out`; what the receiver had taken when last looked */
    uint32_t consumed;               /* cells taken from `in` */
    cst_msg_list queued, posted;
    cst_arrival *early, **early_last; /* without a receive */
    int early_count;
    cst_arrival *inbound; /* streaming in */
    coset_status gone;    /* OK while the peer lives */
    bool broken, broken_told;
} cst_peer;

/* A slot as its owner, the sender, remembers it. */
typedef struct {
    coset_msg *msg; /* NULL: free or retired */
    uint32_t generation;
    bool retired; /* given up: its receiver stopped in the middle of a copy */
} cst_offer;

struct cst_channel {
    int rank;
    cst_layout layout;
    cst_channel_backend be;
    char **areas;
    cst_peer *peers;
    cst_offer offers[CST_SLOTS];
    uint16_t active[CST_SLOTS], free_slots[CST_SLOTS]; /* slots in use, unordered; slots free, a stack */
    int active_count, free_count;
    int *block_reader; /* per stage block: the peer it was sent to, -1 when free as far as we know */
    uint32_t next_block;
    cst_msg_list finished;
    cst_arrival *matched, **matched_last;
    coset_transport_counters count;
};

/* The message's outcome, told now (inside progress) or by the next progress. */
void cst_msg_end(coset_msg *msg, coset_status status);
void cst_msg_finish(cst_channel *ch, coset_msg *msg, coset_status status);
void cst_peer_broken(cst_channel *ch, int peer, const char *what);
void cst_wake_peer(cst_channel *ch, int peer);

/* send.c: each returns whether anything moved. */
bool cst_send_queued(cst_channel *ch, int peer);
bool cst_send_offers(cst_channel *ch);
void cst_send_cancel(cst_channel *ch, coset_msg *msg);
void cst_send_gone(cst_channel *ch, int peer, coset_status status);
/* Could a queued message or an offer move on? */
bool cst_send_pending(const cst_channel *ch);

/* receive.c */
bool cst_receive_from(cst_channel *ch, int peer);
bool cst_receive_matched(cst_channel *ch);
void cst_receive_cancel(cst_channel *ch, coset_msg *msg);
void cst_receive_gone(cst_channel *ch, int peer, coset_status status);
bool cst_receive_pending(const cst_channel *ch);

/* deliver.c: the outcome of a message that has met its receive. */
typedef enum { CST_DELIVERED, CST_STREAMS, CST_WITHDRAWN } cst_delivery;
/* Copies the message described by head and payload into msg, or finds out that it is not the one expected. DELIVERED:
 * *status is the receive's outcome. STREAMS: the data will follow in stage blocks. WITHDRAWN: the sender took it back. */
cst_delivery cst_deliver(cst_channel *ch, int peer, const cst_head *head, const unsigned char *payload, coset_msg *msg,
                         coset_status *status);
/* Lets the sender go on, unread: its message met a receive that does not fit, or is dropped. */
void cst_discard(cst_channel *ch, int peer, const cst_head *head);
/* Gives a stage block of `peer` back to it; it may be asleep. */
void cst_block_free(cst_channel *ch, int peer, uint32_t block);
#endif
