/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coset for MPI programs: a communicator from a communicator of MPI's. Link with -lcoset-mpi-openmpi or
 * -lcoset-mpi-mpich (pkg-config and CMake know them by these names, with `mpi-openmpi` and `mpi-mpich` for
 * coset::...), whichever the program's own MPI is.
 *
 *     MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
 *     coset_comm *comm;
 *     coset_error why = COSET_ERROR_INIT;
 *     if (coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm, &why)) { fprintf(stderr, "%s\n", why.text); ... }
 *     coset_allreduce(grad, grad, n, COSET_F32, COSET_AVG, comm);
 *     coset_comm_destroy(comm);
 *     MPI_Finalize();
 *
 * Between hosts MPI carries the bytes, over whatever network it knows. Inside a host ranks share memory as they do
 * without MPI: when all ranks are on one host, and in the parts of an operation that stay inside one.
 */
#ifndef COSET_MPI_H
#define COSET_MPI_H
#include <coset.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* MPI_Comm differs between MPIs. The name that the linker sees says which one is meant, so that a program and a library
 * of different MPIs do not link, instead of crashing. */
#if defined(OPEN_MPI)
#define coset_comm_from_mpi coset_comm_from_openmpi
#else
#define coset_comm_from_mpi coset_comm_from_mpich
#endif

/* A communicator of the ranks of `mpi`, in the same order. Collective over `mpi`; blocks until all its ranks have come,
 * or late_ms has passed. *comm is written only on success; `why` may be NULL, and is filled on failure.
 *
 * Ownership. `mpi` is duplicated, and may be used and freed as if nothing had been done with it; errors while it is
 * duplicated go to its own error handler, later ones become errors of *comm. Every communicator made here, or from one
 * by coset_comm_split or _shrink, has to be destroyed before MPI_Finalize. What has been sent to a rank that left is
 * taken in by later calls of this library and by MPI_Finalize, which waits a second for it at most.
 *
 * Options as for coset_comm_create_env; NULL is all defaults. transport NULL (and no COSET_TRANSPORT): "shm" when all
 * ranks are on one host, "mpi" otherwise. Another name is taken as it is, with MPI used to meet only.
 *
 * Threads. Over "mpi" the calls of this library call MPI, from the threads that they are made on and from a progress
 * thread: that needs MPI_THREAD_MULTIPLE. With MPI_THREAD_FUNNELED or less set options.progress =
 * COSET_PROGRESS_CALLER: no thread of the library's then calls MPI, every call on *comm has to come from the thread that
 * initialised MPI (SERIALIZED: from one thread at a time, and none of them inside MPI), and operations advance inside
 * coset_ calls only. coset_comm_abort may come from any thread all the same; the others hear of it at the latest when
 * this rank destroys the communicator. None of this concerns "shm" and "tcp" after the communicator has been made.
 *
 * Faults. The library knows about ranks what MPI reports. With most MPIs that is nothing: a rank that dies takes the job
 * with it (mpirun ends it), or is late. An error of MPI's that names a rank becomes COSET_ERR_PEER on all ranks, another
 * one COSET_ERR_ABORTED with MPI's text. The late timeout (late_ms) is the library's own and holds: a rank that does not
 * come is named. A receive buffer of a failed operation may be written by MPI for up to dead_ms more if its sender has
 * begun, and until MPI_Finalize if that rank has stopped in the middle of it. After COSET_ERR_LATE from this call some
 * ranks are still inside MPI's duplication: a program should end with MPI_Abort.
 *
 * ARGUMENT: `comm` is NULL, `mpi` is MPI_COMM_NULL or an intercommunicator, an option or environment value means nothing.
 * UNSUPPORTED: MPI is not initialised, or finalised already; its thread level does not allow what the options ask for;
 * ranks of `mpi` are not in MPI_COMM_WORLD (MPI_Comm_spawn). LATE: not all ranks have come. MISMATCH: ranks disagree
 * about options, library or wire versions. SYSTEM: MPI refused something; the text has its words. */
coset_status coset_comm_from_mpi(MPI_Comm mpi, const coset_comm_options *options, coset_comm **comm, coset_error *why);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
