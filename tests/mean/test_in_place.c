/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place or not, the result is the same, bit for bit: also where spread that grows tenfold makes blocks wait for repairs,
 * which read the input again when other blocks' results have been written over theirs.
 */
#include "mean/field.h"
#include "../../tools/mean/local.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, DIM = 20 * 4096 + 300, CALLS = 5 };

/* Averages f's vectors into f->out, by way of `out` (in place or not); returns what was repaired, and refined. */
static unsigned long average(field *f, float *out[RANKS])
{
    coset_mean_report reports[RANKS];
    coset_span spans[RANKS];
    const coset_span *each[RANKS];
    for (int r = 0; r < RANKS; r++) {
        reports[r] = (coset_mean_report)COSET_MEAN_REPORT_INIT;
        spans[r] = (coset_span){1, f->x[r], out[r], DIM};
        each[r] = &spans[r];
    }
    coset_error why = COSET_ERROR_INIT;
    if (tool_mean_local(f->means, RANKS, each, 1, COSET_F32, reports, &why))
        fail_msg("%s", why.text);
    for (int r = 0; r < RANKS; r++)
        memcpy(f->out + (size_t)DIM * (size_t)r, out[r], DIM * sizeof(float));
    return (unsigned long)(reports[0].repaired + reports[0].refined);
}

static void compare(const char *protocol, double mean)
{
    coset_mean_options options = COSET_MEAN_OPTIONS_INIT;
    options.protocol = protocol;
    field *apart = field_make(RANKS, DIM, &options, 11), *over = field_make(RANKS, DIM, &options, 11);
    float *out[RANKS];
    unsigned long repaired = 0;
    for (int r = 0; r < RANKS; r++) {
        out[r] = aligned_alloc(64, (DIM * sizeof(float) + 63) / 64 * 64);
        assert_non_null(out[r]);
    }
    for (int call = 0; call < CALLS; call++) {
        const double spread[CALLS] = {1, 1, 12, 12, 0.2};
        field_fill(apart, FIELD_T3, mean, spread[call]);
        for (int r = 0; r < RANKS; r++)
            memcpy(over->x[r], apart->x[r], DIM * sizeof(float));
        repaired += average(apart, out);
        average(over, over->x);
        assert_memory_equal(apart->out, over->out, sizeof(float) * DIM * RANKS);
        assert_memory_equal(apart->out, apart->out + DIM, sizeof(float) * DIM);
    }
    printf("%s, mean %g: %lu blocks repaired or refined\n", protocol, mean, repaired);
    assert_true(repaired > 0);
    for (int r = 0; r < RANKS; r++)
        free(out[r]);
    field_free(apart);
    field_free(over);
}

static void in_place_or_not(void **state)
{
    (void)state;
    compare("sharded-star", 30);
    compare("homomorphic", 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_place_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
