/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels beside the codes at 25 MiB: headers, descriptors, statistics, checksums and sketches are under 2 % of all bytes,
 * the first call included; with what frames leave unused, under 3 %.
 */
#include "mean/field.h"
#include "unit.h"

#include "codec/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, DIM = 25 * 1024 * 1024 / 4, CALLS = 2 };

typedef struct {
    double all, codes, unused,
        sketches; /* bytes that the ranks sent, and among them payloads, what frames leave unused, and
                                            sketches */
} traffic;

static void look_at(const uint8_t *frame, size_t bytes, traffic *t)
{
    cst_frame_header h;
    t->all += (double)bytes;
    if (cst_frame_open(frame, bytes, &h, NULL) == COSET_OK)
        t->codes += (double)(h.used - h.payload), t->unused += (double)(bytes - h.used);
    else
        t->sketches += (double)bytes;
}

/* Carries one transfer; a rank's own block does not travel. */
static void carry(coset_xfer x[RANKS], traffic *t)
{
    size_t bytes = x[0].bytes;
    for (int from = 0; from < RANKS; from++)
        for (int to = 0; to < RANKS; to++) {
            bool direct = x[0].kind == COSET_XFER_ALLTOALL;
            const uint8_t *source = (const uint8_t *)x[from].send + (direct ? bytes * (size_t)to : 0);
            memcpy((uint8_t *)x[to].recv + bytes * (size_t)from, source, bytes);
            if (from != to)
                look_at(source, bytes, t);
        }
}

static void call(field *f, traffic *t)
{
    coset_round *round[RANKS];
    coset_xfer x[RANKS];
    double reported = 0, before = t->all;
    for (int r = 0; r < RANKS; r++) {
        coset_span span = {1, f->x[r], f->x[r], f->dim};
        assert_int_equal(coset_mean_begin(f->means[r], &span, 1, COSET_F32, &round[r]), COSET_OK);
    }
    do {
        for (int r = 0; r < RANKS; r++) {
            x[r] = (coset_xfer)COSET_XFER_INIT;
            assert_int_equal(coset_mean_next(round[r], &x[r]), COSET_OK);
        }
        if (x[0].kind != COSET_XFER_DONE)
            carry(x, t);
    } while (x[0].kind != COSET_XFER_DONE);
    for (int r = 0; r < RANKS; r++) {
        coset_mean_report report = COSET_MEAN_REPORT_INIT;
        assert_int_equal(coset_mean_end(round[r], &report), COSET_OK);
        assert_int_equal(report.bits_sent, report.bits_received);
        reported += (double)report.bits_sent / 8;
    }
    assert_true(reported == t->all - before);
}

static void little_beside_the_codes(void **state)
{
    (void)state;
    for (int mean = 0; mean <= 10; mean += 10) {
        coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
        field *f = field_make(RANKS, DIM, &o, 41);
        traffic t = {0};
        for (int k = 0; k < CALLS; k++) {
            field_fill(f, FIELD_GAUSS, mean, 1);
            call(f, &t);
        }
        double side = t.all - t.codes - t.unused;
        printf(
            "mean %2d: %.3f bits per coordinate, of them beside the codes %.2f %% (sketches %.2f %%), unused %.2f %%\n",
            mean, 8 * t.all / CALLS / DIM, 100 * side / t.all, 100 * t.sketches / t.all, 100 * t.unused / t.all);
        assert_true(side <= 0.02 * t.all);
        assert_true(side + t.unused <= 0.03 * t.all);
        field_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(little_beside_the_codes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
