/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small calls: all frames are as large as the largest share of an owner, so a few large blocks would be dealt badly; they are cut
 * smaller. Bits of both phases, everything counted, beside the 64 of plain f32.
 */
#include "mean/field.h"

#include "../../tools/mean/local.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coset_mean_options defaults(void)
{
    return (coset_mean_options)COSET_MEAN_OPTIONS_INIT;
}

/* After the first call, whose sketch weighs on small tensors. With whole blocks alone the first would take 13.5. */
static void few_blocks_are_dealt_evenly(void **state)
{
    (void)state;
    const struct {
        int ranks;
        size_t dim;
        double mean, most;
    } cases[] = {
        {2, 4096, 0, 8.1},   {4, 8192, 0, 8.4},   {4, 12288, 10, 9.7}, {8, 16384, 0, 8.5},
        {8, 9000, 10, 14.5}, {32, 65536, 0, 8.6}, {8, 1024, 0, 43},    {4, 512, 0, 43},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        coset_mean_options o = defaults();
        field *f = field_make(cases[c].ranks, cases[c].dim, &o, 17);
        double bits = 0;
        enum { CALLS = 5 };
        for (int call = 0; call <= CALLS; call++) {
            field_fill(f, FIELD_GAUSS, cases[c].mean, 1);
            field_result r = field_average(f);
            assert_true(r.identical);
            bits += call ? r.bits / CALLS : 0;
        }
        printf("%2d ranks, %5zu coordinates, mean %2g: %.2f bits\n", cases[c].ranks, cases[c].dim, cases[c].mean, bits);
        assert_true(bits <= cases[c].most);
        field_free(f);
    }
}

/* Where headers alone would take the bits that are given, codes keep three quarters of them. EDEN: 31. */
static void given_bits_are_for_codes(void **state)
{
    (void)state;
    for (size_t dim = 1024; dim <= 65536; dim *= 8) {
        coset_mean_options o = defaults();
        o.bits = 4;
        field *f = field_make(32, dim, &o, 31);
        double excess = 0;
        for (int call = 0; call < 3; call++) {
            field_fill(f, FIELD_GAUSS, 10, 1);
            field_result r = field_average(f);
            assert_true(r.identical);
            excess += r.excess / 3;
        }
        printf("32 ranks, %5zu coordinates, mean 10, 4 bits: excess %.3f\n", dim, excess);
        assert_true(excess <= (dim < 65536 ? 15 : 0.8));
        field_free(f);
    }
}

/* Frames are sized for what is to be expected, and little more: statistics that stay take two transfers nearly always. */
static void frames_suffice(void **state)
{
    (void)state;
    const size_t dims[] = {1100, 2500, 5000, 7000, 15000, 40000};
    int calls = 0, more = 0;
    for (int ranks = 2; ranks <= 8; ranks *= 2)
        for (unsigned d = 0; d < sizeof dims / sizeof *dims; d++)
            for (int mean = 0; mean < 3; mean++) {
                coset_mean_options o = defaults();
                field *f = field_make(ranks, dims[d], &o, 29);
                for (int call = 0; call < 12; call++) {
                    field_fill(f, FIELD_GAUSS, mean == 2 ? 10 : mean, 1);
                    field_result r = field_average(f);
                    calls += call > 1;
                    more += call > 1 && r.report.transfers > 2;
                }
                field_free(f);
            }
    printf("%d calls, %d of them with more than two transfers\n", calls, more);
    assert_true(more <= 0.02 * calls);
}

/* Blocks keep their size, whatever else is in later calls, and in a saved state. */
static void tensors_come_and_go(void **state)
{
    (void)state;
    enum { RANKS = 4, CALLS = 6, TENSORS = 3 };
    const size_t count[TENSORS] = {3000, 200000, 700}, all = 203700;
    const unsigned in_call[CALLS] = {1, 3, 7, 6, 5, 7}; /* bit i: tensor i */
    coset_mean_options o = defaults();
    field *f = field_make(RANKS, all, &o, 3), *twin = field_make(RANKS, 1, &o, 4);
    float *second = malloc(RANKS * all * sizeof *second);
    assert_non_null(second);
    for (int call = 0; call < CALLS; call++) {
        coset_span spans[2][RANKS][TENSORS];
        const coset_span *each[2][RANKS];
        size_t nspans = 0;
        field_fill(f, FIELD_GAUSS, 2, 1);
        for (int r = 0; r < RANKS; r++) {
            size_t at = 0;
            nspans = 0;
            for (int t = 0; t < TENSORS; at += count[t++])
                if (in_call[call] >> t & 1) {
                    spans[0][r][nspans] =
                        (coset_span){(uint64_t)t, f->x[r] + at, f->out + all * (size_t)r + at, count[t]};
                    spans[1][r][nspans] = spans[0][r][nspans];
                    spans[1][r][nspans++].recv = second + all * (size_t)r + at;
                }
            each[0][r] = spans[0][r];
            each[1][r] = spans[1][r];
        }
        coset_error why = COSET_ERROR_INIT;
        if (tool_mean_local(f->means, RANKS, each[0], nspans, COSET_F32, NULL, &why))
            fail_msg("%s", why.text);
        for (size_t i = 0; i < nspans; i++)
            for (int r = 1; r < RANKS; r++)
                assert_memory_equal(spans[0][r][i].recv, spans[0][0][i].recv, spans[0][0][i].count * sizeof(float));
        /* the twin loads before every call but the first what the others had saved then, and gets the same */
        if (call > 0 && tool_mean_local(twin->means, RANKS, each[1], nspans, COSET_F32, NULL, &why))
            fail_msg("%s", why.text);
        for (size_t i = 0; call > 0 && i < nspans; i++)
            assert_memory_equal(spans[0][0][i].recv, spans[1][0][i].recv, spans[0][0][i].count * sizeof(float));
        size_t bytes = 0;
        assert_int_equal(coset_mean_save(f->means[1], NULL, &bytes), COSET_OK);
        void *saved = malloc(bytes);
        assert_int_equal(coset_mean_save(f->means[1], saved, &bytes), COSET_OK);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(coset_mean_load(twin->means[r], saved, bytes), COSET_OK);
        free(saved);
    }
    free(second);
    field_free(f);
    field_free(twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_blocks_are_dealt_evenly),
        cmocka_unit_test(given_bits_are_for_codes),
        cmocka_unit_test(frames_suffice),
        cmocka_unit_test(tensors_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
