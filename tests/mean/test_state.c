/* SPDX-License-Identifier: Apache-2.0 */
/* Saved state, processor levels, misuse: what is remembered, what must be the same, what is refused. */
#include "mean/field.h"
#include "../../tools/mean/local.h"
#include "cpu/cpu.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, DIM = 20000 };

static coset_mean_options options_with(double budget, uint64_t seed)
{
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    o.error_budget = budget;
    o.seed = seed;
    return o;
}

static uint8_t *saved(const coset_mean *mean, size_t *bytes)
{
    *bytes = 0;
    assert_int_equal(coset_mean_save(mean, NULL, bytes), COSET_OK);
    uint8_t *buffer = malloc(*bytes);
    size_t room = *bytes - 1;
    assert_int_equal(coset_mean_save(mean, buffer, &room), COSET_ERR_ARGUMENT);
    assert_int_equal(room, *bytes);
    assert_int_equal(coset_mean_save(mean, buffer, bytes), COSET_OK);
    return buffer;
}

/* A job that loads goes on exactly as the one that saved. */
static void a_loaded_job_goes_on(void **state)
{
    (void)state;
    coset_mean_options o = options_with(0.05, 4);
    field *a = field_make(RANKS, DIM, &o, 1), *b = field_make(RANKS, DIM, &o, 2);
    for (int call = 0; call < 2; call++) {
        field_fill(a, FIELD_GAUSS, 3, 1);
        field_average(a);
    }
    size_t bytes;
    uint8_t *state_bytes = saved(a->means[0], &bytes), *same = saved(a->means[2], &bytes);
    assert_memory_equal(state_bytes, same, bytes); /* any rank's will do */
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(coset_mean_load(b->means[r], state_bytes, bytes), COSET_OK);
    field_fill(a, FIELD_GAUSS, 3, 1);
    for (int r = 0; r < RANKS; r++)
        memcpy(b->x[r], a->x[r], DIM * sizeof(float));
    field_result one = field_average(a), two = field_average(b);
    assert_int_equal(one.report.transfers, 2); /* no sketch */
    assert_int_equal(two.report.transfers, 2);
    assert_memory_equal(a->out, b->out, DIM * sizeof(float));
    free(state_bytes);
    free(same);
    field_free(a);
    field_free(b);
}

static void damaged_and_foreign_states_are_refused(void **state)
{
    (void)state;
    coset_mean_options o = options_with(0.05, 4), other = options_with(0.06, 4);
    field *a = field_make(RANKS, DIM, &o, 1), *b = field_make(RANKS, DIM, &other, 1),
          *fewer = field_make(2, DIM, &o, 1);
    field_fill(a, FIELD_GAUSS, 3, 1);
    field_average(a);
    size_t bytes;
    uint8_t *good = saved(a->means[0], &bytes);
    assert_int_equal(coset_mean_load(b->means[0], good, bytes), COSET_ERR_MISMATCH);
    assert_int_equal(coset_mean_load(fewer->means[0], good, bytes), COSET_ERR_MISMATCH);
    for (size_t i = 0; i < bytes; i++) {
        good[i] ^= 0x10;
        assert_int_not_equal(coset_mean_load(a->means[0], good, bytes), COSET_OK);
        good[i] ^= 0x10;
    }
    for (size_t n = 0; n < bytes; n++)
        assert_int_equal(coset_mean_load(a->means[0], good, n), COSET_ERR_CORRUPT);
    uint8_t *longer = test_malloc(bytes + 1);
    memcpy(longer, good, bytes);
    longer[bytes] = 0;
    assert_int_equal(coset_mean_load(a->means[0], longer, bytes + 1), COSET_ERR_CORRUPT);
    test_free(longer);
    assert_int_equal(coset_mean_load(a->means[0], NULL, 5), COSET_ERR_ARGUMENT);
    /* and none of that has changed anything */
    size_t again;
    uint8_t *kept = saved(a->means[0], &again);
    assert_int_equal(again, bytes);
    assert_memory_equal(kept, good, bytes);
    free(kept);
    free(good);
    field_free(a);
    field_free(b);
    field_free(fewer);
}

static void a_rank_without_the_state_is_a_mismatch(void **state)
{
    (void)state;
    coset_mean_options o = options_with(0.05, 4);
    field *f = field_make(2, 500, &o, 1); /* small: no sketch, so that both ask for the same first transfer */
    field_fill(f, FIELD_GAUSS, 3, 1);
    field_average(f);
    coset_mean_destroy(f->means[1]);
    assert_int_equal(coset_mean_create(1, 2, &o, &f->means[1], NULL), COSET_OK);
    coset_span spans[2] = {{1, f->x[0], f->out, 500}, {1, f->x[1], f->out + 500, 500}};
    const coset_span *each[2] = {&spans[0], &spans[1]};
    coset_error why = COSET_ERROR_INIT;
    assert_int_equal(tool_mean_local(f->means, 2, each, 1, COSET_F32, NULL, &why), COSET_ERR_MISMATCH);
    field_free(f);
}

/* Ranks on different processors: every level that this machine has, one rank each, in every protocol that runs kernels. */
static void processors_may_differ(void **state)
{
    (void)state;
    const cst_cpu best = cst_cpu_level(), levels[] = {CST_CPU_SCALAR, CST_CPU_AVX2, CST_CPU_AVX512, CST_CPU_NEON};
    const struct {
        const char *protocol, *codec;
        double mean;
    } cases[] = {{NULL, NULL, 0},        {NULL, NULL, 10},          {NULL, NULL, 1e6},
                 {NULL, "lattice:z", 3}, {"homomorphic", NULL, 10}, {NULL, "eden", 0}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        coset_mean_options o = options_with(0.05, 4);
        o.protocol = cases[i].protocol;
        o.codec = cases[i].codec;
        field *f = field_make(4, DIM, &o, 6);
        int differ = 0;
        for (int r = 0; r < 4; r++) {
            if (!cst_cpu_has(levels[r]))
                continue;
            cst_cpu_set_for_test(levels[r]);
            coset_mean_destroy(f->means[r]);
            assert_int_equal(coset_mean_create(r, 4, &o, &f->means[r], NULL), COSET_OK);
            differ++;
        }
        cst_cpu_set_for_test(best);
        for (int call = 0; call < 3; call++) {
            field_fill(f, FIELD_GAUSS, cases[i].mean, 1);
            field_result r = field_average(f);
            assert_true(r.identical);
        }
        printf("%d levels, %s, mean %g: the same bits\n", differ, cases[i].codec ? cases[i].codec : "lattice",
               cases[i].mean);
        field_free(f);
    }
}

static void misuse_is_refused(void **state)
{
    (void)state;
    coset_mean_options o = options_with(0.05, 4);
    coset_mean *mean;
    coset_round *round, *second;
    coset_xfer x = COSET_XFER_INIT;
    float a[100] = {0}, b[100];
    assert_int_equal(coset_mean_create(0, 2, &o, &mean, NULL), COSET_OK);
    coset_span twice[2] = {{7, a, b, 50}, {7, a + 50, b + 50, 50}}, overlap = {7, a, a + 1, 50},
               null = {7, NULL, b, 50}, good = {7, a, b, 100};
    assert_int_equal(coset_mean_begin(mean, twice, 2, COSET_F32, &round), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_begin(mean, &overlap, 1, COSET_F32, &round), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_begin(mean, &null, 1, COSET_F32, &round), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_begin(mean, &good, 1, COSET_I32, &round), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_begin(NULL, &good, 1, COSET_F32, &round), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_begin(mean, &good, 1, COSET_F32, &round), COSET_OK);
    assert_int_equal(coset_mean_begin(mean, &good, 1, COSET_F32, &second), COSET_ERR_ARGUMENT); /* busy */
    size_t bytes = 0;
    uint8_t room[4096];
    bytes = sizeof room;
    assert_int_equal(coset_mean_save(mean, room, &bytes), COSET_ERR_ARGUMENT); /* a round is under way */
    assert_int_equal(coset_mean_load(mean, room, 10), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_next(round, &x), COSET_OK);
    assert_int_equal(x.kind, COSET_XFER_ALLTOALL);
    assert_int_equal(coset_mean_end(round, NULL), COSET_ERR_ARGUMENT);               /* not finished */
    assert_int_equal(coset_mean_begin(mean, &good, 1, COSET_F32, &round), COSET_OK); /* free again */
    /* nothing came from the engine: that is no frame */
    assert_int_equal(coset_mean_next(round, &x), COSET_OK);
    memset(x.recv, 0, 2 * x.bytes);
    assert_int_equal(coset_mean_next(round, &x), COSET_ERR_CORRUPT);
    assert_int_equal(coset_mean_next(round, &x), COSET_ERR_CORRUPT);
    assert_int_equal(coset_mean_end(round, NULL), COSET_ERR_CORRUPT);
    coset_mean_destroy(mean);
    assert_int_equal(coset_mean_create(2, 2, &o, &mean, NULL), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_create(-1, 2, &o, &mean, NULL), COSET_ERR_ARGUMENT);
    assert_int_equal(coset_mean_create(0, 70000, &o, &mean, NULL), COSET_ERR_ARGUMENT);
}

/* The objective "time": nothing is compressed for a quick link; Z before E8 for a middling one; fewest bits for a slow one. */
static void time_decides(void **state)
{
    (void)state;
    double bits[3];
    const double links[] = {10, 1, 0.001};
    for (int i = 0; i < 3; i++) {
        coset_mean_options o = options_with(0.05, 4);
        o.objective = COSET_OBJECTIVE_TIME;
        o.link_gbps = links[i];
        field *f = field_make(4, 1 << 16, &o, 6);
        for (int call = 0; call < 2; call++) {
            field_fill(f, FIELD_GAUSS, 10, 1);
            field_result r = field_average(f);
            assert_true(r.identical);
            assert_int_equal(r.report.plain, i == 0);
            assert_true(i == 0 ? r.excess < 1e-10 : r.excess > 0.03 && r.excess < 0.052);
            bits[i] = r.bits;
        }
        field_free(f);
    }
    printf("bits at 10, 1 and 0.001 GB/s: %.2f %.2f %.2f\n", bits[0], bits[1], bits[2]);
    assert_true(bits[0] > 64 && bits[1] > bits[2] + 0.5 && bits[2] < 10);
    coset_mean_options o = options_with(0.05, 4);
    coset_mean *mean;
    o.objective = COSET_OBJECTIVE_TIME;
    assert_int_equal(coset_mean_create(0, 2, &o, &mean, NULL), COSET_ERR_ARGUMENT);
}

/* Exact means of every float type, 16-bit floats summed in f32 and rounded once. */
static void nothing_compressed(void **state)
{
    (void)state;
    coset_mean_options o = options_with(0, 0);
    o.codec = "none";
    const size_t counts[] = {1, 1023, 1025, 5000};
    for (unsigned c = 0; c < 4; c++) {
        field *f = field_make(3, counts[c], &o, 8);
        field_fill(f, FIELD_GAUSS, 1, 1);
        f->x[1][0] = INFINITY;
        field_result r = field_average(f);
        assert_true(r.identical);
        assert_true(f->out[0] == INFINITY);
        for (size_t i = 1; i < counts[c]; i++)
            assert_true(f->out[i] == ((f->x[0][i] + f->x[1][i]) + f->x[2][i]) / 3.0f);
        field_free(f);
    }
}

static void one_rank_and_no_elements(void **state)
{
    (void)state;
    coset_mean *mean;
    coset_round *round;
    coset_xfer x = COSET_XFER_INIT;
    coset_mean_report report = COSET_MEAN_REPORT_INIT;
    float a[3] = {1, 2, 3}, b[3] = {0};
    coset_span span = {1, a, b, 3}, none = {2, NULL, NULL, 0};
    assert_int_equal(coset_mean_create(0, 1, NULL, &mean, NULL), COSET_OK);
    assert_int_equal(coset_mean_begin(mean, &span, 1, COSET_F32, &round), COSET_OK);
    assert_int_equal(coset_mean_next(round, &x), COSET_OK);
    assert_int_equal(x.kind, COSET_XFER_DONE);
    assert_int_equal(coset_mean_end(round, &report), COSET_OK);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(report.coords, 3);
    assert_int_equal(report.bits_sent, 0);
    coset_mean_destroy(mean);
    assert_int_equal(coset_mean_create(0, 2, NULL, &mean, NULL), COSET_OK);
    assert_int_equal(coset_mean_begin(mean, &none, 1, COSET_F32, &round), COSET_OK);
    assert_int_equal(coset_mean_next(round, &x), COSET_OK);
    assert_int_equal(x.kind, COSET_XFER_DONE);
    assert_int_equal(coset_mean_end(round, NULL), COSET_OK);
    assert_int_equal(coset_mean_begin(mean, NULL, 0, COSET_F32, &round), COSET_OK);
    assert_int_equal(coset_mean_next(round, &x), COSET_OK);
    assert_int_equal(coset_mean_end(round, NULL), COSET_OK);
    coset_mean_destroy(mean);
    coset_mean_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_job_goes_on),
        cmocka_unit_test(damaged_and_foreign_states_are_refused),
        cmocka_unit_test(a_rank_without_the_state_is_a_mismatch),
        cmocka_unit_test(processors_may_differ),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(time_decides),
        cmocka_unit_test(nothing_compressed),
        cmocka_unit_test(one_rank_and_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
