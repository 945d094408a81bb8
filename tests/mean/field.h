/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of known mean and spread, the ranks that average them, and the truth beside the result.
 *
 * Coordinates are mean_rms * (common, unit variance) + spread * (each rank's own, unit variance).
 */
#ifndef CST_TESTS_FIELD_H
#define CST_TESTS_FIELD_H
#include <coset_mean.h>
#include <stdbool.h>

typedef enum { FIELD_GAUSS, FIELD_T3, FIELD_COINS /* 64 coins: nearly Gaussian, and quick */ } field_shape;

typedef struct {
    int ranks;
    size_t dim;
    float **x, *out; /* [rank][dim]; out: of rank 0, the others are compared with it */
    coset_mean **means;
    uint64_t random[4];
    double spare;
    bool has_spare;
} field;

typedef struct {
    coset_mean_report report;
    double excess; /* mse over spread2 / ranks */
    double mse, spread2;
    double bits;    /* of both phases: sent * n / (n - 1) per coordinate, mean over ranks */
    bool identical; /* all ranks got the same bits */
} field_result;

/* Fails the test if something cannot be made. */
field *field_make(int ranks, size_t dim, const coset_mean_options *options, uint64_t seed);
void field_free(field *f);
double field_gauss(field *f);
double field_uniform(field *f);
/* New vectors. */
void field_fill(field *f, field_shape shape, double mean_rms, double spread);
void field_fill_part(field *f, field_shape shape, double mean_rms, double spread, size_t first, size_t count);
/* One call on one tensor (id 1). Asserts success. */
field_result field_average(field *f);
#endif
