/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of timings, and the clocks they come from. */
#ifndef COSET_TOOLS_STATS_H
#define COSET_TOOLS_STATS_H
#include <stddef.h>

/* The value below which the fraction p (0..1) of the n samples lies (nearest rank); NaN for n == 0. Sorts `samples`. */
double tool_percentile(double *samples, size_t n, double p);
/* Monotonic seconds. */
double tool_now(void);
/* Processor seconds (user and system) of the calling thread. */
double tool_thread_cpu(void);
/* The same of the process, all its threads. */
double tool_process_cpu(void);
#endif
