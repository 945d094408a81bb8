/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "train/digits.h"
#include "train/optimizer.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void the_data_are_what_the_source_says(void **state)
{
    (void)state;
    digits d;
    size_t line, per_class[DIGITS_CLASSES] = {0};
    assert_int_equal(digits_parse(tool_digits_csv, &d, &line), 0);
    assert_int_equal(d.count, 1797);
    for (size_t i = 0; i < d.count; i++) {
        per_class[d.label[i]]++;
        for (int p = 0; p < DIGITS_PIXELS; p++)
            assert_true(d.pixels[i][p] >= 0 && d.pixels[i][p] <= 1);
    }
    static const size_t published[DIGITS_CLASSES] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    assert_memory_equal(per_class, published, sizeof published);
    digits_free(&d);
}

static void wrong_lines_are_named(void **state)
{
    (void)state;
    char good[256] = "", text[1024];
    for (int i = 0; i < DIGITS_PIXELS; i++)
        strcat(good, "5,");
    strcat(good, "7\n");
    static const char *const bad[] = {"", "1,2,3\n", "x\n", "17,\n", "-1,\n"};
    digits d;
    size_t line;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "%s%s%s%s", good, good, bad[i], i ? good : "\n");
        assert_int_equal(digits_parse(text, &d, &line), -1);
        assert_int_equal(line, 3);
    }
    assert_int_equal(digits_parse("", &d, &line), -1);
    snprintf(text, sizeof text, "%s%.100s", good, good); /* cut in the middle */
    assert_int_equal(digits_parse(text, &d, &line), -1);
    for (size_t cut = 0; cut < strlen(good); cut++) {
        snprintf(text, sizeof text, "%.*s", (int)cut, good);
        assert_int_equal(digits_parse(text, &d, &line), -1);
    }
    assert_int_equal(digits_parse(good, &d, &line), 0);
    digits_free(&d);
}

static void shards_are_disjoint_and_complete(void **state)
{
    (void)state;
    enum { SAMPLES = 1437 };
    for (int ranks = 1; ranks <= 9; ranks++) {
        static int seen[2 * SAMPLES];
        size_t total = 0;
        memset(seen, 0, sizeof seen);
        for (int r = 0; r < ranks; r++) {
            batches b;
            assert_int_equal(batches_create(&b, 7, r, ranks, SAMPLES, 64), 0);
            for (size_t step = 0; step < 3 * b.steps_per_epoch; step++) {
                const size_t *samples = batches_at(&b, step);
                for (size_t i = 0; i < b.batch; i++) {
                    assert_true(samples[i] < SAMPLES);
                    assert_int_equal(samples[i] % (size_t)ranks, r);
                    if (step < b.steps_per_epoch)
                        assert_int_equal(seen[samples[i]]++, 0); /* once in the first epoch */
                }
            }
            total += b.batch;
            batches_free(&b);
        }
        assert_int_equal(total, 64);
    }
}

static void impossible_batches_are_refused(void **state)
{
    (void)state;
    batches b;
    assert_int_equal(batches_create(&b, 1, 0, 8, 1437, 7), -2);  /* a rank without samples */
    assert_int_equal(batches_create(&b, 1, 0, 4, 100, 200), -2); /* no full batch */
    assert_int_equal(batches_create(&b, 1, 0, 1, 100, 100), 0);
    batches_free(&b);
}

static float **pointers(const model *m, float *flat)
{
    size_t params = m->params > 0 ? (size_t)m->params : 0;
    float **p = calloc(params, sizeof *p);
    for (int i = 0; i < m->params; i++) {
        p[i] = flat;
        flat += m->param[i].count;
    }
    return p;
}

/*
 * The gradient against the difference quotient of the loss, at random weights of each parameter. Float rounding of the
 * loss is about 1e-7, so with a step of 1e-2 the quotient is good to 1e-4 where no ReLU switches; a wrong gradient
 * misses by its own size.
 */
static void the_gradient_is_the_derivative_of_the_loss(void **state)
{
    (void)state;
    enum { SAMPLES = 8 };
    const size_t samples[SAMPLES] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float h = 1e-2f;
    model *m = mlp_ops.create(3);
    float *weights = calloc(model_total(m), sizeof *weights), *grads = calloc(model_total(m), sizeof *grads),
          *scratch = calloc(model_total(m), sizeof *scratch);
    float **w = pointers(m, weights), **g = pointers(m, grads), **s = pointers(m, scratch);
    mlp_ops.init(m, 3, w);
    mlp_ops.gradient(m, w, samples, SAMPLES, 1, g, NULL, NULL);
    for (int p = 0; p < m->params; p++) {
        int far = 0;
        enum { TRIES = 40 };
        for (size_t t = 0; t < TRIES; t++) {
            size_t i = (t * 7919 + 13) % m->param[p].count;
            float keep = w[p][i];
            w[p][i] = keep + h;
            double up = mlp_ops.gradient(m, w, samples, SAMPLES, 1, s, NULL, NULL);
            w[p][i] = keep - h;
            double down = mlp_ops.gradient(m, w, samples, SAMPLES, 1, s, NULL, NULL);
            w[p][i] = keep;
            double quotient = (up - down) / (2 * (double)h);
            far += fabs(quotient - (double)g[p][i]) > 1e-3 + 0.02 * fabs(quotient);
        }
        assert_in_range(far, 0, 4); /* a ReLU may switch within the step now and then */
    }
    free(w);
    free(g);
    free(s);
    free(weights);
    free(grads);
    free(scratch);
    mlp_ops.destroy(m);
}

static void count_ready(void *ctx, int param)
{
    int *next = ctx;
    assert_int_equal(param, *next);
    (*next)--;
}

static void every_gradient_is_announced_last_layer_first(void **state)
{
    (void)state;
    model *m = mlp_ops.create(1);
    learner l;
    assert_int_equal(learner_create(&l, m, 1, NULL), 0);
    int next = m->params - 1;
    const size_t sample = 0;
    mlp_ops.gradient(m, l.weight, &sample, 1, 1, l.grad, count_ready, &next);
    assert_int_equal(next, -1);
    learner_free(&l);
    mlp_ops.destroy(m);
}

/* Two ranks by hand: each half of the batch with scale 2/B, then the mean, is the whole batch with scale 1/B. */
static void halves_average_to_the_whole(void **state)
{
    (void)state;
    model *m = mlp_ops.create(5);
    learner a, b, whole;
    assert_int_equal(learner_create(&a, m, 5, NULL), 0);
    assert_int_equal(learner_create(&b, m, 5, NULL), 0);
    assert_int_equal(learner_create(&whole, m, 5, NULL), 0);
    const size_t samples[8] = {10, 20, 30, 40, 50, 60, 70, 80};
    mlp_ops.gradient(m, a.weight, samples, 4, 2.0f / 8, a.grad, NULL, NULL);
    mlp_ops.gradient(m, b.weight, samples + 4, 4, 2.0f / 8, b.grad, NULL, NULL);
    mlp_ops.gradient(m, whole.weight, samples, 8, 1.0f / 8, whole.grad, NULL, NULL);
    for (size_t i = 0; i < whole.total; i++)
        assert_true(fabsf((a.grads[i] + b.grads[i]) / 2 - whole.grads[i]) <= 1e-6f + 1e-5f * fabsf(whole.grads[i]));
    learner_free(&a);
    learner_free(&b);
    learner_free(&whole);
    mlp_ops.destroy(m);
}

static void training_learns_and_repeats_bit_for_bit(void **state)
{
    (void)state;
    uint64_t hashes[2];
    for (int run = 0; run < 2; run++) {
        model *m = mlp_ops.create(1);
        learner l;
        assert_int_equal(learner_create(&l, m, 1, NULL), 0);
        const train_plan plan = {.global_batch = 64, .epochs = 5, .rate = 0.1f, .momentum = 0.9f, .seed = 1};
        const train_hooks none = {0};
        train_figures figures;
        assert_int_equal(train_run(&l, &plan, 0, 3, 4, &none, &figures), 0);
        model_score score = m->ops->evaluate(m, l.weight);
        assert_true(score.accuracy > 0.9); /* 0.95 and more for twenty seeds tried */
        assert_true(figures.last_loss < 0.3);
        hashes[run] = learner_hash(&l);
        learner_free(&l);
        m->ops->destroy(m);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void the_optimizer_follows_its_formula(void **state)
{
    (void)state;
    float w[3] = {1, 2, 3}, v[3] = {0, 1, -1};
    const float g[3] = {0.5f, 0, 2};
    sgd_step(w, v, g, 3, 0.25f, 0.5f);
    const float velocity[3] = {0.5f, 0.5f, 1.5f}, weights[3] = {0.875f, 1.875f, 2.625f};
    assert_memory_equal(v, velocity, sizeof v);
    assert_memory_equal(w, weights, sizeof w);
    assert_true(falling_rate(0.5f, 0, 10) == 0.5f);
    assert_true(falling_rate(0.5f, 5, 10) == 0.25f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_are_what_the_source_says),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(shards_are_disjoint_and_complete),
        cmocka_unit_test(impossible_batches_are_refused),
        cmocka_unit_test(the_gradient_is_the_derivative_of_the_loss),
        cmocka_unit_test(every_gradient_is_announced_last_layer_first),
        cmocka_unit_test(halves_average_to_the_whole),
        cmocka_unit_test(training_learns_and_repeats_bit_for_bit),
        cmocka_unit_test(the_optimizer_follows_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
