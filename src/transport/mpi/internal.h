/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of the engine: engine.c (peers, turns, the end), send.c, receive.c. */
#ifndef CST_TRANSPORT_MPI_INTERNAL_H
#define CST_TRANSPORT_MPI_INTERNAL_H
#include "transport/mpi/engine.h"

/* A message whose receive has not been posted: its head, and its payload if that rode along. */
struct cst_mpi_early {
    cst_mpi_early *next;
    cst_mpi_head head;
    unsigned char data[];
};

/* Where a message is, in priv[0]. priv[1]: its number (asking), its place (flying), its outcome (done); priv[2]: bytes;
 * priv[3]: checksum. */
enum { CST_MPI_NOWHERE, CST_MPI_POSTED, CST_MPI_ASKING, CST_MPI_FLYING, CST_MPI_DONE };

void cst_mpi_append(coset_msg ***last, coset_msg *msg, int where);
/* Takes msg out of the list; it must be in it. */
void cst_mpi_take_out(coset_msg **first, coset_msg ***last, const coset_msg *msg);
/* The outcome is known; cst_mpi_engine_deliver tells it. */
void cst_mpi_finish(cst_mpi_engine *e, coset_msg *msg, coset_status outcome);
void cst_mpi_drop_early(cst_mpi_peer *p, cst_mpi_early *early);
uint64_t cst_mpi_checksum(const coset_msg *msg);

/* The peer can no longer be relied upon: its messages end, everybody is told. Once per peer. */
void cst_mpi_lose(cst_mpi_engine *e, int peer, coset_status status, const char *text);
/* MPI has refused something that concerns this peer (-1: nobody in particular). */
void cst_mpi_failed(cst_mpi_engine *e, int peer, int code);

/* Fills in the credit. */
void cst_mpi_send_frame(cst_mpi_engine *e, int peer, cst_mpi_head *head, cst_cursor *from, size_t bytes);
/* READY has come: sends the payload, or an empty one for a message that has been cancelled. */
void cst_mpi_answer(cst_mpi_engine *e, int peer, const cst_mpi_head *head);
/* EAGER or ASK has come; WITHDRAWN has come. */
void cst_mpi_message_came(cst_mpi_engine *e, const cst_arrived *a);
void cst_mpi_withdrawn(cst_mpi_engine *e, int peer, uint32_t id);
/* A receive has been taken back, but its sender has been told READY and will send: somewhere that has to go. */
void cst_mpi_drain(cst_mpi_engine *e, cst_flight flight);
/* OK, or CORRUPT if checksums are on and this one is wrong. */
coset_status cst_mpi_verified(const cst_mpi_engine *e, const coset_msg *msg, uint64_t sum);
#endif
