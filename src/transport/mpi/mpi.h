/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport `mpi`: whatever an MPI library reaches, RDMA networks included. Built apart from libcoset, once for each
 * MPI (libcoset-mpi-openmpi, libcoset-mpi-mpich), and handed to it as a plug-in by coset_comm_from_mpi.
 *
 * A communicator made from another (split, shrink, the groups of ranks by host) finds its ranks in MPI_COMM_WORLD.
 */
#ifndef CST_TRANSPORT_MPI_MPI_H
#define CST_TRANSPORT_MPI_MPI_H
#include <coset_transport.h>

extern const coset_transport_ops cst_transport_mpi;
#endif
