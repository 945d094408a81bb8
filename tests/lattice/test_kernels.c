/* SPDX-License-Identifier: Apache-2.0 */
/* The f32 kernels against the f64 lattices: nearest points, decoding at the allowed distance, classes, needs, checksums;
 * the homomorphic code; blocks in f64. At the level in force (COSET_CPU): test_quantise.c shows that levels agree. */
#include "samples.h"

#include "cpu/cpu.h"
#include "kernels/block.h"
#include "kernels/flush.h"
#include "kernels/pack/pack.h"
#include "kernels/quantise/sum.h"

static int32_t keys[CST_CHECKSUM_KEYS];

static const cst_quantise_kernels *kernels(int kind)
{
    return cst_quantise_kernels_for((cst_lattice_kind)kind, (int)cst_cpu_level());
}
static cst_lattice_block full_block(float step, float weight)
{
    cst_stream_root root = cst_stream_root_of(random_bits(), 1, 2);
    return (cst_lattice_block){CST_BLOCK, step, weight, cst_stream_of(root, CST_USE_DITHER, 1, 2, 3), keys};
}
static uint32_t cell_start(uint32_t cell)
{
    return cell / CST_LANES * CST_UNIT + cell % CST_LANES;
}
static void gather(const float *x, uint32_t at, double scale, double cell[8])
{
    for (uint32_t t = 0; t < 8; t++)
        cell[t] = scale * (double)x[at + CST_LANES * t];
}

/* Every cell's point is as near as the f64 lattice's, but for the rounding of f32. */
static void test_kernels_find_nearest(void **state)
{
    (void)state;
    static float x[CST_BLOCK], theta[CST_BLOCK];
    static int32_t points[CST_BLOCK];
    for (int trial = 0; trial < 40; trial++) {
        const cst_lattice_block b = full_block(1.0f, 1.0f);
        for (int i = 0; i < CST_BLOCK; i++)
            x[i] = (float)(3 * gaussian());
        cst_random_scalar.dither(&b.dither, CST_BLOCK, theta);
        kernels(CST_LATTICE_E8)->quantise(&b, x, points);
        for (uint32_t cell = 0; cell < CST_BLOCK / 8; cell++) {
            const uint32_t at = cell_start(cell);
            double y[8], dither[8], found = 0, best = 0;
            int64_t p[8];
            gather(x, at, 1, y);
            gather(theta, at, 2, dither);
            for (int t = 0; t < 8; t++)
                y[t] += dither[t];
            cst_lattice_of(CST_LATTICE_E8)->nearest(y, p);
            for (uint32_t t = 0; t < 8; t++) {
                found += pow(y[t] - 0.5 * points[at + CST_LANES * t], 2);
                best += pow(y[t] - 0.5 * (double)p[t], 2);
            }
            assert_true(found <= best + 1e-5);
        }
    }
}

/* ref = x + d, with d's reach in every cell `part` of what the class there allows a receiver. */
static void place_reference(const cst_lattice *l, const float *x, const uint8_t *classes, float step, double part,
                            float *ref)
{
    for (uint32_t cell = 0; cell < CST_BLOCK / 8; cell++) {
        const uint32_t at = cell_start(cell);
        const double q = cst_classes[classes[at / CST_UNIT]].q;
        double d[8];
        for (int t = 0; t < 8; t++)
            d[t] = gaussian();
        double reach = l->reach(d);
        for (uint32_t t = 0; t < 8; t++) {
            double scale = l->dim == 1 ? (q - 1) * part / (2 * fabs(d[t])) : (q - 1) * part / reach;
            ref[at + CST_LANES * t] = (float)((double)x[at + CST_LANES * t] + (double)step * scale * d[t]);
        }
    }
}

static void test_kernels_decode_at_the_allowed_distance(void **state)
{
    (void)state;
    static float x[CST_BLOCK], ref[CST_BLOCK], out[CST_BLOCK];
    static uint8_t codes[CST_PACKED_MAX];
    static int32_t sent[CST_BLOCK], got[CST_BLOCK];
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t k = CST_CLASS_MIN; k <= CST_CLASS_MAX; k++) {
            uint8_t classes[CST_BLOCK_UNITS];
            if (!cst_class_valid(k))
                continue;
            const cst_lattice_block b = full_block(0.25f, 1.0f);
            memset(classes, (int)k, sizeof classes);
            for (int i = 0; i < CST_BLOCK; i++)
                x[i] = (float)(10 * gaussian());
            cst_checksum sum = kernels(kind)->encode(&b, x, classes, codes, sent);
            place_reference(cst_lattice_of((cst_lattice_kind)kind), x, classes, b.step, 0.9999, ref);
            assert_true(cst_checksum_equal(sum, kernels(kind)->decode(&b, codes, classes, ref, 1.0f, out, got)));
            assert_memory_equal(sent, got, sizeof got);
            for (int i = 0; i < CST_BLOCK; i++) /* no coordinate of a cell is more than a step from its centre */
                assert_true(fabs((double)out[i] - (double)x[i]) <= (kind ? 1.0001 : 0.5001) * (double)b.step);
            ref[77] += 2.0f * (float)cst_classes[k].q * b.step;
            assert_false(cst_checksum_equal(sum, kernels(kind)->decode(&b, codes, classes, ref, 1.0f, out, got)));
        }
}

/* A receiver's need: classes just above it decode, and it is what the f64 lattice says. */
static void test_need_is_enough(void **state)
{
    (void)state;
    static float x[CST_BLOCK], ref[CST_BLOCK], value[CST_BLOCK], out[CST_BLOCK];
    static uint8_t codes[CST_PACKED_MAX];
    static int32_t points[CST_BLOCK];
    for (int trial = 0; trial < 60; trial++) {
        const int kind = trial & 1;
        const cst_lattice *l = cst_lattice_of((cst_lattice_kind)kind);
        const cst_lattice_block b = full_block(0.25f, 1.0f);
        const float scale = 0.9f;
        uint8_t classes[CST_BLOCK_UNITS];
        float need[CST_BLOCK_UNITS] = {0};
        double expected[CST_BLOCK_UNITS] = {0};
        for (int i = 0; i < CST_BLOCK; i++) {
            x[i] = (float)(5 * gaussian());
            ref[i] = x[i] + (float)gaussian();
        }
        cst_checksum sum = kernels(kind)->quantise(&b, x, points);
        kernels(kind)->reconstruct(&b, points, value);
        kernels(kind)->need(value, ref, CST_BLOCK, scale, b.step, need);
        for (uint32_t cell = 0; cell < CST_BLOCK / 8; cell++) {
            const uint32_t at = cell_start(cell), u = at / CST_UNIT;
            double r[8];
            for (uint32_t t = 0; t < 8; t++)
                r[t] = ((double)value[at + CST_LANES * t] - (double)scale * (double)ref[at + CST_LANES * t]) /
                       (double)b.step;
            for (int t = 0; t < 8; t += l->dim)
                expected[u] = fmax(expected[u], l->reach(r + t));
        }
        for (int u = 0; u < CST_BLOCK_UNITS; u++) {
            assert_true(fabs((double)need[u] - expected[u]) < 1e-4 * expected[u]);
            classes[u] = (uint8_t)cst_class_for(need[u] * 1.0001f);
            assert_true(cst_class_valid(classes[u]) && (float)cst_classes[classes[u]].q >= need[u]);
        }
        cst_pack_kernels_for((int)cst_cpu_level())->pack_z(points, CST_BLOCK, classes, codes);
        if (kind)
            cst_pack_kernels_for((int)cst_cpu_level())->pack_e8(points, CST_BLOCK, classes, codes);
        assert_true(cst_checksum_equal(sum, kernels(kind)->decode(&b, codes, classes, ref, scale, out, NULL)));
    }
}

static void test_homomorphic_mean(void **state)
{
    (void)state;
    enum { RANKS = 8 };
    static float x[RANKS][CST_BLOCK], mean[CST_BLOCK], again[CST_BLOCK];
    static uint8_t codes[CST_BLOCK], total[CST_BLOCK];
    static int32_t points[CST_BLOCK], sum_of_points[CST_BLOCK], got[CST_BLOCK];
    for (int trial = 0; trial < 20; trial++)
        for (int kind = 0; kind < 2; kind++) {
            const cst_sum_kernels *k = cst_sum_kernels_for((cst_lattice_kind)kind, (int)cst_cpu_level());
            cst_stream_root root = cst_stream_root_of(random_bits(), 4, 4);
            const cst_sum_block b = {CST_BLOCK, 0.5f, cst_stream_of(root, CST_USE_DITHER, 0, CST_EVERY_SENDER, 1),
                                     cst_stream_of(root, CST_USE_SLOPE, 0, CST_EVERY_SENDER, 1), keys};
            cst_checksum sum = {{0, 0}};
            double error = 0;
            memset(total, 0, sizeof total);
            memset(sum_of_points, 0, sizeof sum_of_points);
            for (int i = 0; i < CST_BLOCK; i++) {
                double common = 20 * gaussian();
                for (int r = 0; r < RANKS; r++)
                    x[r][i] = (float)(common + gaussian());
            }
            for (uint32_t r = 0; r < RANKS; r++) {
                sum = cst_checksum_add(sum, k->encode(&b, x[r], r, codes, points));
                for (int i = 0; i < CST_BLOCK; i++) {
                    total[i] = (uint8_t)(total[i] + codes[i]);
                    sum_of_points[i] += points[i];
                }
            }
            assert_true(cst_checksum_equal(sum, k->decode(&b, total, RANKS, x[3], 1.0f, mean, got)));
            assert_memory_equal(got, sum_of_points, sizeof got);
            k->reconstruct(&b, sum_of_points, RANKS, again);
            assert_memory_equal(mean, again, sizeof mean);
            for (int i = 0; i < CST_BLOCK; i++) {
                double exact = 0;
                for (int r = 0; r < RANKS; r++)
                    exact += (double)x[r][i] / RANKS;
                error += pow((double)mean[i] - exact, 2) / CST_BLOCK;
            }
            /* Pairwise independent dither: the variance of the mean is that of independent senders. */
            double expected = cst_lattice_of((cst_lattice_kind)kind)->second_moment * 0.25 / RANKS;
            assert_true(fabs(error / expected - 1) < 0.2);
        }
}

static int with_flush_mode(void **state)
{
    static cst_flush_mode saved;
    saved = cst_flush_enter();
    *state = &saved;
    cst_checksum_keys(9, keys);
    return 0;
}
static int without(void **state)
{
    cst_flush_leave(*(cst_flush_mode *)*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_find_nearest),
        cmocka_unit_test(test_kernels_decode_at_the_allowed_distance),
        cmocka_unit_test(test_need_is_enough),
        cmocka_unit_test(test_homomorphic_mean),
    };
    return cmocka_run_group_tests(tests, with_flush_mode, without);
}
