/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the short messages by which two ends of a communicator of MPI's agree about the long ones. A frame is a head
 * and up to CST_MPI_EAGER bytes; frames of one pair arrive in the order in which they were sent. They all travel with
 * one tag, and are received into a ring of buffers posted in advance, from whatever rank they come.
 *
 * Sending may be done by several threads (where MPI allows it); the rest is the driver's.
 */
#ifndef CST_TRANSPORT_MPI_FRAME_H
#define CST_TRANSPORT_MPI_FRAME_H
#include "transport/iov.h"

#include <coset_transport.h>
#include <mpi.h>
#include <pthread.h>

/* Payload that travels in the frame itself, copied on both sides: 64 KiB over loopback take 67 us so, and 112 when they are
 * asked for (MPICH; Open MPI, which asks for itself from 64 KiB on, 100 either way). */
#define CST_MPI_EAGER ((size_t)64 << 10)

typedef enum {
    CST_FRAME_EAGER = 1, /* a message with its payload */
    CST_FRAME_ASK,       /* a message whose payload waits for READY; `id` names it on the sender's side */
    CST_FRAME_READY,     /* the payload of `id` may come, with MPI tag `tag`; tag 0: it is not wanted */
    CST_FRAME_WITHDRAWN, /* the message `id` has been cancelled */
    CST_FRAME_CREDIT,    /* nothing but credit */
    CST_FRAME_NOTICE     /* a coset_notice; for a goodbye `op` is the number of payloads that this sender has sent */
} cst_frame_kind;

typedef struct {
    uint32_t kind;   /* cst_frame_kind */
    uint32_t credit; /* so many bytes of the receiver's eager frames have been taken in */
    uint32_t tag, id;
    uint64_t op, bytes, sum;
    coset_entry entry;
} cst_mpi_head;

typedef struct cst_frame cst_frame;
typedef struct {
    MPI_Comm comm;
    int size;
    unsigned char *ring;      /* CST_MPI_RING buffers */
    MPI_Request *posted;      /* one each */
    unsigned next;            /* the buffer that is filled next */
    pthread_mutex_t lock;     /* of what follows */
    cst_frame *first, **last; /* being sent, oldest first */
    uint64_t wire_sent;
    uint64_t wire_received; /* the driver's */
} cst_frames;

/* A frame that has arrived; what it points to is valid until cst_frames_release. */
typedef struct {
    int peer;
    const cst_mpi_head *head;
    const unsigned char *data;
    size_t bytes; /* of data */
} cst_arrived;

/* Posts the receives. Returns an MPI error code. */
int cst_frames_open(cst_frames *f, MPI_Comm comm);
/* Takes the receives back and forgets what is still being sent. */
void cst_frames_close(cst_frames *f);

/* Any thread. Copies head and payload (`from` may be NULL if head->bytes of payload do not ride along). */
int cst_frames_send(cst_frames *f, int peer, const cst_mpi_head *head, cst_cursor *from, size_t bytes);
/* Frees what has been sent. Returns an MPI error code, and whose frame it was in *peer. */
int cst_frames_reap(cst_frames *f, int *peer);
/* Is anything still being sent? */
bool cst_frames_sending(cst_frames *f);
/* The next frame: *flag tells whether there is one. A frame too short for its head has head == NULL. On an error *peer
 * of `out` is the rank that it concerns, or -1. */
int cst_frames_next(cst_frames *f, cst_arrived *out, int *flag);
/* Posts the buffer of that frame again. */
int cst_frames_release(cst_frames *f);
#endif
