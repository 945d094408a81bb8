/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/frame.h"

#include <stdlib.h>
#include <string.h>

/* Frames under way from all peers together without MPI having to keep any: a few per neighbour of the schedules. */
enum { RING = 16, FRAME_TAG = 0 };
#define FRAME_BYTES (sizeof(cst_mpi_head) + CST_MPI_EAGER)

struct cst_frame {
    cst_frame *next;
    MPI_Request request;
    int peer;
    cst_mpi_head head; /* and the payload behind it: sent as one */
    unsigned char data[];
};
_Static_assert(offsetof(cst_frame, data) == offsetof(cst_frame, head) + sizeof(cst_mpi_head), "head and data touch");

static unsigned char *buffer(const cst_frames *f, unsigned i)
{
    return f->ring + i * FRAME_BYTES;
}

static int post(cst_frames *f, unsigned i)
{
    return MPI_Irecv(buffer(f, i), (int)FRAME_BYTES, MPI_BYTE, MPI_ANY_SOURCE, FRAME_TAG, f->comm, &f->posted[i]);
}

int cst_frames_open(cst_frames *f, MPI_Comm comm)
{
    *f = (cst_frames){.comm = comm};
    f->last = &f->first;
    f->ring = malloc(RING * FRAME_BYTES);
    f->posted = malloc(RING * sizeof *f->posted);
    pthread_mutex_init(&f->lock, NULL);
    if (!f->ring || !f->posted)
        return MPI_ERR_NO_MEM;
    for (unsigned i = 0; i < RING; i++)
        f->posted[i] = MPI_REQUEST_NULL;
    MPI_Comm_size(comm, &f->size);
    int code = MPI_SUCCESS;
    for (unsigned i = 0; i < RING && code == MPI_SUCCESS; i++)
        code = post(f, i);
    return code;
}

void cst_frames_close(cst_frames *f)
{
    for (unsigned i = 0; f->posted && i < RING; i++)
        if (f->posted[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&f->posted[i]);
            MPI_Wait(&f->posted[i], MPI_STATUS_IGNORE);
        }
    while (f->first) {
        cst_frame *frame = f->first;
        f->first = frame->next;
        MPI_Request_free(&frame->request); /* its memory stays: MPI may still read it */
    }
    f->last = &f->first;
    free(f->ring);
    free(f->posted);
    f->ring = NULL;
    f->posted = NULL;
    pthread_mutex_destroy(&f->lock);
}

int cst_frames_send(cst_frames *f, int peer, const cst_mpi_head *head, cst_cursor *from, size_t bytes)
{
    cst_frame *frame = malloc(sizeof *frame + bytes);
    if (!frame)
        return MPI_ERR_NO_MEM;
    frame->next = NULL;
    frame->peer = peer;
    frame->head = *head;
    if (bytes)
        cst_cursor_get(from, frame->data, bytes);
    pthread_mutex_lock(&f->lock);
    int code =
        MPI_Isend(&frame->head, (int)(sizeof frame->head + bytes), MPI_BYTE, peer, FRAME_TAG, f->comm, &frame->request);
    if (code == MPI_SUCCESS) {
        *f->last = frame;
        f->last = &frame->next;
        f->wire_sent += sizeof frame->head + bytes;
    }
    pthread_mutex_unlock(&f->lock);
    if (code != MPI_SUCCESS)
        free(frame);
    return code;
}

int cst_frames_reap(cst_frames *f, int *peer)
{
    int code = MPI_SUCCESS, done = 1;
    pthread_mutex_lock(&f->lock);
    while (f->first && code == MPI_SUCCESS) {
        cst_frame *frame = f->first;
        *peer = frame->peer;
        code = MPI_Test(&frame->request, &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            break;
        f->first = frame->next;
        if (!f->first)
            f->last = &f->first;
        free(frame);
    }
    pthread_mutex_unlock(&f->lock);
    return code;
}

bool cst_frames_sending(cst_frames *f)
{
    pthread_mutex_lock(&f->lock);
    bool some = f->first != NULL;
    pthread_mutex_unlock(&f->lock);
    return some;
}

int cst_frames_next(cst_frames *f, cst_arrived *out, int *flag)
{
    MPI_Status status = {.MPI_SOURCE = -1};
    int count = 0;
    *flag = 0;
    int code = MPI_Test(&f->posted[f->next], flag, &status);
    out->peer = status.MPI_SOURCE >= 0 && status.MPI_SOURCE < f->size ? status.MPI_SOURCE : -1;
    if (code != MPI_SUCCESS || !*flag)
        return code;
    MPI_Get_count(&status, MPI_BYTE, &count);
    bool whole = count >= (int)sizeof(cst_mpi_head);
    const unsigned char *at = buffer(f, f->next);
    out->head = whole ? (const cst_mpi_head *)at : NULL;
    out->data = at + sizeof(cst_mpi_head);
    out->bytes = whole ? (size_t)count - sizeof(cst_mpi_head) : 0;
    f->wire_received += (size_t)count;
    return MPI_SUCCESS;
}

int cst_frames_release(cst_frames *f)
{
    unsigned i = f->next;
    f->next = (i + 1) % RING;
    return post(f, i);
}
