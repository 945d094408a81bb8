/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Payloads under way: what MPI moves between the memory of the two users, without a copy of ours. Tested all at once.
 */
#ifndef CST_TRANSPORT_MPI_FLIGHT_H
#define CST_TRANSPORT_MPI_FLIGHT_H
#include <coset_transport.h>
#include <mpi.h>
#include <stdbool.h>

typedef struct {
    coset_msg *msg; /* NULL: nobody waits for it any more */
    void *scratch;  /* where a payload goes that nobody wants; freed with the flight */
    int peer;
    bool incoming;
    uint64_t number; /* incoming: which of this peer's payloads it is, 0 the first */
    size_t bytes;
    int tag;
} cst_flight;

/* How a flight ended. */
typedef struct {
    cst_flight flight;
    int code;       /* of MPI */
    bool cancelled; /* incoming: taken back before its payload came */
    size_t bytes;   /* incoming: that came */
} cst_landing;

typedef struct {
    MPI_Comm comm;
    MPI_Request *requests;
    cst_flight *flights;
    int *indices;
    MPI_Status *statuses;
    cst_landing *landings;
    int count, room;
} cst_flights;

void cst_flights_open(cst_flights *f, MPI_Comm comm);
void cst_flights_close(cst_flights *f);
/* Starts one from or to the pieces; on success it is in the list and msg->priv[1] is its place. */
int cst_flights_start(cst_flights *f, const cst_flight *flight, const struct iovec *iov, int iovcnt);
/* Takes those that have ended off the list. Returns how many; they are in f->landings until the next call. */
int cst_flights_test(cst_flights *f);
/* Takes back the receive at `place` if its payload has not begun to come; its landing tells. */
void cst_flights_cancel(cst_flights *f, int place);
#endif
