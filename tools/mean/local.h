/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ranks of a compressed mean in one process: carries their transfers by copying. The engine of `coset mean`, of
 * `coset bench codec` and of the tests; built on the public interface alone, so also an example of an engine.
 */
#ifndef COSET_TOOLS_MEAN_LOCAL_H
#define COSET_TOOLS_MEAN_LOCAL_H
#include <coset_mean.h>

/* Seconds that the ranks spent, all together: until their first codes were ready, and from then on. */
typedef struct {
    double encoding, decoding;
} tool_mean_times;

/* One call on ranks means[0..size): spans[r] are rank r's, nspans each. reports (may be NULL): one per rank, struct_size
 * set. On failure *why (may be NULL) is the error of the first rank that failed, and all rounds have been ended.
 * MISMATCH also if ranks ask for different transfers. */
coset_status tool_mean_local(coset_mean *const *means, int size, const coset_span *const *spans, size_t nspans,
                             coset_dtype dtype, coset_mean_report *reports, coset_error *why);
/* The same; adds to *times. */
coset_status tool_mean_local_timed(coset_mean *const *means, int size, const coset_span *const *spans, size_t nspans,
                                   coset_dtype dtype, coset_mean_report *reports, tool_mean_times *times,
                                   coset_error *why);
#endif
