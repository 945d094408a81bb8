/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of 16-bit floats, at every level: the values against definitions that share no code with the kernels (all
 * 65536 patterns; every rounding boundary between neighbours), then every length and misalignment against scalar. */
#include "kernels/convert/convert.h"
#include "values.h"

#include <math.h>

enum { PATTERNS = 1 << 16 };

/* What tells the two formats apart. */
typedef struct {
    coset_dtype dtype;
    int fraction_bits, bias;
    uint16_t infinity, nan;
} format;
static const format formats[] = {{COSET_F16, 10, 15, 0x7c00, 0x7e00}, {COSET_BF16, 7, 127, 0x7f80, 0x7fc0}};

/* The value of a finite pattern, straight from the definition of the format. */
static double value_of(const format *f, uint16_t bits)
{
    const int fraction = bits & ((1 << f->fraction_bits) - 1), exponent = (bits & 0x7fff) >> f->fraction_bits;
    const double magnitude = exponent ? ldexp((1 << f->fraction_bits) + fraction, exponent - f->bias - f->fraction_bits)
                                      : ldexp(fraction, 1 - f->bias - f->fraction_bits);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static uint16_t narrow_one(const format *f, float x)
{
    /* As many copies as fill tiles and a part of a vector, so that each code path gives the same. */
    float in[77];
    uint16_t out[77];
    for (int i = 0; i < 77; i++)
        in[i] = x;
    cst_narrow(f->dtype, out, in, 77, 1);
    for (int i = 1; i < 77; i++)
        ca_expect(out[i] == out[0], "the same value narrows alike at every position");
    return out[0];
}

static void widen_all(const format *f)
{
    static uint16_t all[PATTERNS], back[PATTERNS];
    static float wide[PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        all[i] = (uint16_t)i;
    cst_widen(f->dtype, wide, all, PATTERNS);
    cst_narrow(f->dtype, back, wide, PATTERNS, 1);
    for (int i = 0; i < PATTERNS; i++) {
        const uint16_t magnitude = all[i] & 0x7fff;
        if (magnitude > f->infinity) {
            ca_expect(bits_of(wide[i]) == 0x7fc00000 && back[i] == f->nan, "every NaN becomes the canonical one");
            continue;
        }
        ca_expect(back[i] == all[i], "widening and narrowing gives the pattern back");
        if (magnitude == f->infinity)
            ca_expect(isinf(wide[i]) && !signbit(wide[i]) == !(all[i] & 0x8000), "infinity stays infinity");
        else
            ca_expect((double)wide[i] == value_of(f, all[i]) && !signbit(wide[i]) == !(all[i] & 0x8000),
                      "widening is exact");
    }
}

/* Between every two neighbours: halfway goes to the even one, a hair to either side to the nearer one. Above
 * the largest number stands the next power of two, as infinity. */
static void narrow_boundaries(const format *f)
{
    static float in[3 * PATTERNS];
    static uint16_t out[3 * PATTERNS], expected[3 * PATTERNS];
    size_t n = 0;
    for (uint16_t low = 0; low < f->infinity; low++) {
        const double a = value_of(f, low);
        const double next = low + 1 == f->infinity ? 2 * a - value_of(f, low - 1) : value_of(f, low + 1);
        const float middle = (float)((a + next) / 2);
        in[n] = middle, expected[n++] = low & 1 ? low + 1 : low;
        in[n] = nextafterf(middle, 0), expected[n++] = low;
        in[n] = nextafterf(middle, INFINITY), expected[n++] = low + 1;
    }
    for (int sign = 0; sign < 2; sign++) {
        cst_narrow(f->dtype, out, in, n, 1);
        ca_same(expected, out, n, 2, "rounding to nearest, ties to even");
        for (size_t i = 0; i < n; i++)
            in[i] = -in[i], expected[i] |= 0x8000;
    }
}

static void narrow_extremes(const format *f)
{
    ca_expect(narrow_one(f, 3e38f) == (f->dtype == COSET_F16 ? 0x7c00 : 0x7f62), "large numbers");
    ca_expect(narrow_one(f, -INFINITY) == (f->infinity | 0x8000), "infinity");
    ca_expect(narrow_one(f, NAN) == f->nan && narrow_one(f, -NAN) == f->nan, "NaN");
    ca_expect(narrow_one(f, -0.0f) == 0x8000, "negative zero");
    /* The smallest f32 denormal: nothing in f16, and in bf16 too (0x0001 is 2^16 times it). */
    ca_expect(narrow_one(f, 0x1p-149f) == 0, "the smallest denormal");
    ca_expect(narrow_one(f, 1.0f) == (f->dtype == COSET_F16 ? 0x3c00 : 0x3f80), "one");
}

/* Divided in f32, then rounded: 1/3 and 5/3 in both formats, by hand. */
static void narrow_divides(const format *f)
{
    const float in[2] = {1, 5};
    uint16_t out[2];
    cst_narrow(f->dtype, out, in, 2, 3);
    if (f->dtype == COSET_F16)
        ca_expect(out[0] == 0x3555 && out[1] == 0x3eab, "f16 thirds");
    else
        ca_expect(out[0] == 0x3eab && out[1] == 0x3fd5, "bf16 thirds");
}

/* --- every length, against scalar --- */
static ca_buffer wide_buffer, half_buffer, reference;

static void check_length(const format *f, size_t count, unsigned divide, bool odd_mode)
{
    char what[96];
    snprintf(what, sizeof what, "%s, count %zu, divide %u%s", coset_dtype_name(f->dtype), count, divide,
             odd_mode ? ", odd mode" : "");
    void *wide = ca_place(&wide_buffer, 4 * count, ca_below(3) ? 0 : ca_below(64));
    void *half = ca_place(&half_buffer, 2 * count, ca_below(3) ? 0 : ca_below(64));
    void *ref = ca_place(&reference, 4 * count, 0);

    ca_fill(half, f->dtype, count);
    ca_use_scalar();
    cst_widen(f->dtype, ref, half, count);
    ca_use_variant();
    if (odd_mode)
        ca_set_odd_fpmode();
    cst_widen(f->dtype, wide, half, count);
    ca_set_default_fpmode();
    ca_same(ref, wide, count, 4, what);

    ca_fill(wide, COSET_F32, count);
    ca_use_scalar();
    cst_narrow(f->dtype, ref, wide, count, divide);
    ca_use_variant();
    const uint64_t mode = odd_mode ? ca_set_odd_fpmode() : ca_fpmode();
    cst_narrow(f->dtype, half, wide, count, divide);
    ca_expect(ca_fpmode() == mode, "the caller's floating-point mode is restored");
    ca_set_default_fpmode();
    ca_same(ref, half, count, 2, what);
    ca_expect(ca_intact(&wide_buffer) && ca_intact(&half_buffer), "nothing outside is written");
}

static void check_lengths(const format *f)
{
    static const unsigned divides[] = {1, 2, 3, 8, 1000};
    for (size_t count = 0; count <= 4 * 16 + 1; count++)
        for (size_t d = 0; d < sizeof divides / sizeof *divides; d++)
            check_length(f, count, divides[d], d & 1);
    for (int i = 0; i < 200; i++)
        check_length(f, ca_below(1000), divides[ca_below(5)], ca_below(2));
}

static void check_format(const format *f)
{
    widen_all(f);
    narrow_boundaries(f);
    narrow_extremes(f);
    narrow_divides(f);
    check_lengths(f);
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    wide_buffer = ca_open(4096), half_buffer = ca_open(4096), reference = ca_open(4096);
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++)
        if (ca_level(level)) {
            check_format(&formats[0]);
            check_format(&formats[1]);
        }
    return ca_end();
}
