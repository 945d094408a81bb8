/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over MPI: the message part of the contract.
 *
 * A message of up to CST_MPI_EAGER bytes rides in a frame, as long as the peer has not more than CST_MPI_WINDOW bytes
 * of them to take in. Of any other only the head goes at first (ASK); when the receive for it is posted, the receiver
 * posts a receive of MPI's straight into the user's memory and says READY, and the sender sends from the user's memory.
 * So nothing arrives that has no place, a sender can withdraw a message until its receiver is ready for it, and what
 * arrives early is bounded by the window and a head for each message that the peer has under way.
 *
 * Every READY with a tag is answered by exactly one payload, an empty one if the message has been cancelled meanwhile;
 * so the payloads of a pair can be counted, and a goodbye says how many there were.
 *
 * Not thread-safe: the driver calls. No function but cancel blocks.
 */
#ifndef CST_TRANSPORT_MPI_ENGINE_H
#define CST_TRANSPORT_MPI_ENGINE_H
#include "transport/mpi/flight.h"
#include "transport/mpi/frame.h"
#include "transport/notices.h"

#include <stdatomic.h>

/* Frames that a peer may send before it hears that they have been taken in. */
#define CST_MPI_WINDOW ((uint32_t)512 << 10)
/* The largest message: MPI's counts are ints, and the library cuts what is longer. */
#define CST_MPI_MESSAGE_BYTES ((size_t)1 << 30)

typedef struct cst_mpi_early cst_mpi_early;
typedef struct {
    coset_msg *posted, **posted_last;   /* receives whose message has not come */
    coset_msg *asking, **asking_last;   /* sends that wait for READY */
    cst_mpi_early *early, **early_last; /* messages whose receive has not been posted */
    uint32_t next_id;
    uint32_t credit;       /* bytes of frames that may still be sent to it */
    uint32_t untold;       /* bytes of its frames taken in since it was told */
    uint64_t asked;        /* payloads that READY has asked of it */
    uint64_t answered;     /* payloads that have been sent to it */
    bool gone;             /* died, or said goodbye */
    _Atomic bool departed; /* said goodbye */
} cst_mpi_peer;

typedef struct {
    int rank, size;
    MPI_Comm comm;
    int most_tag;
    int checksum, dead_ms;
    bool moved;
    bool broken; /* frames can no longer be received */
    cst_frames frames;
    cst_flights flights;
    cst_mpi_peer *peers;
    coset_msg *done, **done_last; /* outcome known (priv[1]), status not set yet */
    cst_notices notices;          /* that arrived, or were found */
    coset_transport_counters counters;
    void (*on_entry)(void *ctx, int peer, uint64_t op, const coset_entry *entry);
    void *on_entry_ctx;
} cst_mpi_engine;

/* Takes the communicator over on success. */
coset_status cst_mpi_engine_open(cst_mpi_engine *e, MPI_Comm comm, coset_error *why);
/* Gives everything back to MPI, the communicator too. */
void cst_mpi_engine_close(cst_mpi_engine *e);

/* Arguments have been checked, `bytes` is the message's length; the peer is not gone (send). */
coset_status cst_mpi_engine_send(cst_mpi_engine *e, coset_msg *msg, size_t bytes);
coset_status cst_mpi_engine_receive(cst_mpi_engine *e, coset_msg *msg, size_t bytes);
/* Waits, at most dead_ms, until MPI has let go of the memory, if it is being moved at this moment. */
void cst_mpi_engine_cancel(cst_mpi_engine *e, coset_msg *msg);
/* Moves what can be moved; e->moved tells whether anything was. Sets no status. */
void cst_mpi_engine_move(cst_mpi_engine *e);
/* Gives the messages whose outcome is known their status. */
void cst_mpi_engine_deliver(cst_mpi_engine *e);
/* Any thread that may call MPI. */
void cst_mpi_engine_tell(cst_mpi_engine *e, const coset_notice *notice);
/* Nothing of this rank's is under way, and no peer can send to it any more. */
bool cst_mpi_engine_quiet(cst_mpi_engine *e);
#endif
