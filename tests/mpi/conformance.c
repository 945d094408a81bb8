/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of coset_transport.h over MPI, as ranks that mpirun has started.
 * usage: mpirun -n N conformance [PART OF A TEST'S NAME]
 */
#include "transport/conformance.h"
#include "transport/mpi/mpi.h"
#include "transport/mpi/oob.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) {
        printf("skipped: this MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 77;
    }
    cst_mpi_oob o = {.comm = MPI_COMM_NULL};
    if (cst_mpi_duplicate(MPI_COMM_WORLD, 20000, &o.comm, NULL))
        return 1;
    coset_oob oob = cst_mpi_oob_make(&o);
    conformance_here(&cst_transport_mpi, &oob, argc > 1 ? argv[1] : "");
    MPI_Finalize();
    return 0;
}
