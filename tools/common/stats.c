/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tool_percentile(double *samples, size_t n, double p)
{
    if (n == 0)
        return NAN;
    qsort(samples, n, sizeof *samples, ascending);
    size_t at = (size_t)ceil(p * (double)n);
    return samples[at ? at - 1 : 0];
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double tool_now(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double tool_thread_cpu(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

double tool_process_cpu(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}
