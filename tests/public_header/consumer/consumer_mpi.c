/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest use of the installed library for MPI programs: without MPI_Init it says what is missing. */
#include <coset_mpi.h>

int main(void)
{
    coset_comm *comm;
    return coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm, NULL) != COSET_ERR_UNSUPPORTED;
}
