/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/mpi/oob.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OOB_TAG = 1 };

coset_status cst_mpi_fail(coset_error *why, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return cst_fail(why, COSET_ERR_SYSTEM, -1, "%s: %.180s", what, text);
}

/* Nobody computes while a communicator is made: short sleeps leave the core to the ranks that are awaited. */
static void breathe(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

static int test_all(int count, MPI_Request *requests, int *done)
{
    int code = MPI_SUCCESS, one;
    *done = 1;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        code = MPI_Test(&requests[i], &one, MPI_STATUS_IGNORE);
        *done = *done && one;
    }
    return code;
}

static int test_until(int count, MPI_Request *requests, int timeout_ms, int *done)
{
    cst_deadline end = cst_deadline_in(timeout_ms);
    int code;
    while ((code = test_all(count, requests, done)) == MPI_SUCCESS && !*done && !cst_deadline_passed(end))
        breathe();
    return code;
}

/* What could not be completed: receives are taken back; sends keep their memory, which MPI may still read. */
static void give_up(int size, MPI_Request *requests)
{
    for (int i = 0; i < size; i++)
        if (requests[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&requests[i]);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    for (int i = size; i < 2 * size; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&requests[i]);
}

static coset_status allgather(void *ctx, const void *send, void *recv, size_t bytes, int timeout_ms)
{
    cst_mpi_oob *o = ctx;
    int rank, size, done = 0, code = MPI_SUCCESS;
    MPI_Comm_rank(o->comm, &rank);
    MPI_Comm_size(o->comm, &size);
    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    void *copy = malloc(bytes ? bytes : 1); /* outlives a give_up */
    if (!requests || !copy || o->spoiled) {
        free(requests);
        free(copy);
        return o->spoiled ? COSET_ERR_LATE : COSET_ERR_MEMORY;
    }
    memcpy(copy, send, bytes);
    memcpy((char *)recv + (size_t)rank * bytes, send, bytes);
    for (int i = 0; i < 2 * size; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int r = 0; r < size && code == MPI_SUCCESS; r++)
        if (r != rank)
            code = MPI_Irecv((char *)recv + (size_t)r * bytes, (int)bytes, MPI_BYTE, r, OOB_TAG, o->comm, &requests[r]);
    for (int r = 0; r < size && code == MPI_SUCCESS; r++)
        if (r != rank)
            code = MPI_Isend(copy, (int)bytes, MPI_BYTE, r, OOB_TAG, o->comm, &requests[size + r]);
    if (code == MPI_SUCCESS)
        code = test_until(2 * size, requests, timeout_ms, &done);
    if (done) {
        free(copy);
    } else {
        o->spoiled = 1;
        give_up(size, requests);
    }
    free(requests);
    if (code != MPI_SUCCESS)
        return COSET_ERR_SYSTEM;
    return done ? COSET_OK : COSET_ERR_LATE;
}

coset_oob cst_mpi_oob_make(cst_mpi_oob *o)
{
    coset_oob oob = {.struct_size = sizeof oob, .ctx = o, .allgather = allgather};
    MPI_Comm_rank(o->comm, &oob.rank);
    MPI_Comm_size(o->comm, &oob.size);
    return oob;
}

MPI_Comm cst_mpi_oob_comm(const coset_oob *oob)
{
    return oob->allgather == allgather ? ((cst_mpi_oob *)oob->ctx)->comm : MPI_COMM_NULL;
}

/* MPI writes the copy's handle when the last rank has come, be that after this function has given up: it lies on the
 * heap, and stays there then. */
coset_status cst_mpi_duplicate(MPI_Comm comm, int timeout_ms, MPI_Comm *copy, coset_error *why)
{
    int done = 0;
    MPI_Request request;
    MPI_Comm *made = malloc(sizeof *made);
    if (!made)
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory for a handle of MPI");
    int code = MPI_Comm_idup(comm, made, &request);
    if (code == MPI_SUCCESS)
        code = test_until(1, &request, timeout_ms, &done);
    if (code != MPI_SUCCESS)
        return cst_mpi_fail(why, code, "duplicating the communicator");
    if (!done)
        return cst_fail(why, COSET_ERR_LATE, -1,
                        "not all ranks of the MPI communicator have called coset_comm_from_mpi within %d ms",
                        timeout_ms);
    *copy = *made;
    free(made);
    MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN);
    return COSET_OK;
}
