/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_kernels/row.h"
#include "common/stats.h"

static double timed(const kernel_row *row, char *const buffer[], size_t bytes, long runs)
{
    const double start = tool_now();
    for (long i = 0; i < runs; i++)
        row->run(row, buffer, bytes);
    return tool_now() - start;
}

/* So many runs that the clock's own cost (tens of nanoseconds) does not show. */
static long runs_per_sample(const kernel_row *row, char *const buffer[], size_t bytes)
{
    const double enough = 20e-6;
    long runs = 1;
    while (timed(row, buffer, bytes, runs) < enough)
        runs *= 2;
    return runs;
}

double kernel_measure(const kernel_row *row, char *const buffer[], size_t bytes, double budget)
{
    enum { MEDIANS = 3, SAMPLES = 9, MAX_SAMPLES = 301 };
    double sample[MAX_SAMPLES], best = 0;
    const long runs = runs_per_sample(row, buffer, bytes);
    for (int m = 0; m < MEDIANS; m++) {
        const double stop = tool_now() + budget / MEDIANS;
        int n = 0;
        while (n < SAMPLES || (n < MAX_SAMPLES && tool_now() < stop))
            sample[n++] = timed(row, buffer, bytes, runs) / (double)runs;
        const double median = tool_percentile(sample, (size_t)n, 0.5);
        best = m == 0 || median < best ? median : best;
    }
    return best;
}
