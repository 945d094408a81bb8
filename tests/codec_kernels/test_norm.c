/* SPDX-License-Identifier: Apache-2.0 */
/* Norms: every level against the scalar one for all lengths around the lanes, and facts about the scalar one. */
#include "cases.h"

#include "kernels/norm/norm.h"

static ca_buffer x_buffer, y_buffer;

static void check_facts(void)
{
    enum { N = 1000 };
    float x[N];
    double energy = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)((int)ca_below(4001) - 2000);
    x[500] = -3000;
    for (int i = 0; i < N; i++)
        energy += (double)x[i] * x[i];
    cst_norm_stats s = cst_norm_scalar.stats(x, N);
    ca_expect(s.energy == energy && s.max == 3000.0f && s.nonfinite == 0, "stats of integers");
    ca_expect(cst_norm_scalar.dot(x, x, N) == energy, "dot of integers");
    ca_expect(cst_norm_scalar.distance2(x, 1, x, N / 16 * 16) == 0, "distance from itself");
    ca_expect(cst_norm_scalar.distance2(x, 3, x, 16) == 4 * cst_norm_scalar.dot(x, x, 16), "distance from a third");
    x[123] = NAN;
    x[700] = -INFINITY;
    s = cst_norm_scalar.stats(x, N);
    ca_expect(s.nonfinite == 2 && s.max == 3000.0f, "non-finite values are counted and left out");
    s = cst_norm_scalar.stats(x, 0);
    ca_expect(s.energy == 0 && s.max == 0 && s.nonfinite == 0, "stats of nothing");
    float large[3] = {3e38f, -3e38f, 1e-38f};
    ca_expect(cst_norm_scalar.stats(large, 3).energy > 1e76, "no overflow at FLT_MAX");
}

static void check_variant(size_t n)
{
    const cst_norm_kernels *variant = cst_norm_kernels_for((int)ca.variant);
    const size_t margin = ca_below(2) ? 0 : 4 * ca_below(17);
    float *x = (float *)(void *)ca_place(&x_buffer, 4 * n, margin),
          *y = (float *)(void *)ca_place(&y_buffer, 4 * n, margin);
    fill_vector(x, (uint32_t)n, exp(20 * uniform_open() - 10));
    fill_vector(y, (uint32_t)n, 1.0);
    double expected = cst_norm_scalar.dot(x, y, n), got = variant->dot(x, y, n);
    ca_same(&expected, &got, 1, 8, "dot");
    const size_t whole = n / CST_LANES * CST_LANES;
    expected = cst_norm_scalar.distance2(x, 0.7f, y, whole);
    got = variant->distance2(x, 0.7f, y, whole);
    ca_same(&expected, &got, 1, 8, "distance2");
    for (size_t i = ca_below(3); i > 0 && n > 0; i--)
        x[ca_below(n)] = (float[]){NAN, INFINITY, -INFINITY, -NAN}[ca_below(4)];
    cst_norm_stats e = cst_norm_scalar.stats(x, n), g = variant->stats(x, n);
    ca_same(&e.energy, &g.energy, 1, 8, "energy");
    ca_same(&e.max, &g.max, 1, 4, "max");
    ca_same(&e.nonfinite, &g.nonfinite, 1, sizeof e.nonfinite, "nonfinite");
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    x_buffer = ca_open(4 * CST_BLOCK);
    y_buffer = ca_open(4 * CST_BLOCK);
    check_facts();
    for (cst_cpu level = CST_CPU_SCALAR; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            for (int flush = 0; flush < 2; flush++) {
                cst_flush_mode saved = {0};
                if (flush)
                    saved = cst_flush_enter();
                for (size_t n = 0; n < 200; n++)
                    check_variant(n);
                for (int i = 0; i < 50; i++)
                    check_variant(ca_below(CST_BLOCK + 1));
                if (flush)
                    cst_flush_leave(saved);
            }
    return ca_end();
}
