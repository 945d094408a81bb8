/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI program that hands its communicator to coset: inside a host ranks share memory, between hosts MPI carries the
 * bytes. Prints how long the mean of a vector takes, and how long MPI_Allreduce.
 *
 *     mpicc -O2 mean_from_mpi.c -lcoset-mpi-openmpi -lcoset -o mean_from_mpi          (or -lcoset-mpi-mpich)
 *     mpirun -n 4 ./mean_from_mpi                        shared memory
 *     COSET_TRANSPORT=mpi mpirun -n 4 ./mean_from_mpi    MPI carries the bytes on one host too
 *
 * Open MPI: --oversubscribe where there are fewer cores than ranks; -x COSET_TRANSPORT takes the variable to other hosts.
 */
#include <coset_mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, TIMES = 20 };

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

int main(int argc, char **argv)
{
    int rank, size, level;
    coset_comm *comm;
    coset_comm_options options = COSET_COMM_OPTIONS_INIT;
    coset_error why = COSET_ERROR_INIT;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (level < MPI_THREAD_MULTIPLE) /* then no thread of coset's may call MPI: operations advance inside calls only */
        options.progress = COSET_PROGRESS_CALLER;
    if (coset_comm_from_mpi(MPI_COMM_WORLD, &options, &comm, &why))
        return fail(why.text);

    float *v, *w = malloc(COUNT * sizeof *w);
    if (!w || coset_alloc(comm, COUNT * sizeof *v, (void **)&v))
        return fail("no memory");
    double best = 1, mpis_best = 1;
    for (int k = 0; k < TIMES; k++) {
        for (int i = 0; i < COUNT; i++)
            v[i] = w[i] = (float)rank;
        coset_barrier(comm);
        double start = MPI_Wtime();
        if (coset_allreduce(v, v, COUNT, COSET_F32, COSET_AVG, comm)) {
            coset_last_error(comm, &why);
            return fail(why.text);
        }
        double took = MPI_Wtime() - start;
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, w, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double mpis = MPI_Wtime() - start;
        best = took < best ? took : best;
        mpis_best = mpis < mpis_best ? mpis : mpis_best;
    }
    if (!rank)
        printf("mean of %d ranks over %s: %g; %.2f ms, MPI_Allreduce %.2f ms\n", size, coset_comm_transport(comm),
               (double)v[0], best * 1e3, mpis_best * 1e3);
    int wrong = v[0] != (float)(size - 1) / 2 || w[0] != (float)(size * (size - 1) / 2);
    free(w);
    coset_comm_destroy(comm);
    MPI_Finalize();
    return wrong;
}
