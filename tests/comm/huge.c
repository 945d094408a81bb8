/* SPDX-License-Identifier: Apache-2.0 */
/* One all-reduce of more than 2^31 bytes, by each path. Needs 12 GiB of free memory, else skipped. usage: huge TRANSPORT */
#include "comm/group.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES (((size_t)1 << 31) + 70001)

static uint8_t value(int rank, size_t i)
{
    return (uint8_t)((i >> 3) * 37 + i + (size_t)rank * 11);
}

static int reduce_and_check(coset_comm *c, uint8_t *x, const char *what)
{
    int rank = coset_comm_rank(c);
    for (size_t i = 0; i < BYTES; i++)
        x[i] = value(rank, i);
    if (group_want(c, coset_allreduce(x, x, BYTES, COSET_U8, COSET_SUM, c), COSET_OK, what))
        return 1;
    for (size_t i = 0; i < BYTES; i++)
        if (x[i] != (uint8_t)(value(0, i) + value(1, i)))
            return group_fail(c, "%s: element %zu is %d", what, i, x[i]);
    return 0;
}

static int body(coset_comm *c, void *arg)
{
    int mapped = *(int *)arg;
    uint8_t *x = NULL;
    if (mapped && group_want(c, coset_alloc(c, BYTES, (void **)&x), COSET_OK, "alloc"))
        return 1;
    if (!mapped && !(x = malloc(BYTES)))
        return group_fail(c, "no memory");
    int bad = reduce_and_check(c, x, mapped ? "coset_alloc" : "malloc");
    if (!mapped)
        free(x);
    return bad;
}

static long available_mib(void)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %ld kB", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return kib >> 10;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (available_mib() < 12 << 10) {
        fprintf(stderr, "skipped: %ld MiB of memory are free, 12288 are needed\n", available_mib());
        return 77;
    }
    int bad = 0;
    for (int mapped = 0; mapped < 2; mapped++) {
        group g = GROUP(argv[1], 2);
        g.options.algorithm = mapped ? "auto" : "ring"; /* one pass over mapped memory; messages */
        g.seconds = 200;
        bad += group_run(&g, body, &mapped);
    }
    return bad != 0;
}
