/* SPDX-License-Identifier: Apache-2.0 */
/* Lattice codes in the plane: decoding, its reach, dither, checksum. And the time line of DDP. */
#include "learn/plane.h"
#include "learn/timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Numbers of the form i/16 - 40: exact, both signs, and never on the border between two roundings. */
static double number(int i)
{
    return i / 16.0 - 40 + 1.0 / 64;
}

static void decodes_the_nearest_of_the_colour(void **state)
{
    (void)state;
    for (int q = 2; q <= 9; q++)
        for (int colour = 0; colour < q; colour++)
            for (int i = 0; i < 1280; i += 3) {
                double own = number(i);
                int got = learn_decode1(colour, own, 1, q);
                assert_int_equal(learn_colour(got, q), colour);
                for (int k = -60; k <= 60; k++)
                    if (learn_colour(k, q) == colour)
                        assert_true(fabs(got - own) <= fabs(k - own));
            }
}

/* Within the reach decoding is right for every rounding; further than q/2 steps from the point it is wrong by a multiple of q. */
static void the_reach_is_the_reach(void **state)
{
    (void)state;
    for (int q = 2; q <= 8; q++)
        for (int i = 400; i < 416; i++)
            for (int far = -160; far <= 160; far++) {
                double x = number(i), own = x + far / 16.0;
                int sent = learn_round(x), got = learn_decode1(learn_colour(sent, q), own, 1, q);
                if (fabs(own - x) <= learn_reach(1, q))
                    assert_int_equal(got, sent);
                if (fabs(own - sent) > q / 2.0)
                    assert_int_not_equal(got, sent);
                assert_int_equal((got - sent) % q, 0);
            }
}

/* The reach is tight: a little more is wrong for some rounding. */
static void the_reach_is_tight(void **state)
{
    (void)state;
    for (int q = 2; q <= 8; q++) {
        double x = 0.499, own = x - learn_reach(1, q) - 0.01; /* rounds down to 0; the key is above -q/2 */
        assert_int_equal(learn_decode1(0, own, 1, q), 0);
        x = 0.501; /* rounds up to 1, half a step away from x */
        own = x - learn_reach(1, q) - 0.01;
        assert_int_not_equal(learn_decode1(learn_colour(1, q), own, 1, q), 1);
    }
}

static void step_and_reach_belong_together(void **state)
{
    (void)state;
    for (int q = 2; q <= 256; q++)
        assert_true(fabs(learn_reach(learn_step(3, q), q) - 3) < 1e-12);
}

/* Over all dithers the errors have mean 0 and mean square step^2/12, whatever x is. */
static void dither_is_unbiased(void **state)
{
    (void)state;
    enum { DITHERS = 10000 };
    for (int i = 0; i < 50; i++) {
        double x = 0.0317 * i - 0.7, sum = 0, squares = 0, step = 0.8;
        for (int j = 0; j < DITHERS; j++) {
            double error = learn_dithered(x, step * (j + 0.5) / DITHERS, step) - x;
            assert_true(fabs(error) <= step / 2 + 1e-12);
            sum += error;
            squares += error * error;
        }
        assert_true(fabs(sum / DITHERS) < 1e-3 * step);
        assert_true(fabs(squares / DITHERS / learn_error(step) - 1) < 1e-3);
    }
}

/* In the lessons' plane no wrong point of the right colour has the right checksum. */
static void checksum_sees_every_wrong_point(void **state)
{
    (void)state;
    for (int k1 = 0; k1 < LEARN_PLANE_WIDTH; k1++)
        for (int k2 = 0; k2 < LEARN_PLANE_HEIGHT; k2++)
            for (int d1 = -3; d1 <= 3; d1++)
                for (int d2 = -3; d2 <= 3; d2++) {
                    learn_point z = {k1, k2}, other = {k1 + LEARN_Q * d1, k2 + LEARN_Q * d2};
                    assert_int_equal(learn_letter(z, LEARN_Q), learn_letter(other, LEARN_Q));
                    if (d1 || d2)
                        assert_int_not_equal(learn_checksum(z), learn_checksum(other));
                }
}

static void the_example_is_an_example(void **state)
{
    (void)state;
    learn_point z = learn_nearest(learn_sender, 1);
    learn_point near = learn_decode(z, learn_near, 1, LEARN_Q), far = learn_decode(z, learn_far, 1, LEARN_Q);
    assert_true(fabs(learn_near.x - learn_sender.x) <= learn_reach(1, LEARN_Q));
    assert_true(fabs(learn_near.y - learn_sender.y) <= learn_reach(1, LEARN_Q));
    assert_true(near.k1 == z.k1 && near.k2 == z.k2);
    assert_true(fabs(learn_far.x - learn_sender.x) > learn_reach(1, LEARN_Q));
    assert_true(far.k1 == z.k1 + LEARN_Q && far.k2 == z.k2);
}

static void check_timeline(const learn_plan *plan)
{
    learn_timeline t;
    learn_run(plan, &t);
    double comm = 0;
    size_t bytes = 0, all = 0;
    for (int b = 0; b < t.buckets; b++) {
        const learn_bucket *k = &t.bucket[b];
        double factor = 2.0 * (plan->ranks - 1) / plan->ranks, steps = 2 * (plan->ranks - 1);
        double seconds = steps * plan->link.latency_s + factor * (double)k->bytes / plan->link.bytes_per_s;
        assert_true(k->start_s >= k->full_s);
        assert_true(b == 0 || k->start_s >= t.bucket[b - 1].done_s);
        assert_true(k->start_s == k->full_s || k->start_s == t.bucket[b - 1].done_s);
        assert_true(fabs(k->done_s - k->start_s - seconds) < 1e-9);
        assert_int_equal(k->last, b == 0 ? LEARN_LAYERS - 1 : t.bucket[b - 1].first - 1);
        comm += seconds;
        bytes += k->bytes;
    }
    for (int layer = 0; layer < LEARN_LAYERS; layer++)
        all += plan->layer_bytes[layer];
    assert_int_equal(bytes, all);
    assert_int_equal(t.bucket[t.buckets - 1].first, 0);
    assert_true(fabs(t.comm_s - comm) < 1e-9);
    assert_true(fabs(t.exposed_s - (t.bucket[t.buckets - 1].done_s - t.backward_s)) < 1e-12);
}

static void timelines_add_up(void **state)
{
    (void)state;
    learn_timeline one, four, tail;
    for (int i = 0; i < LEARN_PLANS; i++)
        check_timeline(&learn_plans[i]);
    learn_run(&learn_plans[LEARN_PLAN_ONE], &one);
    learn_run(&learn_plans[LEARN_PLAN_FOUR], &four);
    learn_run(&learn_plans[LEARN_PLAN_TAIL], &tail);
    assert_true(one.exposed_s == one.comm_s);
    assert_true(tail.exposed_s < four.exposed_s && four.exposed_s < one.exposed_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_the_nearest_of_the_colour),
        cmocka_unit_test(the_reach_is_the_reach),
        cmocka_unit_test(the_reach_is_tight),
        cmocka_unit_test(step_and_reach_belong_together),
        cmocka_unit_test(dither_is_unbiased),
        cmocka_unit_test(checksum_sees_every_wrong_point),
        cmocka_unit_test(the_example_is_an_example),
        cmocka_unit_test(timelines_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
