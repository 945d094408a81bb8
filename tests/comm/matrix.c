/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce: every algorithm x count x memory x in or out of place x group size, against sums made here.
 * Values are small integers, so sums are exact in every type, and equality with the expected value on every rank is
 * equality of bits over the ranks.
 * usage: matrix TRANSPORT [SIZE...]; skipped where the environment asks for a way through shared memory that this host refuses
 */
#include "comm/group.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int value(int rank, size_t i)
{
    return (int)((i * 7 + (size_t)rank * 13 + i / 97) % 31) - 15;
}

static int expected_sum(int size, size_t i)
{
    int sum = 0;
    for (int r = 0; r < size; r++)
        sum += value(r, i);
    return sum;
}

static void fill_f32(float *x, int rank, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)value(rank, i);
}

static int check_f32(coset_comm *c, const float *x, size_t n, const char *what)
{
    int size = coset_comm_size(c);
    for (size_t i = 0; i < n; i++)
        if (x[i] != (float)expected_sum(size, i))
            return group_fail(c, "%s: element %zu of %zu is %g, not %d", what, i, n, (double)x[i],
                              expected_sum(size, i));
    return 0;
}

typedef struct {
    float *send, *recv;
    const char *name;
} buffers;

static int try_count(coset_comm *c, size_t n, buffers b)
{
    char what[96];
    int rank = coset_comm_rank(c);
    fill_f32(b.send, rank, n);
    memset(b.recv, 0xff, n * sizeof(float) + 4);
    snprintf(what, sizeof what, "out of place, %s, %zu", b.name, n);
    if (group_want(c, coset_allreduce(b.send, b.recv, n, COSET_F32, COSET_SUM, c), COSET_OK, what) ||
        check_f32(c, b.recv, n, what))
        return 1;
    uint32_t guard;
    memcpy(&guard, b.recv + n, sizeof guard);
    if (guard != UINT32_MAX)
        return group_fail(c, "%s: wrote behind the result", what);
    for (size_t i = 0; i < n; i++)
        if (b.send[i] != (float)value(rank, i))
            return group_fail(c, "%s: the send buffer changed at %zu", what, i);
    snprintf(what, sizeof what, "in place, %s, %zu", b.name, n);
    if (group_want(c, coset_allreduce(b.send, b.send, n, COSET_F32, COSET_SUM, c), COSET_OK, what))
        return 1;
    return check_f32(c, b.send, n, what);
}

/* i32 wraps, u8 wraps, f64, and the other operators, on one count. */
static int try_types(coset_comm *c)
{
    enum { N = 1009 };
    int size = coset_comm_size(c), rank = coset_comm_rank(c), bad = 0;
    static _Thread_local int32_t xi[N], yi[N];
    static _Thread_local uint8_t xb[N];
    static _Thread_local double xd[N];
    for (size_t i = 0; i < N; i++) {
        xi[i] = value(rank, i) + (INT32_MAX / 2);
        xb[i] = (uint8_t)value(rank, i);
        xd[i] = value(rank, i);
    }
    bad |= group_want(c, coset_allreduce(xi, yi, N, COSET_I32, COSET_SUM, c), COSET_OK, "i32");
    bad |= group_want(c, coset_allreduce(xb, xb, N, COSET_U8, COSET_SUM, c), COSET_OK, "u8");
    bad |= group_want(c, coset_allreduce(xd, xd, N, COSET_F64, COSET_AVG, c), COSET_OK, "f64 avg");
    for (size_t i = 0; i < N && !bad; i++) {
        uint32_t want = (uint32_t)expected_sum(size, i) + (uint32_t)size * (INT32_MAX / 2);
        if ((uint32_t)yi[i] != want)
            bad |= group_fail(c, "i32 element %zu: %d, not %d", i, yi[i], (int32_t)want);
        if (xb[i] != (uint8_t)expected_sum(size, i))
            bad |= group_fail(c, "u8 element %zu: %d, not %d", i, xb[i], (uint8_t)expected_sum(size, i));
        if (xd[i] != (double)expected_sum(size, i) / size)
            bad |= group_fail(c, "f64 avg element %zu: %g", i, xd[i]);
    }
    for (size_t i = 0; i < N; i++)
        xi[i] = value(rank, i);
    bad |= group_want(c, coset_allreduce(xi, yi, N, COSET_I32, COSET_MAX, c), COSET_OK, "i32 max");
    for (size_t i = 0; i < N && !bad; i++) {
        int most = value(0, i);
        for (int r = 1; r < size; r++)
            most = value(r, i) > most ? value(r, i) : most;
        if (yi[i] != most)
            bad |= group_fail(c, "i32 max element %zu: %d, not %d", i, yi[i], most);
    }
    return bad;
}

static int body(coset_comm *c, void *arg)
{
    (void)arg;
    size_t n = (size_t)coset_comm_size(c), most = ((size_t)1 << 20) + 7;
    size_t counts[] = {0, 1, n - 1, n, n + 1, 1009, 70001, most};
    size_t bytes = (most + 1) * sizeof(float);
    buffers mapped = {.name = "coset_alloc"}, plain = {.name = "malloc"};
    plain.send = malloc(bytes);
    plain.recv = malloc(bytes);
    int bad = !plain.send || !plain.recv;
    bad |= group_want(c, coset_alloc(c, bytes, (void **)&mapped.send), COSET_OK, "alloc");
    bad |= group_want(c, coset_alloc(c, bytes, (void **)&mapped.recv), COSET_OK, "alloc");
    buffers mixed = coset_comm_rank(c) % 2 ? plain : mapped;
    mixed.name = "mixed";
    for (size_t k = 0; k < sizeof counts / sizeof *counts && !bad; k++)
        bad = try_count(c, counts[k], mapped) || try_count(c, counts[k], plain) ||
              (counts[k] < most && try_count(c, counts[k], mixed));
    bad = bad || try_types(c);
    if (!bad)
        bad |= group_want(c, coset_free(c, mapped.recv), COSET_OK, "free");
    free(plain.send);
    free(plain.recv);
    return bad;
}

static int nothing(coset_comm *c, void *arg)
{
    (void)arg;
    return !c;
}

int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    static const char *const algorithms[] = {"auto", "flat", "direct", "ring", "rd", "rhd", "tree", "naive"};
    static const int all_sizes[] = {1, 2, 3, 4, 5, 7, 8};
    if (argc < 2)
        return 2;
    group pair = GROUP(argv[1], 2);
    if (getenv("COSET_SHM_METHOD") && group_run(&pair, nothing, NULL))
        return SKIPPED;
    int bad = 0;
    for (size_t s = 0; s < sizeof all_sizes / sizeof *all_sizes; s++) {
        int size = all_sizes[s], wanted = argc == 2;
        for (int i = 2; i < argc; i++)
            wanted |= atoi(argv[i]) == size;
        for (size_t a = 0; wanted && a < sizeof algorithms / sizeof *algorithms; a++) {
            group g = GROUP(argv[1], size);
            g.options.algorithm = algorithms[a];
            int failed = group_run(&g, body, NULL);
            if (failed)
                fprintf(stderr, "FAILED: %s, %d ranks, algorithm %s (%d ranks)\n", argv[1], size, algorithms[a],
                        failed);
            bad += failed;
        }
    }
    return bad != 0;
}
