/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compressed mean carried by MPI: no communicator of coset's, MPI's own collectives move the bytes.
 *
 *     mpirun -n 4 ./example_mean_over_mpi                 codes that any MPI sums: MPI_Allreduce(MPI_UINT8_T, MPI_SUM)
 *     mpirun -n 4 ./example_mean_over_mpi sharded-star    the default protocol: MPI_Alltoall and MPI_Allgather
 *
 * Open MPI: --oversubscribe where there are fewer cores than ranks.
 * Every rank holds a common vector plus noise of its own; the estimate is compared with the exact mean.
 */
#include <coset_mean.h>

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COORDS = 1 << 18, CALLS = 3 };

static MPI_Datatype mpi_type(coset_dtype unit)
{
    return unit == COSET_U8 ? MPI_UINT8_T : unit == COSET_U32 ? MPI_UINT32_T : MPI_UINT64_T;
}

/* Messages between pairs (star, tree): all at once. */
static void carry_routes(const coset_xfer *x)
{
    MPI_Request *requests = malloc((x->nroutes + 1) * sizeof(MPI_Request));
    for (size_t i = 0; i < x->nroutes; i++) {
        const coset_route *m = &x->routes[i];
        if (m->recv)
            MPI_Irecv(m->recv, (int)m->bytes, MPI_BYTE, m->peer, 0, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Isend(m->send, (int)m->bytes, MPI_BYTE, m->peer, 0, MPI_COMM_WORLD, &requests[i]);
    }
    for (size_t i = 0; i < x->nroutes; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    free(requests);
}

static void carry(const coset_xfer *x)
{
    int bytes = (int)x->bytes;
    switch (x->kind) {
    case COSET_XFER_ALLTOALL: MPI_Alltoall(x->send, bytes, MPI_BYTE, x->recv, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
    case COSET_XFER_ALLGATHER: MPI_Allgather(x->send, bytes, MPI_BYTE, x->recv, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
    case COSET_XFER_SUM_WRAP:
        MPI_Allreduce(x->send, x->recv, (int)(x->bytes / coset_dtype_size(x->unit)), mpi_type(x->unit), MPI_SUM,
                      MPI_COMM_WORLD);
        break;
    case COSET_XFER_ROUTE: carry_routes(x); break;
    case COSET_XFER_DONE: break;
    }
}

/* One call; aborts the job on an error, so that no rank waits for this one. */
static coset_mean_report average(coset_mean *mean, float *x)
{
    coset_span span = {1, x, x, COORDS};
    coset_round *round;
    coset_xfer xfer = COSET_XFER_INIT;
    coset_mean_report report = COSET_MEAN_REPORT_INIT;
    coset_status status = coset_mean_begin(mean, &span, 1, COSET_F32, &round);
    while (!status) {
        status = coset_mean_next(round, &xfer);
        if (status || xfer.kind == COSET_XFER_DONE)
            break;
        carry(&xfer);
    }
    if (!status)
        status = coset_mean_end(round, &report);
    if (status) {
        coset_error why = COSET_ERROR_INIT;
        coset_mean_last_error(mean, &why);
        fprintf(stderr, "%s\n", why.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return report;
}

/* A value in [-1, 1] that depends on its arguments and on nothing else. */
static float noise(unsigned a, unsigned b)
{
    unsigned h = a * 0x9E3779B9u ^ b * 0x85EBCA6Bu;
    h = (h ^ h >> 15) * 0x2C1B3C6Du;
    h = (h ^ h >> 12) * 0x297A2D39u;
    return (float)((h ^ h >> 15) >> 8) * 0x1p-23f - 1;
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    /* Open MPI 4.1's AVX code for MPI_SUM of 8-bit integers saturates where the standard's C addition wraps. The checksums
     * notice, and whole integers repair it, at four times the bytes: better to take its plain code. */
    setenv("OMPI_MCA_op", "^avx", 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    options.protocol = argc > 1 ? argv[1] : "homomorphic";
    bool homomorphic = strcmp(options.protocol, "homomorphic") == 0;
    coset_mean *mean;
    coset_error why = COSET_ERROR_INIT;
    if (coset_mean_create(rank, size, &options, &mean, &why)) {
        fprintf(stderr, "%s\n", why.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    float *x = malloc(COORDS * sizeof *x);
    for (unsigned call = 0; call < CALLS; call++) {
        double error = 0, spread = 0;
        for (unsigned i = 0; i < COORDS; i++)
            x[i] = 10 * noise(i, call) + noise(i, call + 1000 + (unsigned)rank);
        coset_mean_report report = average(mean, x);
        for (unsigned i = 0; i < COORDS; i++) {
            double exact = 0, around = 0;
            for (int r = 0; r < size; r++)
                exact += (double)(10 * noise(i, call) + noise(i, call + 1000 + (unsigned)r)) / size;
            for (int r = 0; r < size; r++)
                around += pow(10 * noise(i, call) + noise(i, call + 1000 + (unsigned)r) - exact, 2);
            spread += around / (size - 1);
            error += pow(x[i] - exact, 2);
        }
        double excess = size > 1 ? error / (spread / size) : 0;
        if (rank == 0)
            printf("call %u: excess %.5f over the sampling variance, %.2f bits per coordinate sent\n", call, excess,
                   (double)report.bits_sent / COORDS);
        wrong |= !(excess <= (homomorphic ? 0.005 : 0.055));
    }
    free(x);
    coset_mean_destroy(mean);
    MPI_Finalize();
    return wrong;
}
