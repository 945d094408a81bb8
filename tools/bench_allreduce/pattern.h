/* SPDX-License-Identifier: Apache-2.0 */
/* Input vectors whose exact all-reduce is known for every dtype and op, so that each result can be compared bit by bit. */
#ifndef COSET_TOOLS_BENCH_PATTERN_H
#define COSET_TOOLS_BENCH_PATTERN_H
#include <coset.h>

/* Elements after which the vector repeats. */
enum { PATTERN_PERIOD = 97 * 5 };

/* The values of one rank, or the expected result, for one period. */
typedef struct {
    size_t element; /* bytes */
    unsigned char values[PATTERN_PERIOD * 8];
} pattern;

pattern pattern_of_rank(coset_dtype dtype, coset_op op, int rank);
pattern pattern_of_result(coset_dtype dtype, coset_op op, int ranks);
/* Writes `count` elements. */
void pattern_write(const pattern *p, void *to, size_t count);
/* Reads every byte, as whoever uses a result does. */
void pattern_read(const void *from, size_t bytes);
/* How many of `count` elements differ from the pattern. */
size_t pattern_wrong(const pattern *p, const void *from, size_t count);
#endif
