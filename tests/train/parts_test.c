/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "train/digits.h"
#include "train/gpt.h"
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

static int losses_of(model *m, learner *l, const size_t *samples, size_t n, double *losses)
{
    return m->ops->gradient(m, l->weight, samples, n, 1, l->grad, NULL, NULL, losses);
}

static learner new_learner(model *m, uint64_t seed)
{
    learner l;
    const train_plan plan = {.seed = seed};
    assert_int_equal(learner_create(&l, m, &plan, true), 0);
    return l;
}

/* Moves parameter p by `distance` along its gradient g of norm `norm`; returns the loss there. */
static double moved_loss(model *m, learner *l, learner *scratch, int p, double norm, double distance,
                         const size_t *samples, size_t n)
{
    double losses;
    for (size_t i = 0; i < m->param[p].count; i++)
        l->weight[p][i] += (float)(distance / norm) * l->grad[p][i];
    assert_int_equal(m->ops->gradient(m, l->weight, samples, n, 1, scratch->grad, NULL, NULL, &losses), 0);
    for (size_t i = 0; i < m->param[p].count; i++)
        l->weight[p][i] -= (float)(distance / norm) * l->grad[p][i];
    return losses;
}

/*
 * For each parameter, the loss along the direction of its gradient must rise with the gradient's norm as slope: the
 * central difference is off by the cube of the step, the loss's float rounding by about 1e-6 of it. Any error in the
 * gradient shows, since a wrong component changes its norm or turns it off the steepest direction.
 */
static void check_gradient(const model_ops *ops, double step, double tolerance)
{
    enum { SAMPLES = 3 };
    const size_t samples[SAMPLES] = {0, 5, 9};
    model *m = ops->create(3);
    learner l = new_learner(m, 3), scratch = new_learner(m, 3);
    double losses;
    assert_int_equal(losses_of(m, &l, samples, SAMPLES, &losses), 0);
    for (int p = 0; p < m->params; p++) {
        double energy = 0;
        for (size_t i = 0; i < m->param[p].count; i++)
            energy += (double)l.grad[p][i] * (double)l.grad[p][i];
        double norm = sqrt(energy);
        assert_true(norm > 1e-4);
        double up = moved_loss(m, &l, &scratch, p, norm, step, samples, SAMPLES);
        double down = moved_loss(m, &l, &scratch, p, norm, -step, samples, SAMPLES);
        double slope = (up - down) / (2 * step);
        if (fabs(slope - norm) > tolerance * norm)
            fail_msg("%s: slope %g, norm of the gradient %g", m->param[p].name, slope, norm);
    }
    learner_free(&l);
    learner_free(&scratch);
    ops->destroy(m);
}

static void the_gradient_is_the_derivative_of_the_loss(void **state)
{
    (void)state;
    check_gradient(&mlp_ops, 1e-3, 0.02);
    check_gradient(&gpt_tiny_ops, 1e-2, 0.01);
}

/* One component at a time, of parameters whose position in the network is easy to get wrong. */
static void single_components_agree(void **state)
{
    (void)state;
    enum { SAMPLES = 2, TRIES = 3 };
    const size_t samples[SAMPLES] = {1, 2};
    const float h = 3e-2f;
    model *m = gpt_tiny_ops.create(5);
    learner l = new_learner(m, 5), scratch = new_learner(m, 5);
    double losses, up, down;
    assert_int_equal(losses_of(m, &l, samples, SAMPLES, &losses), 0);
    for (int p = 0; p < m->params; p++)
        for (size_t t = 0; t < TRIES; t++) {
            size_t i = (t * 7919 + 13) % m->param[p].count;
            float keep = l.weight[p][i], rate = l.grad[p][i];
            l.weight[p][i] = keep + h;
            m->ops->gradient(m, l.weight, samples, SAMPLES, 1, scratch.grad, NULL, NULL, &up);
            l.weight[p][i] = keep - h;
            m->ops->gradient(m, l.weight, samples, SAMPLES, 1, scratch.grad, NULL, NULL, &down);
            l.weight[p][i] = keep;
            double quotient = (up - down) / (2 * (double)h);
            if (fabs(quotient - (double)rate) > 2e-3 + 0.05 * fabs(quotient))
                fail_msg("%s[%zu]: quotient %g, gradient %g", m->param[p].name, i, quotient, (double)rate);
        }
    learner_free(&l);
    learner_free(&scratch);
    m->ops->destroy(m);
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
    const model_ops *const all[] = {&mlp_ops, &gpt_tiny_ops};
    for (int k = 0; k < 2; k++) {
        model *m = all[k]->create(1);
        learner l = new_learner(m, 1);
        int next = m->params - 1;
        const size_t sample = 0;
        double losses;
        m->ops->gradient(m, l.weight, &sample, 1, 1, l.grad, count_ready, &next, &losses);
        assert_int_equal(next, -1);
        learner_free(&l);
        m->ops->destroy(m);
    }
}

/* Two ranks by hand: each half of the batch with scale 2/B, then the mean, is the whole batch with scale 1/B. */
static void halves_average_to_the_whole(void **state)
{
    (void)state;
    const model_ops *const all[] = {&mlp_ops, &gpt_tiny_ops};
    const size_t samples[8] = {10, 20, 30, 40, 50, 60, 70, 80};
    for (int k = 0; k < 2; k++) {
        model *m = all[k]->create(5);
        learner a = new_learner(m, 5), b = new_learner(m, 5), whole = new_learner(m, 5);
        double losses[3];
        m->ops->gradient(m, a.weight, samples, 4, 2.0f / 8, a.grad, NULL, NULL, &losses[0]);
        m->ops->gradient(m, b.weight, samples + 4, 4, 2.0f / 8, b.grad, NULL, NULL, &losses[1]);
        m->ops->gradient(m, whole.weight, samples, 8, 1.0f / 8, whole.grad, NULL, NULL, &losses[2]);
        for (size_t i = 0; i < whole.total; i++)
            assert_true(fabsf((a.grads[i] + b.grads[i]) / 2 - whole.grads[i]) <= 2e-6f + 1e-4f * fabsf(whole.grads[i]));
        assert_true(fabs(losses[0] + losses[1] - losses[2]) < 1e-4);
        learner_free(&a);
        learner_free(&b);
        learner_free(&whole);
        m->ops->destroy(m);
    }
}

/* Changing a character changes the predictions from there on, and not a bit of those before. */
static void the_transformer_does_not_look_ahead(void **state)
{
    (void)state;
    enum { CHANGED = 20 };
    gpt *g = (gpt *)gpt_tiny_ops.create(1);
    learner l = new_learner(&g->base, 1);
    const size_t window = 4;
    size_t row = g->columns, whole = g->size.length * row;
    float *before = malloc(whole * sizeof *before);
    assert_int_equal(gpt_reserve(g, 1), 0);
    gpt_forward(g, l.weight, &window, 1);
    memcpy(before, g->logits, whole * sizeof *before);
    unsigned char *token = &g->text.token[window * g->size.length + CHANGED];
    *token = (unsigned char)((*token + 1) % g->text.vocabulary);
    gpt_forward(g, l.weight, &window, 1);
    assert_memory_equal(g->logits, before, CHANGED * row * sizeof *before);
    for (size_t t = CHANGED; t < g->size.length; t++)
        assert_memory_not_equal(g->logits + t * row, before + t * row, row * sizeof *before);
    free(before);
    learner_free(&l);
    g->base.ops->destroy(&g->base);
}

typedef struct {
    double first, last;
} loss_range;

static int keep_losses(void *ctx, const learner *l, const train_step *t)
{
    (void)l;
    loss_range *range = ctx;
    if (t->step == 0)
        range->first = t->loss;
    range->last = t->loss;
    return 0;
}

static void training_learns_and_repeats_bit_for_bit(void **state)
{
    (void)state;
    uint64_t hashes[2];
    for (int run = 0; run < 2; run++) {
        model *m = mlp_ops.create(1);
        const train_plan plan = {.global_batch = 64, .epochs = 5, .rate = 0.1f, .momentum = 0.9f, .seed = 1};
        learner l = new_learner(m, 1);
        const train_hooks none = {0};
        model_score score;
        assert_int_equal(train_run(&l, &plan, 0, 3, 4, &none), 0);
        assert_int_equal(m->ops->evaluate(m, l.weight, &score), 0);
        assert_true(score.accuracy > 0.9); /* 0.95 and more for twenty seeds tried */
        assert_true(score.loss < 0.4);
        hashes[run] = learner_hash(&l);
        learner_free(&l);
        m->ops->destroy(m);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void the_transformer_learns(void **state)
{
    (void)state;
    loss_range range;
    model *m = gpt_tiny_ops.create(1);
    const train_plan plan = {.global_batch = 8, .steps = 40, .optimizer = OPTIMIZER_ADAMW, .rate = 3e-3f, .seed = 1};
    const train_hooks hooks = {.stepped = keep_losses, .ctx = &range};
    learner l;
    assert_int_equal(learner_create(&l, m, &plan, true), 0);
    assert_int_equal(train_run(&l, &plan, 0, 0, 1, &hooks), 0);
    assert_true(fabs(range.first - log(73)) < 0.3); /* 73 characters, none of them preferred yet */
    assert_true(range.last < range.first - 1);
    learner_free(&l);
    m->ops->destroy(m);
}

/* Two batches per step are one batch of both, up to the order of additions. */
static void accumulation_is_a_larger_batch(void **state)
{
    (void)state;
    model *m = mlp_ops.create(1);
    train_plan plan = {.global_batch = 16, .steps = 1, .accumulate = 4, .rate = 0.1f, .seed = 1};
    learner parts, whole;
    const train_hooks none = {0};
    assert_int_equal(learner_create(&parts, m, &plan, true), 0);
    assert_int_equal(train_run(&parts, &plan, 0, 0, 1, &none), 0);
    plan.global_batch = 64;
    plan.accumulate = 1;
    assert_int_equal(learner_create(&whole, m, &plan, true), 0);
    assert_int_equal(train_run(&whole, &plan, 0, 0, 1, &none), 0);
    for (size_t i = 0; i < whole.total; i++)
        assert_true(fabsf(parts.weights[i] - whole.weights[i]) <= 1e-6f);
    learner_free(&parts);
    learner_free(&whole);
    m->ops->destroy(m);
}

/* A weight that is a number in one copy only is no rounding. */
static void differences_see_what_is_no_number(void **state)
{
    (void)state;
    float x[] = {1, -4, NAN, INFINITY}, y[] = {1.5f, -4, NAN, INFINITY};
    learner a = {.total = 4, .weights = x}, b = {.total = 4, .weights = y};
    double largest;
    assert_true(learner_difference(&a, &b, &largest) == 0.5 && largest == 4);
    const float others[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        y[0] = others[i];
        assert_true(isinf(learner_difference(&a, &b, &largest)) && largest == 4);
        assert_true(isinf(learner_difference(&b, &a, &largest)));
    }
}

static void sgd_follows_its_formula(void **state)
{
    (void)state;
    float w[3] = {1, 2, 3}, v[3] = {0, 1, -1};
    const float g[3] = {0.5f, 0, 2};
    sgd_step(w, v, g, 3, 0.25f, 0.5f);
    const float velocity[3] = {0.5f, 0.5f, 1.5f}, weights[3] = {0.875f, 1.875f, 2.625f};
    assert_memory_equal(v, velocity, sizeof v);
    assert_memory_equal(w, weights, sizeof w);
    assert_true(planned_rate(0.5f, 0, 10, 0) == 0.5f);
    assert_true(planned_rate(0.5f, 5, 10, 0) == 0.25f);
    assert_true(planned_rate(0.5f, 0, 10, 4) == 0.125f);
}

/* The first step goes by the rate in the direction of the sign, whatever the gradient's size; decay comes on top. */
static void adamw_follows_its_formula(void **state)
{
    (void)state;
    float w[3] = {1, 1, 1}, first[3] = {0}, second[3] = {0};
    const float g[3] = {100, -1e-3f, 0};
    adamw_powers p = ADAMW_POWERS_INIT;
    adamw_advance(&p);
    adamw_step(w, first, second, g, 3, 0.01f, 0.5f, &p);
    const float want[3] = {1 - 0.01f - 0.005f, 1 + 0.01f - 0.005f, 1 - 0.005f};
    for (int i = 0; i < 3; i++)
        assert_true(fabsf(w[i] - want[i]) < 1e-5f);
    adamw_advance(&p);
    assert_true(fabsf(p.power1 - 0.81f) < 1e-6f && fabsf(p.power2 - 0.9025f) < 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_are_what_the_source_says),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(shards_are_disjoint_and_complete),
        cmocka_unit_test(impossible_batches_are_refused),
        cmocka_unit_test(the_gradient_is_the_derivative_of_the_loss),
        cmocka_unit_test(single_components_agree),
        cmocka_unit_test(every_gradient_is_announced_last_layer_first),
        cmocka_unit_test(halves_average_to_the_whole),
        cmocka_unit_test(the_transformer_does_not_look_ahead),
        cmocka_unit_test(the_transformer_learns),
        cmocka_unit_test(training_learns_and_repeats_bit_for_bit),
        cmocka_unit_test(accumulation_is_a_larger_batch),
        cmocka_unit_test(differences_see_what_is_no_number),
        cmocka_unit_test(sgd_follows_its_formula),
        cmocka_unit_test(adamw_follows_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
