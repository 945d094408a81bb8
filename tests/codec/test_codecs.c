/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baseline codecs: error as their papers say, no bias, length as announced, hostile bytes.
 *
 * Confidence: K = 300 independent encodings of one vector of d = 8192 coordinates. The squared error is a mean over K d
 * terms, known to well under 1 %; bounds are 3 %. For an unbiased codec the mean of the K decodings misses x by an energy
 * of mse / K, chi-square with about d degrees of freedom: 1 +- 0.016; the bound is 1.15, nine deviations.
 */
#include "codec/codec.h"
#include "kernels/flush.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 8192, K = 300 };

static cst_tools *tools;
static float x[D];

static int make_tools(void **state)
{
    (void)state;
    tools = aligned_alloc(64, (sizeof *tools + 63) / 64 * 64);
    cst_tools_init(tools, 0, 7);
    uint64_t s = 88172645463325252u;
    for (int i = 0; i < D; i++) {
        double g = 0;
        for (int k = 0; k < 12; k++) { /* xorshift; twelve uniforms make a Gaussian good enough */
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            g += (double)(s >> 11) * 0x1p-53;
        }
        x[i] = (float)(g - 6);
    }
    return 0;
}

static int free_tools(void **state)
{
    (void)state;
    free(tools);
    return 0;
}

static cst_codec codec_of(const char *name, double bits)
{
    cst_codec codec;
    coset_error why = COSET_ERROR_INIT;
    if (cst_codec_parse(&codec, tools, name, bits, &why))
        fail_msg("%s", why.text);
    return codec;
}

static cst_codec_key key_of(uint64_t call, const cst_codec *codec)
{
    cst_codec_key key = {.root = cst_stream_root_of(7, 1, call), .sender = 3, .senders = 8, .phase = CST_PHASE_UP};
    if (codec->ops->measures)
        codec->ops->measure(codec, &key, x, D, key.common);
    return key;
}

typedef struct {
    double nmse, bias; /* squared error over energy; energy of the mean's error over mse / K */
    double bits;
} quality;

static quality try_codec(const cst_codec *codec)
{
    size_t bytes = codec->ops->bytes(codec, D);
    uint8_t *code = malloc(bytes);
    static double mean[D];
    static float y[D];
    double error = 0, energy = 0, off = 0;
    for (int i = 0; i < D; i++) {
        mean[i] = 0;
        energy += (double)x[i] * x[i];
    }
    for (int k = 0; k < K; k++) {
        cst_codec_key key = key_of((uint64_t)k, codec);
        codec->ops->encode(codec, &key, x, D, code);
        assert_true(codec->ops->decode(codec, &key, code, D, y));
        for (int i = 0; i < D; i++) {
            error += pow((double)y[i] - x[i], 2) / K;
            mean[i] += (double)y[i] / K;
        }
    }
    for (int i = 0; i < D; i++)
        off += pow(mean[i] - x[i], 2);
    free(code);
    return (quality){error / energy, off / (error / K), 8.0 * (double)bytes / D};
}

/* Sum of the variance of stochastic rounding to multiples of `step` above `low`, over the energy. */
static double rounding_nmse(float (*low_of)(int), float (*step_of)(int))
{
    double variance = 0, energy = 0;
    for (int i = 0; i < D; i++) {
        double at = ((double)x[i] - low_of(i)) / step_of(i), f = at - floor(at);
        variance += f * (1 - f) * pow(step_of(i), 2);
        energy += (double)x[i] * x[i];
    }
    return variance / energy;
}

static float zero(int i)
{
    (void)i;
    return 0;
}
static float largest_in(int begin, int n, float sign)
{
    float most = -INFINITY;
    for (int i = begin; i < begin + n; i++)
        most = fmaxf(most, sign == 0 ? fabsf(x[i]) : sign * x[i]);
    return most;
}
static float linf_step(int i)
{
    return largest_in(i / 512 * 512, 512, 0) / 7;
}
static float l2_step(int i)
{
    double energy = 0;
    for (int k = i / 512 * 512; k < i / 512 * 512 + 512; k++)
        energy += (double)x[k] * x[k];
    return (float)sqrt(energy) / 7;
}
static float ternary_step(int i)
{
    return largest_in(i / 4096 * 4096, 4096, 0);
}
static float suresh_low(int i)
{
    return -largest_in(i / 4096 * 4096, 4096, -1);
}
static float suresh_step(int i)
{
    return (largest_in(i / 4096 * 4096, 4096, 1) - suresh_low(i)) / 15;
}
static float power_below(int i)
{
    return x[i] == 0 ? 1 : (float)ldexp(1, ilogb(x[i]));
}

static void check(const char *name, double bits, double nmse, double wire_bits)
{
    cst_codec codec = codec_of(name, bits);
    cst_flush_mode mode = cst_flush_enter();
    quality q = try_codec(&codec);
    cst_flush_leave(mode);
    printf("%-22s %g bits: error %.5f (expected %.5f), bias %.3f, %.3f bits on the wire\n", name, bits, q.nmse, nmse,
           q.bias, q.bits);
    assert_true(fabs(q.nmse / nmse - 1) < 0.03);
    assert_true(q.bias < 1.15);
    assert_true(q.bits <= wire_bits);
}

static void eden_as_in_its_paper(void **state)
{
    (void)state;
    const double d[] = {0.36338, 0.117482, 0.034548, 0.009501, 0.0025047, 0.00064424};
    for (int bits = 1; bits <= 6; bits++)
        check("eden", bits, d[bits - 1] / (1 - d[bits - 1]), bits + 0.01);
}

static void codes_with_levels(void **state)
{
    (void)state;
    check("qsgd:linf,bucket=512", 4, rounding_nmse(zero, linf_step), 4.07);
    check("qsgd:l2,bucket=512", 4, rounding_nmse(zero, l2_step), 4.07);
    check("suresh", 4, rounding_nmse(suresh_low, suresh_step), 4.02);
    check("terngrad", 0, rounding_nmse(zero, ternary_step), 2.01);
    check("natural", 0, rounding_nmse(zero, power_below), 9);
}

/* One sender alone gains nothing from correlation: its error is that of its levels. */
static void correlated_and_rotated_are_unbiased(void **state)
{
    (void)state;
    const char *names[] = {"correlated", "correlated:rotated", "suresh:rotated"};
    for (int i = 0; i < 3; i++) {
        cst_codec codec = codec_of(names[i], 4);
        quality q = try_codec(&codec);
        printf("%s: error %.5f, bias %.3f\n", names[i], q.nmse, q.bias);
        assert_true(q.bias < 1.15);
        assert_true(q.nmse < 0.05);
    }
}

static void nan_makes_nan_of_what_shares_its_scale(void **state)
{
    (void)state;
    const char *names[] = {"eden",           "qsgd:linf", "qsgd:l2", "suresh",
                           "suresh:rotated", "terngrad",  "natural", "correlated"};
    static float y[D];
    const float kept = x[100];
    x[100] = NAN;
    for (int i = 0; i < 8; i++) {
        cst_codec codec = codec_of(names[i], 4);
        cst_codec_key key = key_of(1, &codec);
        uint8_t *code = malloc(codec.ops->bytes(&codec, D));
        codec.ops->encode(&codec, &key, x, D, code);
        assert_true(codec.ops->decode(&codec, &key, code, D, y));
        assert_true(isnan(y[100]));
        free(code);
    }
    x[100] = kept;
}

/* Any bytes decode to something or are refused; a sanitizer sees reads beyond the announced length. */
static void hostile_bytes(void **state)
{
    (void)state;
    const char *names[] = {"eden",    "qsgd:linf,bucket=100", "suresh", "suresh:rotated", "terngrad",
                           "natural", "correlated:rotated"};
    static float y[D];
    for (int i = 0; i < 7; i++)
        for (size_t n = 1; n <= 5000; n = n * 3 + 1) {
            cst_codec codec = codec_of(names[i], 3);
            cst_codec_key key = {.senders = 1};
            size_t bytes = codec.ops->bytes(&codec, n);
            uint8_t *code = malloc(bytes);
            for (size_t k = 0; k < bytes; k++)
                code[k] = (uint8_t)(k * 167 + 13);
            codec.ops->decode(&codec, &key, code, n, y);
            codec.ops->encode(&codec, &key, x, n, code);
            assert_true(codec.ops->decode(&codec, &key, code, n, y));
            free(code);
        }
}

static void names_and_parameters(void **state)
{
    (void)state;
    cst_codec codec;
    coset_error why = COSET_ERROR_INIT;
    const char *bad[] = {"edn",          "eden:x",         "qsgd:l3",       "qsgd:bucket=0",
                         "qsgd:bucket=", "qsgd:bucket=1x", "terngrad:linf", "suresh:rotated=1"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(cst_codec_parse(&codec, tools, bad[i], 4, &why), COSET_ERR_ARGUMENT);
        assert_true(why.text[0] != 0);
    }
    assert_int_equal(cst_codec_parse(&codec, tools, "eden", 9, &why), COSET_ERR_ARGUMENT);
    assert_int_equal(cst_codec_parse(&codec, tools, "qsgd:linf,bucket=77", 5, &why), COSET_OK);
    assert_true(codec.infinity_norm && codec.bucket == 77 && codec.bits == 5);
    assert_false(cst_codec_known("lattice"));
    assert_true(cst_codec_known("qsgd:linf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eden_as_in_its_paper),
        cmocka_unit_test(codes_with_levels),
        cmocka_unit_test(correlated_and_rotated_are_unbiased),
        cmocka_unit_test(nan_makes_nan_of_what_shares_its_scale),
        cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(names_and_parameters),
    };
    return cmocka_run_group_tests(tests, make_tools, free_tools);
}
