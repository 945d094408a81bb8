/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/flight.h"

#include <stdlib.h>
#include <string.h>

void cst_flights_open(cst_flights *f, MPI_Comm comm)
{
    *f = (cst_flights){.comm = comm};
}

void cst_flights_close(cst_flights *f)
{
    free(f->requests);
    free(f->flights);
    free(f->indices);
    free(f->statuses);
    free(f->landings);
    *f = (cst_flights){.comm = f->comm};
}

static void *grown(void *old, int room, size_t each)
{
    return realloc(old, (size_t)room * each);
}

static bool make_room(cst_flights *f)
{
    enum { FIRST_ROOM = 16 };
    if (f->count < f->room)
        return true;
    int room = f->room ? 2 * f->room : FIRST_ROOM;
    void *requests = grown(f->requests, room, sizeof *f->requests);
    f->requests = requests ? requests : f->requests;
    void *flights = grown(f->flights, room, sizeof *f->flights);
    f->flights = flights ? flights : f->flights;
    void *indices = grown(f->indices, room, sizeof *f->indices);
    f->indices = indices ? indices : f->indices;
    void *statuses = grown(f->statuses, room, sizeof *f->statuses);
    f->statuses = statuses ? statuses : f->statuses;
    void *landings = grown(f->landings, room, sizeof *f->landings);
    f->landings = landings ? landings : f->landings;
    bool good = requests && flights && indices && statuses && landings;
    if (good)
        f->room = room;
    return good;
}

/* The pieces as one datatype with absolute addresses. */
static int make_type(const struct iovec *iov, int iovcnt, MPI_Datatype *type)
{
    int *lengths = malloc((size_t)iovcnt * sizeof *lengths), n = 0, code = MPI_ERR_NO_MEM;
    MPI_Aint *places = malloc((size_t)iovcnt * sizeof *places);
    for (int i = 0; lengths && places && i < iovcnt; i++)
        if (iov[i].iov_len) {
            lengths[n] = (int)iov[i].iov_len;
            MPI_Get_address(iov[i].iov_base, &places[n++]);
        }
    if (lengths && places)
        code = MPI_Type_create_hindexed(n, lengths, places, MPI_BYTE, type);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(type);
    free(lengths);
    free(places);
    return code;
}

static int start(cst_flights *f, const cst_flight *flight, void *memory, int count, MPI_Datatype type)
{
    MPI_Request *request = &f->requests[f->count];
    if (flight->incoming)
        return MPI_Irecv(memory, count, type, flight->peer, flight->tag, f->comm, request);
    return MPI_Isend(memory, count, type, flight->peer, flight->tag, f->comm, request);
}

int cst_flights_start(cst_flights *f, const cst_flight *flight, const struct iovec *iov, int iovcnt)
{
    MPI_Datatype type;
    if (!make_room(f))
        return MPI_ERR_NO_MEM;
    int code;
    if (!flight->bytes) {
        code = start(f, flight, NULL, 0, MPI_BYTE);
    } else if (iovcnt == 1) {
        code = start(f, flight, iov->iov_base, (int)flight->bytes, MPI_BYTE);
    } else {
        code = make_type(iov, iovcnt, &type);
        if (code != MPI_SUCCESS)
            return code;
        code = start(f, flight, MPI_BOTTOM, 1, type);
        MPI_Type_free(&type); /* what uses it keeps it */
    }
    if (code != MPI_SUCCESS)
        return code;
    f->flights[f->count] = *flight;
    if (flight->msg)
        flight->msg->priv[1] = (uint64_t)f->count;
    f->count++;
    return MPI_SUCCESS;
}

/* Closes the gaps that requests which have ended leave. */
static void compact(cst_flights *f)
{
    int kept = 0;
    for (int i = 0; i < f->count; i++) {
        if (f->requests[i] == MPI_REQUEST_NULL)
            continue;
        f->requests[kept] = f->requests[i];
        f->flights[kept] = f->flights[i];
        if (f->flights[kept].msg)
            f->flights[kept].msg->priv[1] = (uint64_t)kept;
        kept++;
    }
    f->count = kept;
}

int cst_flights_test(cst_flights *f)
{
    int ended = 0;
    if (!f->count)
        return 0;
    int code = MPI_Testsome(f->count, f->requests, &ended, f->indices, f->statuses);
    if (ended == MPI_UNDEFINED || ended <= 0)
        return 0;
    for (int k = 0; k < ended; k++) {
        int place = f->indices[k], count = 0, cancelled = 0;
        cst_landing *l = &f->landings[k];
        l->flight = f->flights[place];
        l->code = code == MPI_ERR_IN_STATUS ? f->statuses[k].MPI_ERROR : code;
        if (l->flight.incoming && l->code == MPI_SUCCESS)
            MPI_Test_cancelled(&f->statuses[k], &cancelled);
        if (l->flight.incoming && l->code == MPI_SUCCESS && !cancelled)
            MPI_Get_count(&f->statuses[k], MPI_BYTE, &count);
        l->cancelled = cancelled;
        l->bytes = count > 0 ? (size_t)count : 0;
        f->requests[place] = MPI_REQUEST_NULL;
    }
    compact(f);
    return ended;
}

void cst_flights_cancel(cst_flights *f, int place)
{
    MPI_Cancel(&f->requests[place]);
}
