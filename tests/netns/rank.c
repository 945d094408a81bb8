/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a test between hosts, with the public interface alone.
 *
 *   rank COUNT SECONDS    all-reduces of COUNT f32, again and again, checked, for that long by rank 0's clock
 *   rank 0 SECONDS        joins, and waits for that long without doing anything
 *
 * Compiled with RANK_OVER_MPI it is started by an mpirun, MPI carries the bytes between the hosts, and the last
 * line is "left", before MPI_Finalize.
 *
 * Prints a line for every stage, "pid P" first, then "joined R of N over TRANSPORT", "first" after the first operation, and at the
 * end "done OPERATIONS CPU_MS", or "error STATUS peer PEER: TEXT" with exit status 3.
 */
#include <coset.h>
#ifdef RANK_OVER_MPI
#include <coset_mpi.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-3;
}

static int report(const coset_error *e)
{
    printf("error %d peer %d: %s\n", (int)e->status, e->peer, e->text);
    return 3;
}

static int fail(const coset_comm *comm)
{
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(comm, &e);
    return report(&e);
}

/* Integers, so that every order of adding gives the same. Element i of rank r in operation k. */
static float value(size_t i, int r, long k)
{
    return (float)((i * 7 + (size_t)r * 3 + (size_t)k) % 101);
}

static int reduce_once(coset_comm *comm, float *data, size_t count, long k)
{
    int rank = coset_comm_rank(comm), size = coset_comm_size(comm);
    for (size_t i = 0; i < count; i++)
        data[i] = value(i, rank, k);
    if (coset_allreduce(data, data, count, COSET_F32, COSET_SUM, comm))
        return fail(comm);
    for (size_t i = 0; i < count; i += 1 + count / 1000) {
        float sum = 0;
        for (int r = 0; r < size; r++)
            sum += value(i, r, k);
        if (data[i] != sum) {
            printf("wrong element %zu of operation %ld: %g instead of %g\n", i, k, (double)data[i], (double)sum);
            return 4;
        }
    }
    return 0;
}

static int reduce_for(coset_comm *comm, size_t count, double seconds, long *operations)
{
    float *data = calloc(count, sizeof *data);
    double end = now() + seconds;
    int32_t more = 1;
    int code = data ? 0 : 5;
    while (more && !code) {
        code = reduce_once(comm, data, count, *operations);
        if (code)
            break;
        if (++*operations == 1)
            printf("first\n");
        more = now() < end;
        if (coset_broadcast(&more, &more, 1, COSET_I32, 0, comm))
            code = fail(comm);
    }
    free(data);
    return code;
}

#ifdef RANK_OVER_MPI
static coset_status join(coset_comm **comm, coset_error *why)
{
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    return coset_comm_from_mpi(MPI_COMM_WORLD, NULL, comm, why);
}

static void leave(coset_comm *comm)
{
    coset_comm_destroy(comm);
    printf("left\n");
    MPI_Finalize();
}
#else
static coset_status join(coset_comm **comm, coset_error *why)
{
    return coset_comm_create_env(NULL, comm, why);
}

static void leave(coset_comm *comm)
{
    coset_comm_destroy(comm);
}
#endif

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t count = strtoul(argv[1], NULL, 10);
    double seconds = strtod(argv[2], NULL);
    coset_comm *comm;
    coset_error why = COSET_ERROR_INIT;
    long operations = 0;
    int code = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("pid %d\n", (int)getpid());
    if (join(&comm, &why))
        return report(&why);
    printf("joined %d of %d over %s\n", coset_comm_rank(comm), coset_comm_size(comm), coset_comm_transport(comm));
    double before = cpu_ms();
    if (count)
        code = reduce_for(comm, count, seconds, &operations);
    else
        nanosleep(&(struct timespec){(time_t)seconds, 0}, NULL);
    double used = cpu_ms() - before;
    if (!code)
        printf("done %ld %.1f\n", operations, used);
    leave(comm);
    return code;
}
