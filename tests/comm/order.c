/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank order: with the option, the sum of every element is ((x0 + x1) + x2) + ..., whatever the algorithm, the memory, the
 * transport or the way a vector is split into calls. usage: order TRANSPORT
 */
#include "comm/group.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of very different size, so that another order of additions gives other bits. */
static float value(int rank, size_t i)
{
    uint32_t h = (uint32_t)i * 2654435761u + (uint32_t)rank * 40503u;
    h = (h ^ (h >> 15)) * 2246822519u;
    h ^= h >> 13;
    float scale = (float)(1 << (h % 20));
    return ((float)(int32_t)h * 0x1p-31f) * scale;
}

static int check(coset_comm *c, const float *got, size_t n, const char *what)
{
    int size = coset_comm_size(c);
    for (size_t i = 0; i < n; i++) {
        float want = value(0, i);
        for (int r = 1; r < size; r++)
            want += value(r, i);
        if (memcmp(&got[i], &want, sizeof want))
            return group_fail(c, "%s: element %zu is %.9g, the rank-order sum %.9g", what, i, (double)got[i],
                              (double)want);
    }
    return 0;
}

static void fill(coset_comm *c, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = value(coset_comm_rank(c), i);
}

static int whole_and_split(coset_comm *c, float *x, size_t n, const char *name)
{
    char what[64];
    for (size_t piece = n; piece >= 1000; piece = piece / 7 + 1) {
        fill(c, x, n);
        for (size_t at = 0; at < n; at += piece) {
            size_t count = n - at < piece ? n - at : piece;
            if (group_want(c, coset_allreduce(x + at, x + at, count, COSET_F32, COSET_SUM, c), COSET_OK, name))
                return 1;
        }
        snprintf(what, sizeof what, "%s in pieces of %zu", name, piece);
        if (check(c, x, n, what))
            return 1;
    }
    return 0;
}

static int body(coset_comm *c, void *arg)
{
    (void)arg;
    size_t n = 200003;
    float *plain = malloc(n * 4), *mapped;
    if (!plain || group_want(c, coset_alloc(c, n * 4, (void **)&mapped), COSET_OK, "alloc"))
        return 1;
    int bad = whole_and_split(c, plain, n, "malloc") || whole_and_split(c, mapped, n, "coset_alloc");
    free(plain);
    return bad;
}

static int refused(coset_comm *c, void *arg)
{
    (void)arg;
    float x[4] = {0};
    return group_want(c, coset_allreduce(x, x, 4, COSET_F32, COSET_SUM, c), COSET_ERR_UNSUPPORTED,
                      "ring in rank order");
}

int main(int argc, char **argv)
{
    static const char *const algorithms[] = {"auto", "direct", "flat", "naive"};
    int bad = 0;
    if (argc < 2)
        return 2;
    for (int size = 2; size <= 5; size++)
        for (size_t a = 0; a < 4; a++) {
            group g = GROUP(argv[1], size);
            g.options.algorithm = algorithms[a];
            g.options.rank_order = 1;
            int failed = group_run(&g, body, NULL);
            if (failed)
                fprintf(stderr, "FAILED: %d ranks, %s\n", size, algorithms[a]);
            bad += failed;
        }
    group g = GROUP(argv[1], 2);
    g.options.algorithm = "ring";
    g.options.rank_order = 1;
    return bad + group_run(&g, refused, NULL) != 0;
}
