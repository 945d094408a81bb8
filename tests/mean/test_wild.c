/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors whose parts move by orders of magnitude from call to call, small ones above all, where frames have room for few
 * surprises: a call must always end, with the right mean. (Training a small model met "blocks are still missing after all
 * repairs" once in a thousand steps: a block whose code had been absent, or not decodable by a few more digits, was asked for
 * once too often.)
 */
#include "unit.h"

#include "mean/field.h"

#include <math.h>
#include <stdio.h>

static double power(field *f, double decades)
{
    return pow(10, decades * (2 * field_uniform(f) - 1));
}

/* Parts of random length, each with a mean, a spread and a shape of its own; some parts zero, some alike on all ranks. */
static void fill_wildly(field *f, double decades)
{
    for (size_t first = 0, count; first < f->dim; first += count) {
        count = 1 + (size_t)(field_uniform(f) * (double)(f->dim / 3 + 1));
        count = count < f->dim - first ? count : f->dim - first;
        double kind = field_uniform(f), mean = power(f, decades), spread = power(f, decades);
        field_fill_part(f, kind < 0.5 ? FIELD_GAUSS : FIELD_T3, kind < 0.1 ? 0 : mean, kind > 0.9 ? 0 : spread, first,
                        count);
    }
}

static void calls_always_end(void **state)
{
    (void)state;
    uint64_t repaired = 0, most = 0, calls = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
        int ranks = 2 + (int)(seed % 3);
        size_t dim = 1 + (size_t)(seed * 7919 % 20000);
        if (seed % 4 == 0)
            o.bits = 3;
        else
            o.error_budget = seed % 4 == 1 ? 0.05 : 0.5;
        field *f = field_make(ranks, dim, &o, seed);
        for (int call = 0; call < 25; call++, calls++) {
            fill_wildly(f, seed % 2 ? 0.5 : 3);
            field_result r = field_average(f);
            assert_true(r.identical);
            assert_true(isfinite(r.mse));
            assert_true(r.report.transfers <= 10); /* two more for a first call */
            repaired += r.report.repaired + r.report.refined;
            most = r.report.transfers > most ? r.report.transfers : most;
        }
        field_free(f);
    }
    printf("%llu calls, %llu repairs and refinements, at most %llu transfers\n", (unsigned long long)calls,
           (unsigned long long)repaired, (unsigned long long)most);
    assert_true(repaired > calls);
}

/* Parts that stay as they were for some calls, then move by decades; ranks among them that are far louder or quieter than the
 * others for a call, or zero. */
static void fill_apart(field *f, double *mean, double *spread)
{
    for (size_t first = 0, count; first < f->dim; first += count) {
        count = 1 + (size_t)(field_uniform(f) * (double)f->dim);
        count = count < f->dim - first ? count : f->dim - first;
        if (field_uniform(f) < 0.3) {
            *mean = power(f, 8);
            *spread = *mean * power(f, 6);
        }
        field_fill_part(f, FIELD_COINS, field_uniform(f) < 0.1 ? 0 : *mean, field_uniform(f) < 0.1 ? 0 : *spread, first,
                        count);
        for (int r = 0; r < f->ranks; r++) {
            double kind = field_uniform(f), scale = kind < 0.1 ? power(f, 10) : kind < 0.12 ? 0 : 1;
            for (size_t i = first; scale != 1 && i < first + count; i++)
                f->x[r][i] *= (float)scale;
        }
    }
}

/* The seeds are those of calls that ended with "blocks are still missing after all repairs": once a sender had been decoded at
 * last, or refined, others were decoded against another reference than before, and could not be any more. */
static void what_was_decoded_stays_so(void **state)
{
    (void)state;
    const uint64_t seeds[] = {1, 570, 953};
    for (unsigned s = 0; s < sizeof seeds / sizeof *seeds; s++) {
        coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
        double mean = 1, spread = 1;
        field *f = field_make(3 + (int)(seeds[s] % 6), 200 + (size_t)(seeds[s] * 7919 % 6000), &o, seeds[s]);
        for (int call = 0; call < 12; call++) {
            fill_apart(f, &mean, &spread);
            assert_true(field_average(f).identical);
        }
        field_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_always_end),
        cmocka_unit_test(what_was_decoded_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
