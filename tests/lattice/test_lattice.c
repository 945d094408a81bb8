/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the lattices: nearest point by brute force, bases, colours, reach, and what decoding by proximity allows. */
#include "samples.h"

static const cst_lattice *lattice(int kind)
{
    return cst_lattice_of((cst_lattice_kind)kind);
}

static void assert_in_e8(const int64_t p[8])
{
    int64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += p[i];
        assert_int_equal(p[i] & 1, p[0] & 1);
    }
    assert_int_equal(sum & 3, 0);
}

static double distance2(const double x[8], const int64_t p[8])
{
    double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (x[i] - 0.5 * (double)p[i]) * (x[i] - 0.5 * (double)p[i]);
    return sum;
}

/* Squared distance to the nearest point of E8 whose coordinates are all within one of x's: in each coset each coordinate
 * has two candidates, which is enough, since rounding a coordinate still further is worse than turning two of them. */
static double brute_force(const double x[8])
{
    double best = INFINITY;
    for (int half = 0; half < 2; half++)
        for (int choice = 0; choice < 256; choice++) {
            int64_t p[8], sum = 0;
            for (int i = 0; i < 8; i++) {
                int64_t whole = (int64_t)floor(x[i] - 0.5 * half) + (choice >> i & 1);
                p[i] = 2 * whole + half;
                sum += p[i];
            }
            if ((sum & 3) == 0)
                best = fmin(best, distance2(x, p));
        }
    return best;
}

static void test_nearest_is_nearest(void **state)
{
    (void)state;
    for (int trial = 0; trial < 20000; trial++) {
        double x[8];
        int64_t p[8];
        for (int i = 0; i < 8; i++)
            x[i] =
                trial & 1 ? 8 * uniform_open() - 4 : 0.25 * (double)(int64_t)(random_bits() % 33) - 4; /* also ties */
        lattice(CST_LATTICE_E8)->nearest(x, p);
        assert_in_e8(p);
        assert_true(distance2(x, p) <= brute_force(x) + 1e-12);
        lattice(CST_LATTICE_Z)->nearest(x, p);
        assert_true(fabs(x[0] - (double)p[0]) <= 0.5);
    }
}

static void test_radii(void **state)
{
    (void)state;
    double v[240][8], hole[8] = {1}, worst = 0;
    int64_t p[8];
    const cst_lattice *e8 = lattice(CST_LATTICE_E8);
    assert_int_equal(minimal_vectors(v), 240);
    for (int m = 0; m < 240; m++) {
        double middle[8];
        assert_true(dot8(v[m], v[m]) == 2);
        for (int i = 0; i < 8; i++)
            middle[i] = v[m][i] * (0.5 - 1e-9);
        e8->nearest(middle, p);
        assert_true(distance2(middle, p) < 0.5 && distance2((double[8]){0}, p) == 0); /* still 0's: half of sqrt(2) */
        assert_true(fabs(sqrt(distance2(middle, p)) - e8->packing_radius) < 1e-8);
    }
    e8->nearest(hole, p);
    assert_true(distance2(hole, p) == 1); /* a deep hole */
    for (int trial = 0; trial < 200000; trial++) {
        double x[8];
        for (int i = 0; i < 8; i++)
            x[i] = 2 * uniform_open();
        e8->nearest(x, p);
        worst = fmax(worst, distance2(x, p));
    }
    assert_true(worst <= e8->covering_radius);
}

static void test_basis(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int trial = 0; trial < 10000; trial++) {
            const cst_lattice *l = lattice(kind);
            int64_t coefficient[8], point[8], back[8];
            for (int i = 0; i < 8; i++)
                coefficient[i] = (int64_t)(random_bits() % 2000001) - 1000000;
            l->from_basis(coefficient, point);
            if (kind == CST_LATTICE_E8)
                assert_in_e8(point);
            l->to_basis(point, back);
            assert_memory_equal(coefficient, back, (size_t)l->dim * sizeof *back);
        }
}

/* The closed form of E8's reach against all 240 minimal vectors. */
static void test_reach(void **state)
{
    (void)state;
    double v[240][8];
    minimal_vectors(v);
    for (int trial = 0; trial < 20000; trial++) {
        double r[8], most = 0;
        for (int i = 0; i < 8; i++)
            r[i] = trial & 1 ? gaussian() : (double)(int64_t)(random_bits() % 5) - 2;
        for (int m = 0; m < 240; m++)
            most = fmax(most, dot8(r, v[m]));
        assert_true(fabs(most - lattice(CST_LATTICE_E8)->reach(r)) < 1e-12);
    }
}

/* Does the receiver with x + theta - d recover what the sender rounded? */
static bool decodes(const cst_lattice *l, uint32_t q, const double *x, const double *theta, const double *d)
{
    int64_t sent[8], got[8];
    uint32_t colour[8];
    double ref[8];
    cst_lattice_round(l, CST_ROUND_SHARED, x, theta, sent);
    cst_lattice_colour(l, sent, q, colour);
    for (int i = 0; i < l->dim; i++) {
        assert_true(colour[i] < q);
        ref[i] = x[i] + l->unit * theta[i] - d[i];
    }
    cst_lattice_decode(l, colour, q, ref, got);
    return !memcmp(sent, got, (size_t)l->dim * sizeof *got);
}

static const uint32_t moduli[] = {2, 3, 4, 5, 7, 8, 11, 16, 45, 100, 256, 1000, 65536};
enum { MODULI = sizeof moduli / sizeof *moduli };

/* Lemma 15 in its exact form: any difference inside (q - 1) V decodes, whatever the rounding error. Differences of random
 * direction with a reach of 0.999999 (q - 1). */
static void test_guarantee_for_random_pairs(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int trial = 0; trial < 40000; trial++) {
            const cst_lattice *l = lattice(kind);
            const uint32_t q = moduli[trial % MODULI];
            double x[8], theta[8], d[8];
            random_theta(theta);
            for (int i = 0; i < 8; i++) {
                x[i] = 1000 * gaussian();
                d[i] = gaussian();
            }
            const double allowed = (q - 1) / l->reach(d) * (trial % 3 ? 1 - 1e-6 : uniform_open());
            for (int i = 0; i < 8; i++)
                d[i] *= allowed;
            assert_true(decodes(l, q, x, theta, d));
        }
}

/* Adversarial: the rounding error is (almost) half a minimal vector, and the difference goes on in its direction: at the
 * allowed distance (q - 1) packing radii, less 1e-6, it decodes, just beyond it does not. */
static void test_guarantee_is_tight(void **state)
{
    (void)state;
    double v[240][8];
    minimal_vectors(v);
    for (int kind = 0; kind < 2; kind++)
        for (int trial = 0; trial < 240 * MODULI; trial++) {
            const cst_lattice *l = lattice(kind);
            const uint32_t q = moduli[trial / 240];
            double direction[8] = {trial & 1 ? -1 : 1}, x[8], theta[8], inside[8], outside[8];
            if (kind == CST_LATTICE_E8)
                memcpy(direction, v[trial % 240], sizeof direction);
            random_theta(theta);
            int64_t coefficient[8], point[8];
            for (int i = 0; i < 8; i++)
                coefficient[i] = (int64_t)(random_bits() % 2001) - 1000;
            l->from_basis(coefficient, point);
            for (int i = 0; i < l->dim; i++) { /* z - (x + theta) = (1/2 - 1e-9) direction, of norm^2 2 or 1 */
                x[i] = (double)point[i] / l->unit - l->unit * theta[i] - direction[i] * (0.5 - 1e-9);
                inside[i] = direction[i] * 0.5 * (q - 1) * (1 - 1e-6);
                outside[i] = direction[i] * 0.5 * (q - 1) * (1 + 1e-6) + direction[i] * 1e-8;
            }
            assert_true(decodes(l, q, x, theta, inside));
            assert_false(decodes(l, q, x, theta, outside));
        }
}

/* As the paper states it: distance up to (q - 7) eps, eps the packing radius, with any unbiased rounding. */
static void test_lemma_15_as_stated(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int trial = 0; trial < 20000; trial++) {
            const cst_lattice *l = lattice(kind);
            const uint32_t q = 8 + (uint32_t)(random_bits() % 60);
            double x[8], theta[8], ref[8], norm = 0;
            int64_t sent[8], got[8];
            uint32_t colour[8];
            random_theta(theta);
            for (int i = 0; i < l->dim; i++) {
                x[i] = 100 * gaussian();
                ref[i] = gaussian();
                norm += ref[i] * ref[i];
            }
            for (int i = 0; i < l->dim; i++)
                ref[i] = x[i] + ref[i] / sqrt(norm) * (q - 7) * l->packing_radius;
            cst_lattice_round(l, CST_ROUND_PRIVATE, x, theta, sent);
            cst_lattice_colour(l, sent, q, colour);
            cst_lattice_decode(l, colour, q, ref, got);
            assert_memory_equal(sent, got, (size_t)l->dim * sizeof *got);
            double moved = 0;
            for (int i = 0; i < l->dim; i++)
                moved += pow((double)sent[i] / l->unit - x[i], 2);
            assert_true(sqrt(moved) <= 2 * l->covering_radius && sqrt(moved) < 7 * l->packing_radius);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest_is_nearest),
        cmocka_unit_test(test_radii),
        cmocka_unit_test(test_basis),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_guarantee_for_random_pairs),
        cmocka_unit_test(test_guarantee_is_tight),
        cmocka_unit_test(test_lemma_15_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
