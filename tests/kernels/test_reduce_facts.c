/* SPDX-License-Identifier: Apache-2.0 */
/* The numerical contract of reductions as facts worked out by hand, at every level: docs/kernels.md in test form. */
#include "kernels/reduce/reduce.h"
#include "values.h"

#include <math.h>

/* Long enough for head, tiles, whole and partial vectors at every level. */
enum { N = 515, MAX_SRC = 6 };

/* Reduces N copies of the scalars and checks that every element is `expected`, bit for bit. */
static void expect(coset_dtype dtype, coset_op op, int nsrc, const void *scalars, unsigned divide, const void *expected,
                   const char *what)
{
    static char memory[MAX_SRC][N * 8], out[N * 8], all[N * 8];
    const size_t size = coset_dtype_size(dtype);
    const void *src[MAX_SRC];
    for (int s = 0; s < nsrc; s++) {
        for (size_t i = 0; i < N; i++)
            memcpy(memory[s] + i * size, (const char *)scalars + (size_t)s * size, size);
        src[s] = memory[s];
    }
    for (size_t i = 0; i < N; i++)
        memcpy(all + i * size, expected, size);
    void *dst = out;
    for (size_t count = 1; count <= N; count += N - 1) {
        cst_reduce(dtype, op, &dst, 1, src, nsrc, count, divide, 0);
        ca_same(all, out, count, size, what);
    }
}
#define F32(...)                                                                                                       \
    (const float[])                                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define F64(...)                                                                                                       \
    (const double[])                                                                                                   \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define U16(...)                                                                                                       \
    (const uint16_t[])                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define U32(...)                                                                                                       \
    (const uint32_t[])                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define U64(...)                                                                                                       \
    (const uint64_t[])                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define I8(...)                                                                                                        \
    (const int8_t[])                                                                                                   \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define U8(...)                                                                                                        \
    (const uint8_t[])                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define I32(...)                                                                                                       \
    (const int32_t[])                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define I64(...)                                                                                                       \
    (const int64_t[])                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void order(void)
{
    /* ((2^24 + 1) + 1) loses both ones; (1 + 1) + 2^24 keeps them. */
    expect(COSET_F32, COSET_SUM, 3, F32(0x1p24f, 1, 1), 1, F32(0x1p24f), "left to right");
    expect(COSET_F32, COSET_SUM, 3, F32(1, 1, 0x1p24f), 1, F32(0x1p24f + 2), "left to right");
    expect(COSET_F32, COSET_SUM, 6, F32(1e30f, 1, -1e30f, 1, 1, 1), 1, F32(3), "left to right, six sources");
    expect(COSET_F64, COSET_SUM, 5, F64(1e300, 1, -1e300, 1, 1), 1, F64(2), "left to right");
    expect(COSET_F32, COSET_PROD, 3, F32(1e30f, 1e30f, 0), 1, U32(0x7fc00000), "infinity times zero, canonical NaN");
}

static void nans(void)
{
    const uint32_t q = 0x7fc00000, signalling = 0xff800001, payload = 0xffedcba9;
    const uint32_t one = 0x3f800000, inf = 0x7f800000, minus_inf = 0xff800000;
    for (coset_op op = COSET_SUM; op <= COSET_PROD; op++) {
        expect(COSET_F32, op, 2, U32(one, signalling), 1, &q, "NaN second");
        expect(COSET_F32, op, 2, U32(payload, one), 1, &q, "NaN first");
        expect(COSET_F32, op, 3, U32(one, payload, minus_inf), 1, &q, "NaN in the middle");
        expect(COSET_F32, op, 5, U32(one, one, one, one, signalling), 3, &q, "NaN last, divided");
        expect(COSET_F32, op, 1, U32(payload), 1, &q, "one source");
        expect(COSET_F64, op, 2, U64(0xfff0000000000001, 0), 1, U64(0x7ff8000000000000), "NaN f64");
        expect(COSET_F16, op, 2, U16(0xfd55, 0x3c00), 1, U16(0x7e00), "NaN f16");
        expect(COSET_BF16, op, 2, U16(0x3f80, 0xff81), 1, U16(0x7fc0), "NaN bf16");
    }
    expect(COSET_F32, COSET_SUM, 2, U32(inf, minus_inf), 1, &q, "infinities cancel to the canonical NaN");
    expect(COSET_F32, COSET_SUM, 2, U32(inf, one), 1, &inf, "infinity stays");
}

static void zeros(void)
{
    const float plus = 0.0f, minus = -0.0f;
    expect(COSET_F32, COSET_MIN, 2, F32(plus, minus), 1, &minus, "min(+0, -0)");
    expect(COSET_F32, COSET_MIN, 2, F32(minus, plus), 1, &minus, "min(-0, +0)");
    expect(COSET_F32, COSET_MAX, 2, F32(plus, minus), 1, &plus, "max(+0, -0)");
    expect(COSET_F32, COSET_MAX, 2, F32(minus, plus), 1, &plus, "max(-0, +0)");
    expect(COSET_F32, COSET_MAX, 3, F32(minus, minus, minus), 1, &minus, "max(-0, -0, -0)");
    expect(COSET_F64, COSET_MIN, 2, F64(0.0, -0.0), 1, F64(-0.0), "min(+0, -0) f64");
    expect(COSET_F64, COSET_MAX, 2, F64(-0.0, 0.0), 1, F64(0.0), "max(-0, +0) f64");
    expect(COSET_F16, COSET_MIN, 2, U16(0, 0x8000), 1, U16(0x8000), "min(+0, -0) f16");
    expect(COSET_BF16, COSET_MAX, 2, U16(0x8000, 0), 1, U16(0), "max(-0, +0) bf16");
    expect(COSET_F32, COSET_SUM, 2, F32(minus, minus), 1, &minus, "-0 + -0");
    expect(COSET_F32, COSET_SUM, 1, F32(minus), 2, &minus, "-0 / 2");
}

static void extremes(void)
{
    const float tiny = 0x1p-149f, inf = INFINITY;
    expect(COSET_F32, COSET_MIN, 2, F32(tiny, 0), 1, F32(0), "denormals are not zero");
    expect(COSET_F32, COSET_MAX, 2, F32(0, tiny), 1, &tiny, "denormals are not zero");
    expect(COSET_F32, COSET_SUM, 2, F32(tiny, tiny), 1, F32(0x1p-148f), "denormals add");
    expect(COSET_F32, COSET_AVG, 2, F32(tiny, 2 * tiny), 2, F32(2 * tiny), "1.5 units of the last place, to even");
    expect(COSET_F32, COSET_AVG, 2, F32(2 * tiny, 3 * tiny), 2, F32(2 * tiny), "2.5 units of the last place, to even");
    expect(COSET_F32, COSET_SUM, 2, F32(3e38f, 3e38f), 1, &inf, "overflow");
    expect(COSET_F32, COSET_AVG, 2, F32(3e38f, 3e38f), 2, &inf, "an average overflows like its sum");
    expect(COSET_F32, COSET_MIN, 3, F32(inf, -inf, 0), 1, F32(-inf), "min with infinities");
}

static void halves(void)
{
    /* In f16 2048 + 1 would stay 2048; f32 keeps both ones. 2050 is an f16. */
    expect(COSET_F16, COSET_SUM, 3, U16(0x6800, 0x3c00, 0x3c00), 1, U16(0x6801), "f16 accumulates in f32");
    /* 256 + 1 + 1 in bf16: 258 is representable, 257 is not. */
    expect(COSET_BF16, COSET_SUM, 3, U16(0x4380, 0x3f80, 0x3f80), 1, U16(0x4381), "bf16 accumulates in f32");
    /* 65504 + 65504 is infinite in f16, but not its half. */
    expect(COSET_F16, COSET_AVG, 2, U16(0x7bff, 0x7bff), 2, U16(0x7bff), "the sum may exceed the type");
    expect(COSET_F16, COSET_SUM, 2, U16(0x7bff, 0x7bff), 1, U16(0x7c00), "overflow to infinity");
    expect(COSET_F16, COSET_SUM, 2, U16(0x6800, 0x3c00), 1, U16(0x6800), "2049 ties to even");
    expect(COSET_F16, COSET_SUM, 2, U16(0x6801, 0x3c00), 1, U16(0x6802), "2051 ties to even");
    expect(COSET_F16, COSET_SUM, 2, U16(1, 2), 1, U16(3), "f16 denormals");
    expect(COSET_BF16, COSET_SUM, 2, U16(1, 2), 1, U16(3), "bf16 denormals");
    expect(COSET_F16, COSET_PROD, 2, U16(0x0400, 0x3800), 1, U16(0x0200), "a product becomes denormal");
}

static void divisions(void)
{
    /* 5 / 3 rounds differently from 5 * (1 / 3): 0x3fd55555 and 0x3fd55556. */
    expect(COSET_F32, COSET_AVG, 3, F32(1, 2, 2), 3, U32(0x3fd55555), "a division, not a product");
    /* 9 / 49 likewise. */
    expect(COSET_F64, COSET_AVG, 2, F64(4, 5), 49, F64(9.0 / 49.0), "a division, not a product");
    ca_expect(9.0 / 49.0 != 9.0 * (1.0 / 49.0) && 5.0f / 3.0f != 5.0f * (1.0f / 3.0f), "the cases tell them apart");
    expect(COSET_F32, COSET_AVG, 4, F32(1, 2, 3, 4), 4, F32(2.5f), "a power of two");
}

static void wrapping(void)
{
    expect(COSET_I8, COSET_SUM, 2, I8(127, 1), 1, I8(-128), "i8 wraps");
    expect(COSET_U8, COSET_SUM, 3, U8(255, 255, 3), 1, U8(1), "u8 wraps");
    expect(COSET_I32, COSET_SUM, 2, I32(INT32_MAX, 1), 1, I32(INT32_MIN), "i32 wraps");
    expect(COSET_U32, COSET_PROD, 2, U32(0x10001, 0x10001), 1, U32(0x20001), "u32 product wraps");
    expect(COSET_I64, COSET_SUM, 2, I64(INT64_MIN, -1), 1, I64(INT64_MAX), "i64 wraps");
    expect(COSET_U64, COSET_PROD, 2, U64(0x100000001, 0x300000002), 1, U64(0x500000002), "u64 product wraps");
    expect(COSET_I8, COSET_PROD, 3, I8(-128, -1, 3), 1, I8(-128), "i8 product wraps");
    expect(COSET_I8, COSET_AVG, 2, I8(100, 100), 2, I8(-28), "an average divides the wrapped sum");
    expect(COSET_I8, COSET_MIN, 2, I8(-1, 1), 1, I8(-1), "signed order");
    expect(COSET_U8, COSET_MIN, 2, U8(255, 1), 1, U8(1), "unsigned order");
    expect(COSET_I32, COSET_MAX, 2, I32(-1, 0), 1, I32(0), "signed order");
    expect(COSET_U32, COSET_MAX, 2, U32(0xffffffff, 0), 1, U32(0xffffffff), "unsigned order");
    expect(COSET_I64, COSET_MIN, 2, I64(-1, 1), 1, I64(-1), "signed order");
    expect(COSET_U64, COSET_MIN, 2, U64(~0ull, 1), 1, U64(1), "unsigned order");
}

/* Truncation towards zero: all 8-bit numbers by all divisors to 300, and the ends of the wide types. C's own division of
 * wider numbers is the judge. */
static void truncation(void)
{
    int8_t i8[256], iq[256];
    uint8_t u8[256], uq[256];
    for (int i = 0; i < 256; i++)
        i8[i] = (int8_t)(i - 128), u8[i] = (uint8_t)i;
    for (int n = 2; n <= 300; n++) {
        int8_t ie[256];
        uint8_t ue[256];
        for (int i = 0; i < 256; i++)
            ie[i] = (int8_t)((i - 128) / n), ue[i] = (uint8_t)(i / n);
        cst_reduce(COSET_I8, COSET_AVG, &(void *){iq}, 1, &(const void *){i8}, 1, 256, (unsigned)n, 0);
        ca_same(ie, iq, 256, 1, "i8 division");
        cst_reduce(COSET_U8, COSET_AVG, &(void *){uq}, 1, &(const void *){u8}, 1, 256, (unsigned)n, 0);
        ca_same(ue, uq, 256, 1, "u8 division");
    }
    static const unsigned divisors[] = {2, 3, 4, 7, 8, 641, 65536, 65537, 1u << 31, 0x80000001, 0xffffffff};
    static const int64_t near[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++)
        for (size_t k = 0; k < sizeof near / sizeof *near; k++)
            for (int64_t off = -3; off <= 3; off++) {
                const int64_t n = divisors[d], x = (int64_t)((uint64_t)near[k] + (uint64_t)off);
                const int32_t x32 = (int32_t)x;
                expect(COSET_I64, COSET_AVG, 1, &x, (unsigned)n, I64(x / n), "i64 division");
                expect(COSET_U64, COSET_AVG, 1, &x, (unsigned)n, U64((uint64_t)x / (uint64_t)n), "u64 division");
                expect(COSET_I32, COSET_AVG, 1, &x32, (unsigned)n, I32((int32_t)(x32 / n)), "i32 division");
                expect(COSET_U32, COSET_AVG, 1, &x32, (unsigned)n, U32((uint32_t)x32 / divisors[d]), "u32 division");
            }
}

/* A rank whose caller rounds towards zero and flushes denormals gets the same bits. */
static void modes(void)
{
    const uint64_t mode = ca_set_odd_fpmode();
    extremes();
    divisions();
    halves();
    ca_expect(ca_fpmode() == mode, "the caller's mode is restored");
    ca_set_default_fpmode();
}

int main(int argc, char **argv)
{
    static void (*const facts[])(void) = {order, nans, zeros, extremes, halves, divisions, wrapping, truncation, modes};
    ca_begin(argc, argv);
    for (cst_cpu level = 0; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
                facts[i]();
    return ca_end();
}
