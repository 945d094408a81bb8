/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 sum all-reduce under any MPI, timed as `coset bench allreduce` times its own: an iteration is a barrier and one
 * operation, its time the maximum over ranks; the figure is the median over iterations, warm-up apart.
 *
 * usage: mpirun -np N allreduce_mpi [-o] [-r] [-s SECONDS] BYTES...
 *   -o  out of place (default: in place)     -r  write the input before and read the result after each operation, with
 *   the functions of `coset bench allreduce`, and time the cycle of the three as well
 *   -s  time per size (default 0.3 s)
 * Compiled with WITH_COSET it is coset's all-reduce that is timed, on a communicator from MPI's.
 * Prints one CSV line per size: peer tag ($TAG), ranks, bytes, in|out, iterations, p50 us, p90 us, cycle p50 us, ok|WRONG
 */
#include "bench_allreduce/pattern.h"

#ifdef WITH_COSET
#include <coset_mpi.h>
#endif
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int rank, size, out_of_place, rewrite;
    double seconds;
} options;
typedef struct {
    float *send, *recv;
    int n;
    pattern input;
} buffers;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#ifdef WITH_COSET
static coset_comm *comm;

static void begin_job(int *argc, char ***argv)
{
    int level;
    coset_error why = COSET_ERROR_INIT;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    if (coset_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm, &why)) {
        fprintf(stderr, "%s\n", why.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void end_job(void)
{
    coset_comm_destroy(comm);
    MPI_Finalize();
}

static void reduce_once(const options *o, const buffers *b)
{
    if (coset_allreduce(o->out_of_place ? b->send : b->recv, b->recv, (size_t)b->n, COSET_F32, COSET_SUM, comm))
        MPI_Abort(MPI_COMM_WORLD, 1);
}
#else
static void begin_job(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
}

static void end_job(void)
{
    MPI_Finalize();
}

static void reduce_once(const options *o, const buffers *b)
{
    const void *from = o->out_of_place ? (const void *)b->send : MPI_IN_PLACE;
    MPI_Allreduce(from, b->recv, b->n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
#endif

/* What training does between two operations: new input, and the result is looked at. */
static void write_input(const options *o, const buffers *b)
{
    pattern_write(&b->input, o->out_of_place ? b->send : b->recv, (size_t)b->n);
}

static void read_result(const options *o, const buffers *b)
{
    (void)o;
    pattern_read(b->recv, (size_t)b->n * sizeof(float));
}

static int wrong(const options *o, const buffers *b)
{
    pattern expected = pattern_of_result(COSET_F32, COSET_SUM, o->size);
    write_input(o, b);
    reduce_once(o, b);
    int all, bad = pattern_wrong(&expected, b->recv, (size_t)b->n) != 0;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    memset(b->send, 0, (size_t)b->n * sizeof(float));
    memset(b->recv, 0, (size_t)b->n * sizeof(float));
    return all;
}

static int iterations_for(const options *o, const buffers *b, size_t bytes)
{
    int warm = bytes > ((size_t)8 << 20) ? 2 : bytes > 65536 ? 5 : 50;
    double begin = MPI_Wtime();
    for (int i = 0; i < warm; i++)
        reduce_once(o, b);
    int n = (int)(o->seconds / ((MPI_Wtime() - begin) / warm + 1e-9));
    n = n < 5 ? 5 : n > 20000 ? 20000 : n;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return n;
}

static void cycle(const options *o, const buffers *b)
{
    write_input(o, b);
    reduce_once(o, b);
    read_result(o, b);
}

/* took[i] = the time of iteration i, maximum over ranks: on rank 0, in ascending order. */
static void run_loop(const options *o, const buffers *b, void (*timed)(const options *, const buffers *), double *took,
                     int n)
{
    for (int i = 0; i < n; i++) {
        if (o->rewrite && timed == reduce_once)
            write_input(o, b);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        timed(o, b);
        took[i] = MPI_Wtime() - begin;
        if (o->rewrite && timed == reduce_once)
            read_result(o, b);
    }
    MPI_Reduce(o->rank ? took : MPI_IN_PLACE, took, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(took, (size_t)n, sizeof *took, by_value);
}

static void measure(const options *o, size_t bytes)
{
    buffers b = {.n = (int)(bytes / sizeof(float)), .input = pattern_of_rank(COSET_F32, COSET_SUM, o->rank)};
    size_t room = (bytes + 8191) & ~(size_t)4095;
    b.send = aligned_alloc(4096, room);
    b.recv = aligned_alloc(4096, room);
    int bad = wrong(o, &b), n = iterations_for(o, &b, bytes);
    double *took = calloc((size_t)n, sizeof *took), *cycles = calloc((size_t)n, sizeof *cycles);
    run_loop(o, &b, reduce_once, took, n);
    if (o->rewrite)
        run_loop(o, &b, cycle, cycles, n);
    if (!o->rank) {
        const char *tag = getenv("TAG");
        printf("%s,%d,%zu,%s,%d,%.3f,%.3f,%.3f,%s\n", tag ? tag : "mpi", o->size, bytes, o->out_of_place ? "out" : "in",
               n, took[n / 2] * 1e6, took[n * 9 / 10] * 1e6, cycles[n / 2] * 1e6, bad ? "WRONG" : "ok");
        fflush(stdout);
    }
    free(took);
    free(cycles);
    free(b.send);
    free(b.recv);
}

int main(int argc, char **argv)
{
    options o = {.seconds = 0.3};
    begin_job(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &o.size);
    for (int c; (c = getopt(argc, argv, "ors:")) != -1;) {
        o.out_of_place |= c == 'o';
        o.rewrite |= c == 'r';
        if (c == 's')
            o.seconds = atof(optarg);
    }
    for (int i = optind; i < argc; i++)
        measure(&o, strtoull(argv[i], NULL, 0));
    end_job();
    return 0;
}
