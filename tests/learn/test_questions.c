/* SPDX-License-Identifier: Apache-2.0 */
/* Every question is well formed, and every figure in it is what first principles say. */
#include "coll/patterns/ring.h"
#include "learn/figures.h"
#include "learn/questions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The values of one variant, and which of them the test has looked at: none may be left out. */
static learn_values values;
static bool seen[LEARN_VALUES];
static const char *asked;

static double get(const char *name)
{
    const learn_value *v = learn_find_value(&values, name, strlen(name));
    if (!v)
        fail_msg("%s has no value '%s'", asked, name);
    seen[v - values.at] = true;
    return v->number;
}

static void expect(const char *name, double wanted)
{
    double got = get(name);
    if (fabs(got - wanted) > 1e-9 * fabs(wanted) + 1e-12)
        fail_msg("%s: {%s} is %.12g, should be %.12g", asked, name, got, wanted);
}

static double log_2(double x)
{
    return round(log2(x));
}

/* One function per computed question: what its figures must be, by pencil and paper. */

static void ring_volume(void)
{
    double n = get("n"), s = get("s");
    expect("steps", 2 * (n - 1));
    expect("right", 2 * (n - 1) / n * s);
    expect("naive", (n - 1) * s);
    expect("phase", (n - 1) / n * s);
    expect("whole", 2 * (n - 1) * s);
    expect("chunk", s / n);
}

static void ring_steps(void)
{
    double n = get("n");
    expect("right", 2 * (n - 1));
    expect("phase", n - 1);
    expect("twice", 2 * n);
    expect("messages", n * 2 * (n - 1));
}

static int mod(int a, int n)
{
    return ((a % n) + n) % n;
}

static void ring_move(void)
{
    int n = (int)get("n"), rank = (int)get("rank"), k = (int)get("k");
    expect("left", mod(rank - 1, n));
    expect("sends", mod(rank - k, n));
    expect("takes", mod(rank - k - 1, n));
    expect("own", rank);
    expect("forward", mod(rank + k, n));
}

static void ring_owner(void)
{
    int n = (int)get("n"), rank = (int)get("rank");
    expect("right", mod(rank + 1, n));
    expect("own", rank);
    expect("left", mod(rank - 1, n));
}

static void ring_ratio(void)
{
    double n = get("n");
    expect("right", n / 2);
    expect("less", n - 1);
    expect("twice", 2 * (n - 1));
}

static void ring_two(void)
{
    double s = get("s");
    expect("right", s);
    expect("naive", s);
    expect("half", s / 2);
    expect("twice", 2 * s);
}

static void ring_uneven(void)
{
    double elements = get("elements"), n = get("n");
    expect("least", floor(elements / n));
    expect("most", ceil(elements / n));
    expect("padded", ceil(elements / n) * n);
    expect("down", floor(elements / n));
    expect("rest", elements - (n - 1) * floor(elements / n));
}

static void ring_phase(void)
{
    double n = get("n"), s = get("s");
    expect("right", (n - 1) / n * s);
    expect("all", 2 * (n - 1) / n * s);
    expect("chunk", s / n);
    expect("naive", (n - 1) * s);
}

static void ring_slow(void)
{
    double n = get("n"), factor = get("factor");
    expect("right", factor);
    expect("average", (n - 1 + factor) / n);
    expect("share", factor / n);
}

static double ring_factor(double n)
{
    return 2 * (n - 1) / n;
}

static void cost_growth(void)
{
    double n = get("n"), m = get("m");
    expect("right", 100 * (ring_factor(m) / ring_factor(n) - 1));
    expect("times", m / n);
    expect("log", 100 * (log_2(m) / log_2(n) - 1));
    expect("before", ring_factor(n));
    expect("after", ring_factor(m));
}

static void cost_time(void)
{
    double n = get("n"), s = get("s"), latency = 20e-6, per_byte = 1 / 1.25e9;
    double bytes = ring_factor(n) * s * per_byte, all = 2 * (n - 1) * latency;
    expect("steps", 2 * (n - 1));
    expect("latency", all);
    expect("bytes", bytes);
    expect("right", all + bytes);
    expect("one", latency + bytes);
    expect("per_rank", n * all);
}

static void cost_rd(void)
{
    double n = get("n");
    expect("steps", log_2(n));
    expect("ring_steps", 2 * (n - 1));
    expect("phase_steps", n - 1);
    expect("half", n / 2);
    expect("volume", log_2(n));
    expect("ring_volume", ring_factor(n));
    expect("naive_volume", n - 1);
}

static void cost_rhd(void)
{
    double n = get("n"), volume = 0;
    for (double part = 0.5; part * n >= 1; part /= 2)
        volume += 2 * part;
    expect("steps", 2 * log_2(n));
    expect("ring_steps", 2 * (n - 1));
    expect("volume", volume);
    expect("ring_volume", ring_factor(n));
    expect("rd_steps", log_2(n));
    expect("rd_volume", log_2(n));
}

static void cost_cluster(void)
{
    double m = get("nodes"), l = get("local"), s = get("s");
    expect("n", m * l);
    expect("flat_steps", 2 * (m * l - 1));
    expect("hier_steps", 2 * (m - 1));
    expect("fast_steps", 2 * (l - 1));
    expect("local_rings", l * 2 * (m - 1));
    expect("hier", ring_factor(m) * s);
    expect("blocks", ring_factor(m * l) * s);
    expect("dealt", l * ring_factor(m * l) * s);
    expect("each", l * ring_factor(m) * s);
    expect("share", ring_factor(m) * s / l);
    expect("naive", (m - 1) * s);
}

static void cost_bus(void)
{
    double n = get("n"), s = get("s"), t = get("seconds"), speed = s / t / 1e9;
    expect("right", speed * ring_factor(n));
    expect("algbw", speed);
    expect("all", speed * n);
    expect("phase", speed * (n - 1) / n);
}

static void ddp_one(void)
{
    double backward = get("backward"), comm = get("comm");
    expect("right", backward + comm);
    expect("longer", fmax(backward, comm));
    expect("half", backward + comm / 2);
    expect("twice", backward + 2 * comm);
}

static void ddp_exposed(void)
{
    double backward = get("backward"), every = get("every"), each = get("each"), done = 0;
    for (int bucket = 1; bucket <= 4; bucket++)
        done = fmax(done, bucket * every) + each;
    expect("backward", 4 * every);
    expect("right", done - backward);
    expect("all", 4 * each);
    expect("three", 3 * each);
}

static void ddp_clip(void)
{
    double a = get("a"), b = get("b"), limit = get("limit"), norm = sqrt(a * a + b * b);
    assert_true(norm > limit && b > limit); /* or nothing would be clipped */
    expect("right", b * limit / norm);
    expect("after", limit);
    expect("mean", b);
    expect("norm", norm);
}

static void ddp_sum(void)
{
    expect("root", sqrt(get("n")));
}

static void ddp_accumulate(void)
{
    double n = get("n"), s = get("s"), batches = get("batches");
    expect("right", ring_factor(n) * s);
    expect("each", ring_factor(n) * s * batches);
    expect("part", ring_factor(n) * s / batches);
    expect("naive", (n - 1) * s);
}

static void lattice_bits(void)
{
    double q = get("q"), block = get("block");
    expect("bits", log2(q));
    expect("right", block * log2(q) / 8);
    expect("values", block * q / 8);
    expect("bytes_each", block * log2(q));
}

static void lattice_saving(void)
{
    double q = get("q");
    expect("bits", log2(q));
    expect("right", 32 / log2(q));
    expect("levels", 4294967296.0 / q);
    expect("bytes", 4 / log2(q));
    expect("minus", 32 - log2(q));
}

static void lattice_decode(void)
{
    int q = (int)get("q"), colour = (int)get("colour"), best = 0;
    double own = get("own");
    for (int k = -1000; k <= 1000; k++)
        if (mod(k, q) == colour && fabs(k - own) < fabs(best - own))
            best = k;
    expect("right", best);
    expect("rounded", floor(own + 0.5));
    expect("other", best < own ? best + q : best - q);
}

static void lattice_reach(void)
{
    double q = get("q"), s = get("s");
    expect("right", q * s / 2 - s / 2);
    expect("period", q * s);
    expect("twice", q * s - s);
    expect("half", s / 2);
}

static void lattice_step(void)
{
    double q = get("q"), y = get("y");
    expect("right", 2 * y / (q - 1));
    expect("single", y / (q - 1));
    expect("no_rounding", 2 * y / q);
    expect("quarter", y / q);
}

static void lattice_error(void)
{
    double s = get("s");
    expect("right", s * s / 12);
    expect("worst", s * s / 4);
    expect("half", s / 2);
}

static void lattice_mean(void)
{
    double n = get("n"), s = get("s"), one = s * s / 12;
    expect("right", one / n);
    expect("one", one);
    expect("square", one / (n * n));
    expect("sum", one * n);
}

static void lattice_wrong_by(void)
{
    double q = get("q"), s = get("s");
    expect("right", q * s);
    expect("one", s);
    expect("half", s / 2);
    expect("reach", (q - 1) * s / 2);
}

static void lattice_checksum(void)
{
    int k1 = (int)get("k1"), k2 = (int)get("k2"), q = (int)get("q");
    int a = (int)get("key1"), b = (int)get("key2"), prime = (int)get("prime");
    expect("got1", k1 + q);
    expect("sent", (a * k1 + b * k2) % prime);
    expect("got", (a * (k1 + q) + b * k2) % prime);
    expect("colours", (a * (k1 % q) + b * (k2 % q)) % prime);
    assert_true(get("sent") != get("got"));
}

static void lattice_one_more(void)
{
    double q = get("q"), ratio = (2 * q - 1) / (q - 1);
    expect("bits", log2(q));
    expect("more", log2(q) + 1);
    expect("right", ratio * ratio);
    expect("root", ratio);
}

static void lattice_scaled(void)
{
    double size = get("size");
    expect("bits", log2(get("q")));
    expect("right", size);
    expect("root", sqrt(size));
}

static const struct {
    const char *id;
    void (*check)(void);
} checks[] = {
    {"ring-volume", ring_volume},
    {"ring-steps", ring_steps},
    {"ring-sends", ring_move},
    {"ring-adds", ring_move},
    {"ring-owner", ring_owner},
    {"ring-ratio", ring_ratio},
    {"ring-two", ring_two},
    {"ring-uneven", ring_uneven},
    {"ring-phase", ring_phase},
    {"ring-slow", ring_slow},
    {"cost-growth", cost_growth},
    {"cost-time", cost_time},
    {"cost-rd-steps", cost_rd},
    {"cost-rd-volume", cost_rd},
    {"cost-rhd", cost_rhd},
    {"cost-hier-steps", cost_cluster},
    {"cost-hier-bytes", cost_cluster},
    {"cost-placement", cost_cluster},
    {"cost-bus", cost_bus},
    {"ddp-one", ddp_one},
    {"ddp-exposed", ddp_exposed},
    {"ddp-clip-local", ddp_clip},
    {"ddp-sum", ddp_sum},
    {"ddp-accumulate", ddp_accumulate},
    {"lattice-bits", lattice_bits},
    {"lattice-saving", lattice_saving},
    {"lattice-decode", lattice_decode},
    {"lattice-reach", lattice_reach},
    {"lattice-step", lattice_step},
    {"lattice-error", lattice_error},
    {"lattice-mean", lattice_mean},
    {"lattice-wrong-by", lattice_wrong_by},
    {"lattice-checksum", lattice_checksum},
    {"lattice-one-more", lattice_one_more},
    {"lattice-scaled", lattice_scaled},
};
enum { CHECKS = sizeof checks / sizeof *checks };

static void figures_are_right(void **state)
{
    (void)state;
    bool used[CHECKS] = {false};
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        int c = 0;
        while (c < CHECKS && strcmp(checks[c].id, q->id))
            c++;
        if ((c == CHECKS) != (q->fill == NULL))
            fail_msg("%s: computed figures and checks of them belong together", q->id);
        for (int variant = 0; q->fill && variant < LEARN_VARIANTS; variant++) {
            used[c] = true;
            asked = q->id;
            values = (learn_values){.count = 0};
            memset(seen, 0, sizeof seen);
            q->fill(&values, variant);
            checks[c].check();
            for (int i = 0; i < values.count; i++)
                if (!seen[i])
                    fail_msg("%s: nobody checks {%s}", q->id, values.at[i].name);
        }
    }
    for (int c = 0; c < CHECKS; c++)
        if (!used[c])
            fail_msg("no question %s", checks[c].id);
}

/* Questions whose options have digits though nothing is computed: labels, or formulas that are checked below. */
static const char *const formulas[] = {"ring-partner", "ring-limit",  "ring-bound",    "ring-bits",
                                       "ring-places",  "cost-growth", "cost-segments", "ddp-equal"};

static bool is_formula(const char *id)
{
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (!strcmp(formulas[i], id))
            return true;
    return false;
}

static void no_figure_is_typed_in(void **state)
{
    (void)state;
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        for (int i = 0; i < LEARN_OPTIONS && !is_formula(q->id); i++) {
            const char *text = q->option[i].text;
            /* "1/{n}" and "0" are wrong ideas in words, not figures; log2 is a name */
            bool plain = !strcmp(text, "0") || !strncmp(text, "... 1/{n}", 9);
            for (const char *c = text; *c && !plain; c++) {
                if (*c == '{')
                    c = strchr(c, '}');
                if (*c >= '0' && *c <= '9' && !(c >= text + 3 && !strncmp(c - 3, "log2", 4)))
                    fail_msg("%s, option %d: a number is typed in: %s", q->id, i, text);
            }
        }
    }
}

static void formulas_hold(void **state)
{
    (void)state;
    for (int n = 2; n <= 64; n++) {
        size_t elements = (size_t)n * 1000, sent = cst_ring_sent(n, 0, elements);
        assert_int_equal(sent, 2 * (n - 1) * 1000);      /* 2(N-1)/N * S */
        assert_true(sent < 2 * elements);                /* ring-limit: never 2S, */
        assert_int_equal(2 * elements - sent, 2 * 1000); /* but only 2S/N away */
        for (int chunk = 0, sends; chunk < n; chunk++) { /* ring-bound: N-1 and N-1 sends of each number */
            sends = 0;
            for (int k = 0; k < cst_ring_steps(n); k++)
                for (int rank = 0; rank < n; rank++) {
                    cst_ring_step s = cst_ring(n, rank, k);
                    sends += s.send_chunk == chunk;
                    assert_int_equal(s.to, (rank + 1) % n); /* ring-partner */
                }
            assert_int_equal(sends, 2 * (n - 1));
        }
    }
}

/* The order in which chunk c is added up: c, c+1, ... (ring-bits, ring-places). */
static void additions_start_at_the_chunk(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n++)
        for (int k = 0; k < n - 1; k++) {
            learn_ring_state before;
            learn_ring_after(n, k, &before);
            for (int rank = 0; rank < n; rank++) {
                learn_move m = learn_ring_move(n, k, rank);
                unsigned wanted = 0;
                for (int i = 0; i <= k; i++)
                    wanted |= 1u << (m.chunk + i) % n;
                assert_int_equal(before.parts[rank][m.chunk], wanted);
                assert_int_equal(m.to, (m.chunk + k + 1) % n);
            }
        }
}

static void the_fastest_is_fastest(void **state)
{
    (void)state;
    learn_link link = learn_network;
    assert_true(link.latency_s == 20e-6 && link.bytes_per_s == 1.25e9); /* as the questions say */
    for (int a = 0; a < LEARN_ALGORITHMS; a++)
        if (a != LEARN_RD)
            assert_true(learn_time(LEARN_RD, 64, 4096, link) < learn_time(a, 64, 4096, link));
    size_t large = (size_t)256 << 20;
    assert_true(learn_time(LEARN_RING, 64, large, link) < learn_time(LEARN_RD, 64, large, link));
    assert_true(learn_time(LEARN_RING, 64, large, link) < learn_time(LEARN_NAIVE, 64, large, link));
}

static void questions_are_well_formed(void **state)
{
    (void)state;
    int count = learn_question_count();
    assert_true(count >= 48);
    for (int number = 1; number <= count; number++) {
        learn_topic topic, other;
        const learn_question *q = learn_question_at(number, &topic);
        assert_true(strlen(q->id) < 32 &&
                    !strncmp(q->id, learn_lessons[topic].word, strlen(learn_lessons[topic].word)));
        for (int before = 1; before < number; before++)
            assert_string_not_equal(q->id, learn_question_at(before, &other)->id);
    }
    learn_topic topic;
    assert_null(learn_question_at(0, &topic));
    assert_null(learn_question_at(count + 1, &topic));
}

static void check_posed(const char *id, int variant)
{
    learn_posed p;
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        if (strcmp(q->id, id))
            continue;
        learn_pose(q, variant, &p);
        const char *texts[] = {p.text,   p.option[0], p.option[1], p.option[2], p.option[3],
                               p.why[0], p.why[1],    p.why[2],    p.why[3]};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (!*texts[i] || strpbrk(texts[i], "{}\n\t") || strstr(texts[i], "nan") || strstr(texts[i], "inf "))
                fail_msg("%s, variant %d: '%s'", id, variant, texts[i]);
        for (int a = 0; a < LEARN_OPTIONS; a++)
            for (int b = 0; b < a; b++)
                if (!strcmp(p.option[a], p.option[b]) || !strcmp(p.why[a], p.why[b]))
                    fail_msg("%s, variant %d: options %d and %d are alike: %s", id, variant, b, a, p.option[a]);
        learn_posed_free(&p);
    }
}

static void options_are_distinct(void **state)
{
    (void)state;
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        for (int variant = 0; variant < learn_variants(q); variant++)
            check_posed(q->id, variant);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_well_formed),
        cmocka_unit_test(options_are_distinct),
        cmocka_unit_test(figures_are_right),
        cmocka_unit_test(no_figure_is_typed_in),
        cmocka_unit_test(formulas_hold),
        cmocka_unit_test(additions_start_at_the_chunk),
        cmocka_unit_test(the_fastest_is_fastest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
