/* SPDX-License-Identifier: Apache-2.0 */
/* Hierarchical all-reduce, on ranks of one machine that pretend to be on several hosts. usage: hier TRANSPORT */
#include "comm/group.h"

#include "kernels/convert/convert.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int value(int rank, size_t i)
{
    return (int)((i * 7 + (size_t)rank * 13) % 31) - 15;
}

static int sum(int size, size_t i)
{
    int s = 0;
    for (int r = 0; r < size; r++)
        s += value(r, i);
    return s;
}

static int f32_everywhere(coset_comm *c, float *x, size_t n, const char *what)
{
    int rank = coset_comm_rank(c), size = coset_comm_size(c);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)value(rank, i);
    if (group_want(c, coset_allreduce(x, x, n, COSET_F32, COSET_AVG, c), COSET_OK, what))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (x[i] != (float)sum(size, i) / (float)size)
            return group_fail(c, "%s, count %zu: element %zu is %g, not %d / %d", what, n, i, (double)x[i],
                              sum(size, i), size);
    return 0;
}

/* One rounding only: 16-bit inputs whose exact mean is not representable. */
static int bf16_rounds_once(coset_comm *c)
{
    enum { N = 5000 };
    static uint16_t x[N];
    int rank = coset_comm_rank(c), size = coset_comm_size(c);
    float wide[N], want[N];
    uint16_t rounded[N];
    for (size_t i = 0; i < N; i++) {
        wide[i] = (float)(100 + value(rank, i));
        want[i] = (float)(100 * size + sum(size, i));
    }
    cst_narrow(COSET_BF16, x, wide, N, 1);
    cst_narrow(COSET_BF16, rounded, want, N, (unsigned)size);
    if (group_want(c, coset_allreduce(x, x, N, COSET_BF16, COSET_AVG, c), COSET_OK, "bf16"))
        return 1;
    for (size_t i = 0; i < N; i++)
        if (x[i] != rounded[i])
            return group_fail(c, "bf16 element %zu is %04x, not %04x", i, x[i], rounded[i]);
    return 0;
}

static int body(coset_comm *c, void *arg)
{
    (void)arg;
    static const size_t counts[] = {0, 1, 2, 7, 1009, 300001};
    float *plain = malloc(300001 * 4), *mapped;
    int bad = !plain || group_want(c, coset_alloc(c, 300001 * 4, (void **)&mapped), COSET_OK, "alloc");
    for (size_t k = 0; k < sizeof counts / sizeof *counts && !bad; k++)
        bad = f32_everywhere(c, mapped, counts[k], "coset_alloc") || f32_everywhere(c, plain, counts[k], "malloc");
    bad = bad || bf16_rounds_once(c) || group_want(c, coset_free(c, mapped), COSET_OK, "free");
    free(plain);
    return bad;
}

/* A rank dies: those that wait for it, those of the other hosts that wait for them, all get PEER. */
static int death(coset_comm *c, void *arg)
{
    (void)arg;
    float *x = calloc(100000, 4);
    coset_status status = coset_allreduce(x, x, 100000, COSET_F32, COSET_SUM, c);
    if (coset_comm_rank(c) == 1)
        raise(SIGKILL);
    while (status == COSET_OK)
        status = coset_allreduce(x, x, 100000, COSET_F32, COSET_SUM, c);
    free(x);
    coset_error e = COSET_ERROR_INIT;
    coset_last_error(c, &e);
    return status == COSET_ERR_PEER && e.peer == 1
               ? 0
               : group_fail(c, "a death gave %s, rank %d: %s", coset_strerror(status), e.peer, e.text);
}

static int impossible(coset_comm *c, void *arg)
{
    (void)arg;
    float x = 1;
    return group_want(c, coset_allreduce(&x, &x, 1, COSET_F32, COSET_SUM, c), COSET_ERR_UNSUPPORTED,
                      "hier on one host");
}

int main(int argc, char **argv)
{
    static const int shapes[][2] = {{4, 2}, {5, 2}, {6, 3}, {7, 3}, {3, 1}}; /* ranks, ranks per host */
    int bad = 0;
    if (argc < 2)
        return 2;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        group g = GROUP(argv[1], shapes[s][0]);
        g.per_host = shapes[s][1];
        g.options.algorithm = shapes[s][1] > 1 ? "hier" : "auto";
        int failed = group_run(&g, body, NULL);
        if (failed)
            fprintf(stderr, "FAILED: %d ranks, %d per host\n", shapes[s][0], shapes[s][1]);
        bad += failed;
    }
    group d = GROUP(argv[1], 5);
    d.per_host = 2;
    d.options.algorithm = "hier";
    d.expect_dead = 1;
    d.seconds = 20;
    bad += abs(group_run(&d, death, NULL));
    group one = GROUP(argv[1], 2);
    one.options.algorithm = "hier";
    bad += group_run(&one, impossible, NULL);
    return bad != 0;
}
