/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engines whose owner has left while others have not: what a rank still sends before it hears the goodbye must find the
 * communicator of MPI's where it was, or it would turn up in the next one that MPI gives the same number. They are freed
 * when every rank has said goodbye: looked at whenever an engine is made or left, and by MPI_Finalize.
 *
 * The one piece of the process's state in this library; any thread that may call MPI.
 */
#ifndef CST_TRANSPORT_MPI_RETIRE_H
#define CST_TRANSPORT_MPI_RETIRE_H
#include "transport/mpi/engine.h"

/* Takes over an engine (from malloc) which has said its goodbye and has no messages. */
void cst_mpi_retire(cst_mpi_engine *e);
/* Frees those that have become quiet. */
void cst_mpi_retired_look(void);
#endif
