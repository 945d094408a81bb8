/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation: every level against the scalar one, the scalar one against the definition, and what it promises. */
#include "cases.h"

#include "kernels/hadamard/hadamard.h"

static ca_buffer in_buffer, out_buffer;

static void random_signs(uint32_t n, uint32_t signs[CST_SIGN_WORDS])
{
    cst_stream s = cst_stream_of(cst_stream_root_of(ca_random(), 1, 2), CST_USE_SIGNS, 0, CST_EVERY_SENDER, 3);
    cst_random_scalar.words(&s, 0, cst_sign_words(n), signs);
}

static bool sign_bit(const uint32_t *signs, uint32_t i)
{
    return signs[CST_LANES * (i / 512) + i % CST_LANES] >> (31 - i / CST_LANES % 32) & 1;
}

/* Integers: every sum is exact, so the definition can be compared exactly. */
static void check_definition(uint32_t n)
{
    static float x[CST_BLOCK], y[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    int log2_n = 31 - __builtin_clz(n);
    random_signs(n, signs);
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)((int)ca_below(2001) - 1000);
    cst_hadamard_scalar.rotate(x, y, n, signs, NULL);
    for (int k = 0; k < 40; k++) {
        uint32_t row = (uint32_t)ca_below(n);
        double sum = 0;
        for (uint32_t i = 0; i < n; i++)
            sum += (__builtin_parity(row & i) != sign_bit(signs, i) ? -1.0 : 1.0) * x[i];
        ca_expect(y[row] == ldexp(sum, -(log2_n / 2)), "rotate is not the Hadamard matrix");
    }
    cst_hadamard_scalar.unrotate(y, y, n, signs, NULL, false);
    for (uint32_t i = 0; i < n; i++)
        ca_expect(x[i] == y[i], "unrotate does not undo rotate on integers");
}

static void check_energy_and_f64(uint32_t n)
{
    static float x[CST_BLOCK], y[CST_BLOCK];
    static double d[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    double before = 0, after = 0, worst = 0;
    random_signs(n, signs);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = (float)gaussian();
        d[i] = x[i];
        before += d[i] * d[i];
    }
    cst_hadamard_scalar.rotate(x, y, n, signs, NULL);
    cst_rotate_f64(d, n, signs);
    for (uint32_t i = 0; i < n; i++) {
        after += (double)y[i] * y[i];
        worst = fmax(worst, fabs(y[i] - d[i]));
    }
    ca_expect(fabs(after / before - (double)cst_rotation_energy(n)) < 1e-5, "energy");
    ca_expect(worst < 5e-6, "f32 and f64 rotations differ");
    cst_unrotate_f64(d, n, signs);
    worst = 0;
    for (uint32_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(x[i] - d[i]));
    ca_expect(worst < 1e-13, "the f64 rotation is not undone");
}

static void check_variant(uint32_t n)
{
    const cst_hadamard_kernels *variant = cst_hadamard_kernels_for((int)ca.variant);
    static float x[CST_BLOCK], expected[CST_BLOCK];
    uint32_t signs[CST_SIGN_WORDS];
    const size_t margin = ca_below(2) ? 0 : 4 * ca_below(17);
    random_signs(n, signs);
    fill_vector(x, n, exp(20 * uniform_open() - 10));
    const float *in = memcpy(ca_place(&in_buffer, 4 * n, margin), x, 4 * n);
    float *out = (float *)(void *)ca_place(&out_buffer, 4 * n, margin);
    cst_hadamard_scalar.rotate(x, expected, n, signs, NULL);
    variant->rotate(in, out, n, signs, in);
    ca_same(expected, out, n, 4, "rotate");
    memcpy(out, x, 4 * n);
    variant->rotate(out, out, n, signs, NULL);
    ca_same(expected, out, n, 4, "rotate in place");
    cst_hadamard_scalar.unrotate(x, expected, n, signs, NULL, false);
    for (int stream = 0; stream < 2; stream++) {
        memset(out, 0, 4 * n);
        variant->unrotate(in, out, n, signs, in, stream);
        ca_same(expected, out, n, 4, stream ? "unrotate, streaming" : "unrotate");
    }
    memcpy(out, x, 4 * n);
    variant->unrotate(out, out, n, signs, NULL, false);
    ca_same(expected, out, n, 4, "unrotate in place");
    ca_expect(ca_intact(&in_buffer) && ca_intact(&out_buffer), "rotation: wrote outside");
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    in_buffer = ca_open(4 * CST_BLOCK);
    out_buffer = ca_open(4 * CST_BLOCK);
    cst_flush_mode saved = cst_flush_enter();
    for (uint32_t n = CST_UNIT; n <= CST_BLOCK; n *= 2) {
        check_definition(n);
        check_energy_and_f64(n);
    }
    for (cst_cpu level = CST_CPU_SCALAR; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            for (int i = 0; i < (ca_quick() ? 10 : 60); i++)
                for (uint32_t n = CST_UNIT; n <= CST_BLOCK; n *= 2)
                    check_variant(n);
    cst_flush_leave(saved);
    return ca_end();
}
