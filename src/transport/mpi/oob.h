/* SPDX-License-Identifier: Apache-2.0 */
/* The bootstrap primitive over a communicator of MPI's: an all-gather that gives up when its time has passed. */
#ifndef CST_TRANSPORT_MPI_OOB_H
#define CST_TRANSPORT_MPI_OOB_H
#include <coset.h>
#include <mpi.h>

typedef struct {
    MPI_Comm comm; /* used by nobody else; errors return */
    int spoiled;   /* an exchange did not complete: what it left behind may still arrive */
} cst_mpi_oob;

coset_oob cst_mpi_oob_make(cst_mpi_oob *o);
/* The communicator behind an oob of this kind, else MPI_COMM_NULL. */
MPI_Comm cst_mpi_oob_comm(const coset_oob *oob);
/* A duplicate of `comm`, on which errors return. Collective; gives up after timeout_ms. LATE, SYSTEM. */
coset_status cst_mpi_duplicate(MPI_Comm comm, int timeout_ms, MPI_Comm *copy, coset_error *why);
/* Fills *why with what MPI says about `code`. Returns COSET_ERR_SYSTEM. */
coset_status cst_mpi_fail(coset_error *why, int code, const char *what);
#endif
