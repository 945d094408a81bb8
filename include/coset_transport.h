/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport contract, version COSET_TRANSPORT_ABI: what carries bytes between the ranks of one communicator.
 *
 * A transport moves bytes and never sees a datatype, an operator or an algorithm. One instance is one rank's end of
 * one communicator. The library calls an instance from one thread at a time (whoever drives the communicator), with
 * two exceptions that may come from any thread at any time: `announce` and `wake`.
 *
 * No function may block unless it says so. Errors are returned, never printed; a transport never exits and installs
 * no signal handler. Every descriptor is close-on-exec and registered with the fork handler, so that a forked child
 * cannot keep a connection alive in the peers' eyes.
 *
 * tests/transport/conformance.c runs every promise below over every transport.
 */
#ifndef COSET_TRANSPORT_H
#define COSET_TRANSPORT_H
#include <coset.h>
#include <sys/uio.h>

#define COSET_TRANSPORT_ABI 1u

typedef struct coset_transport coset_transport;

/* 32 opaque bytes that describe an operation (src/comm/entry.h). They ride on every message of the operation, so that
 * ranks which disagree notice it at the first byte they exchange. */
typedef struct { uint8_t bytes[32] __attribute__((aligned(8))); } coset_entry;

/* One message under way. The caller owns the memory (and iov and what it points to) and leaves it in place until
 * status is no longer COSET_IN_PROGRESS. */
typedef struct coset_msg {
    /* Set by the caller. Messages match by (peer, op, tag); the key is unique among the messages of one operation. */
    int peer;                /* 0..size-1, not the own rank */
    uint32_t tag;
    uint64_t op;
    const coset_entry *entry;
    const struct iovec *iov;
    int iovcnt;
    /* Set by the transport: COSET_IN_PROGRESS from isend/irecv until, inside progress(), the outcome. A send is done when
     * its memory may be reused. OK; PEER: the peer is gone; MISMATCH: the arriving message has another size or entry;
     * CORRUPT: a check failed; ABORTED: cancelled. */
    coset_status status;
    /* The transport's own. */
    struct coset_msg *next;
    uint64_t priv[4];
} coset_msg;

/* Where a buffer is, in terms a peer can use. kind 0: nowhere that a peer could map. */
typedef struct {
    uint32_t kind;    /* COSET_LOC_NONE, _SEGMENT (offset within a segment of coset_alloc), _ADDRESS (same address space),
                         _PRIVATE (reachable by get and put only: offset is the address in the owner's process) */
    uint32_t segment;
    uint64_t offset;
} coset_location;
enum { COSET_LOC_NONE = 0, COSET_LOC_SEGMENT = 1, COSET_LOC_ADDRESS = 2, COSET_LOC_PRIVATE = 3 };

/* Notices: short facts about the group, apart from the data. */
typedef enum {
    COSET_NOTICE_DEATH = 1,   /* `about` died, or its host fell silent */
    COSET_NOTICE_ABORT = 2,   /* `about` called abort; text is its reason */
    COSET_NOTICE_MISMATCH = 3,/* `about` found that ranks disagree; text says how */
    COSET_NOTICE_GOODBYE = 4, /* `about` destroyed its communicator in good order: not a death */
    COSET_NOTICE_LATE = 5     /* `about` gave up waiting; text says for whom */
} coset_notice_kind;
typedef struct {
    coset_notice_kind kind;
    int about;                /* the rank the notice is about */
    coset_status status;      /* the status that ends pending operations, COSET_OK for a goodbye */
    int peer;                 /* the rank that is the cause, -1 if none */
    uint64_t op;
    char text[192];           /* zero-terminated */
} coset_notice;

/* Capabilities; constant after create. */
enum {
    COSET_CAN_CONTROL = 1u << 0,  /* control(): ranks share zeroed words, on which flags of src/base/flag.h work */
    COSET_CAN_MAP = 1u << 1,      /* alloc, locate, map: memory of coset_alloc is mapped in every rank */
    COSET_CAN_MAP_ANY = 1u << 2,  /* map reaches any memory of the peer (one address space) */
    COSET_CAN_GET_PUT = 1u << 3,  /* get and put reach private memory of the peer (process_vm_readv and _writev) */
    COSET_CAN_SLEEP = 1u << 4,    /* fd() is pollable and arm() works; otherwise idle() does the sleeping */
    COSET_PREFERS_GET_PUT = 1u << 5 /* with CAN_GET_PUT: the user asked for it, whatever the size */
};
typedef struct {
    size_t struct_size;
    uint32_t flags;
    size_t segment_bytes;  /* size of message pieces at which this transport is fastest (measured) */
    size_t max_message;    /* largest message; the library cuts longer ones. 0: no limit */
    int spin;              /* polls that pay before sleeping in idle() */
} coset_transport_caps;

typedef struct {
    uint64_t sent_bytes, received_bytes;           /* payload */
    uint64_t wire_sent_bytes, wire_received_bytes; /* with headers */
} coset_transport_counters;

/* Given to create; the pointers inside live as long as the instance. */
typedef struct {
    size_t struct_size;
    int late_ms, dead_ms, checksum, progress;
    size_t control_bytes;   /* size of each rank's control area */
    const char *const *host;/* host identity of each rank (topo), size entries */
    uint64_t job;           /* the same random number on all ranks: names sockets and segments, and is the token */
    /* Called inside progress() for the header of every message that arrives, whether its receive is posted or not. */
    void (*on_entry)(void *ctx, int peer, uint64_t op, const coset_entry *entry);
    void *ctx;
    const char *address; /* this rank's address on the way to rank 0, if the bootstrap knows it; else NULL or "" */
    int core_each; /* 1: each rank of this host can have a core of its own, so that who waits may spin; all of them agree */
} coset_transport_config;

typedef struct coset_transport_ops {
    size_t struct_size;
    uint32_t abi;      /* COSET_TRANSPORT_ABI */
    const char *name;

    /* Is it usable on this machine? Returns OK, or UNSUPPORTED with one line in why. */
    coset_status (*probe)(char *why, size_t why_bytes);

    /* Collective over the oob; blocks, at most config->late_ms. */
    coset_status (*create)(const coset_oob *oob, const coset_transport_config *config, coset_transport **out, coset_error *why);
    /* Says goodbye, waits (at most about 1 s) until peers have left its memory, frees everything. Pending messages must
     * have been cancelled. Never fails. */
    void (*destroy)(coset_transport *t);

    const coset_transport_caps *(*caps)(const coset_transport *t);
    void (*counters)(const coset_transport *t, coset_transport_counters *out);

    /* Start a message. PEER at once if the peer is known to be gone (msg->status the same). A receive may be posted
     * before or after its message arrives; what arrives early is kept (bounded per peer; beyond it the sender waits). */
    coset_status (*isend)(coset_transport *t, coset_msg *msg);
    coset_status (*irecv)(coset_transport *t, coset_msg *msg);
    /* Ends a message that has not completed, with COSET_ERR_ABORTED; afterwards the transport touches neither it nor its memory. */
    void (*cancel)(coset_transport *t, coset_msg *msg);
    /* Moves whatever can be moved. Returns OK if something moved, IN_PROGRESS if nothing did. */
    coset_status (*progress)(coset_transport *t);
    /* Blocks until something may have changed (a message, a notice, wake), at most timeout_ms. May return early. */
    void (*idle)(coset_transport *t, int timeout_ms);
    /* Any thread: makes a running or the next idle() return. */
    void (*wake)(coset_transport *t);
    /* With CAN_SLEEP: a descriptor readable when progress() has work; arm() after progress() returned IN_PROGRESS and
     * before polling: returns IN_PROGRESS if it is safe to sleep, OK if there is work already. Else fd() is -1. */
    int (*fd)(const coset_transport *t);
    coset_status (*arm)(coset_transport *t);

    /* Notices. announce: any thread, never blocks, to every peer that lives, best effort. poll_notice: the next one
     * that arrived (deaths that the transport itself saw included); returns 1 and fills *out, or 0. The survivor that
     * sees a death passes it on to all others by itself. */
    coset_status (*announce)(coset_transport *t, const coset_notice *notice);
    int (*poll_notice)(coset_transport *t, coset_notice *out);

    /* CAN_CONTROL: control area of `rank` (config->control_bytes, zeroed at create, 128-byte aligned), in this process. */
    void *(*control)(const coset_transport *t, int rank);

    /* CAN_MAP. alloc and release are collective over the oob given (made by the library from messages), blocking. */
    coset_status (*alloc)(coset_transport *t, const coset_oob *oob, size_t bytes, void **ptr, coset_error *why);
    coset_status (*release)(coset_transport *t, const coset_oob *oob, void *ptr, coset_error *why);
    /* Where [ptr, ptr+bytes) is. Cheap (tens of nanoseconds): on the path of every operation. */
    coset_location (*locate)(const coset_transport *t, const void *ptr, size_t bytes);
    /* A pointer through which this process reads and writes the peer's memory at loc, or NULL (out of bounds included). */
    void *(*map)(coset_transport *t, int peer, const coset_location *loc, size_t bytes);
    /* CAN_GET_PUT: copies from or to the peer's private memory; blocking, no help of the peer needed. PEER, SYSTEM. */
    coset_status (*get)(coset_transport *t, int peer, const coset_location *from, size_t offset, void *to, size_t bytes);
    coset_status (*put)(coset_transport *t, int peer, const coset_location *to, size_t offset, const void *from, size_t bytes);
} coset_transport_ops;

/* First member of every instance. */
struct coset_transport {
    const coset_transport_ops *ops;
    int rank, size;
};
#endif
