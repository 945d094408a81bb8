/* SPDX-License-Identifier: Apache-2.0 */
/* The entropy code: every level against the scalar one, round trips, rates, tables, and hostile bytes. */
#include "cases.h"

#include "kernels/entropy/tables.h"

enum { BLOCKS = 16, STREAM_MAX = BLOCKS * CST_BLOCK * 10 };

typedef struct {
    uint32_t n[BLOCKS];
    cst_entropy_model model[BLOCKS];
    double ratio[BLOCKS]; /* true sigma / step */
    int32_t points[BLOCKS][CST_BLOCK];
} stream_case;

static ca_buffer stream_buffer, point_buffer;

static int32_t dithered(double ratio)
{
    return (int32_t)floor(gaussian() * ratio + uniform_open());
}

static void fill_points(int32_t *points, uint32_t n, double ratio)
{
    size_t manner = ca_below(4);
    for (uint32_t i = 0; i < n; i++) {
        points[i] = dithered(ratio);
        if (manner == 1 && ca_below(20) == 0)
            points[i] = (int32_t)ca_random(); /* any integer at all */
        if (manner == 2)
            points[i] *= 5; /* a model that is far off */
    }
}

static void fill_case(stream_case *c)
{
    for (int b = 0; b < BLOCKS; b++) {
        c->n[b] = random_length();
        c->ratio[b] = exp(9 * uniform_open() - 3);
        c->model[b] = cst_entropy_model_for((float)c->ratio[b]);
        if (ca_below(8) == 0)
            c->model[b] = (cst_entropy_model){(uint8_t)ca_below(CST_ENTROPY_TABLES),
                                              (uint8_t)ca_below(CST_ENTROPY_SHIFT_MAX + 1)};
        fill_points(c->points[b], c->n[b], c->ratio[b]);
    }
}

/* Into the end of a buffer; returns the length. */
static size_t encode_stream(const cst_entropy_kernels *k, const stream_case *c, uint8_t *buffer)
{
    cst_entropy_encoder e;
    cst_entropy_encoder_init(&e, buffer, STREAM_MAX);
    for (int b = BLOCKS - 1; b >= 0; b--)
        ca_expect(k->encode(&e, c->model[b], c->points[b], c->n[b]), "encode: no room in an ample buffer");
    uint8_t *start = cst_entropy_encoder_finish(&e);
    return (size_t)(buffer + STREAM_MAX - start);
}

/* Blocks decoded before the bytes turned out wrong, or BLOCKS + 1 if all is well up to the last state. */
static int decode_stream(const cst_entropy_kernels *k, const stream_case *c, const uint8_t *bytes, size_t length,
                         int32_t out[BLOCKS][CST_BLOCK])
{
    cst_entropy_decoder d;
    if (!cst_entropy_decoder_init(&d, bytes, length))
        return -1;
    for (int b = 0; b < BLOCKS; b++) {
        int32_t *points = (int32_t *)(void *)ca_place(&point_buffer, 4 * c->n[b], 0);
        if (!k->decode(&d, c->model[b], points, c->n[b]))
            return b;
        memcpy(out[b], points, 4 * c->n[b]);
        ca_expect(ca_intact(&point_buffer), "decode: wrote outside");
    }
    return cst_entropy_decoder_finish(&d) ? BLOCKS + 1 : BLOCKS;
}

static void check_variant(const stream_case *c)
{
    const cst_entropy_kernels *variant = cst_entropy_kernels_for((int)ca.variant);
    static uint8_t expected[STREAM_MAX], got[STREAM_MAX];
    static int32_t decoded[BLOCKS][CST_BLOCK];
    size_t length = encode_stream(&cst_entropy_scalar, c, expected);
    ca_expect(length == encode_stream(variant, c, got), "encode: length");
    ca_same(expected + STREAM_MAX - length, got + STREAM_MAX - length, length, 1, "encode: bytes");
    const uint8_t *in = memcpy(ca_place(&stream_buffer, length, 0), got + STREAM_MAX - length, length);
    ca_expect(decode_stream(variant, c, in, length, decoded) == BLOCKS + 1, "decode: the stream does not end well");
    for (int b = 0; b < BLOCKS; b++)
        ca_same(c->points[b], decoded[b], c->n[b], 4, "decode: points");
}

/* Truncated at the front or back, or with bytes changed: both levels do the same, and stay inside. */
static void check_hostile(const stream_case *c)
{
    const cst_entropy_kernels *variant = cst_entropy_kernels_for((int)ca.variant);
    static uint8_t bytes[STREAM_MAX];
    static int32_t expected[BLOCKS][CST_BLOCK], got[BLOCKS][CST_BLOCK];
    size_t length = encode_stream(&cst_entropy_scalar, c, bytes);
    for (int i = 0; i < 12; i++) {
        size_t kept = i < 4 ? length : ca_below(length + 1);
        uint8_t *in = memcpy(ca_place(&stream_buffer, kept, 0), bytes + STREAM_MAX - length, kept);
        for (size_t damage = ca_below(4); damage > 0 && kept > 0; damage--)
            in[ca_below(kept)] = (uint8_t)ca_random();
        if (i == 0)
            for (size_t j = 128; j < kept; j++)
                in[j] = (uint8_t)ca_random();
        int scalar_end = decode_stream(&cst_entropy_scalar, c, in, kept, expected);
        int variant_end = decode_stream(variant, c, in, kept, got);
        ca_expect(scalar_end == variant_end, "hostile: levels end differently");
        for (int b = 0; b < scalar_end && b < BLOCKS; b++)
            ca_same(expected[b], got[b], c->n[b], 4, "hostile: points");
    }
}

static void check_room(void)
{
    const cst_entropy_kernels *variant = cst_entropy_kernels_for((int)ca.variant);
    const cst_entropy_model m = {4, 0};
    static uint8_t buffer[CST_BLOCK * 8];
    static int32_t points[CST_BLOCK];
    cst_entropy_encoder e;
    cst_entropy_encoder_init(&e, buffer, cst_entropy_block_bound(CST_BLOCK, m) - 1);
    const uint8_t *before = e.next;
    ca_expect(!variant->encode(&e, m, points, CST_BLOCK) && e.next == before,
              "a block was put where its bound does not fit");
    cst_entropy_encoder_init(&e, buffer, CST_ENTROPY_STATES_BYTES - 1);
    ca_expect(cst_entropy_encoder_finish(&e) == NULL, "states were put where they do not fit");
    for (uint32_t i = 0; i < CST_BLOCK; i++)
        points[i] = INT32_MIN + (int32_t)i; /* escapes only: the worst case */
    uint8_t *room = (uint8_t *)ca_place(&stream_buffer, cst_entropy_block_bound(CST_BLOCK, m), 0);
    cst_entropy_encoder_init(&e, room, cst_entropy_block_bound(CST_BLOCK, m));
    ca_expect(variant->encode(&e, m, points, CST_BLOCK) && ca_intact(&stream_buffer),
              "the bound of a block is too low");
}

/* Integral of the normal distribution function of standard deviation sigma up to v. */
static double integral_of_normal(double v, double sigma)
{
    const double pi = 3.14159265358979323846;
    return v * 0.5 * erfc(-v / (sigma * sqrt(2.0))) + sigma * exp(-v * v / (2 * sigma * sigma)) / sqrt(2 * pi);
}

/* Expected bits per coordinate, raw bits and escapes counted, when the model codes Gaussians of this sigma/step. */
static double expected_bits(cst_entropy_model m, double ratio)
{
    const cst_entropy_encode_table *e = &cst_entropy_encode_tables()[m.table];
    const double escape_value_bits = 32, width = ldexp(1.0, m.shift);
    const double first = m.shift ? -width / 2 : 0; /* integers first .. first + width - 1 are coded as 0 */
    double bits = m.shift, coded = 0;
    for (int s = 0; s < e->escape; s++) {
        double low = first + width * (s - e->largest), high = low + width;
        double p = (integral_of_normal(high, ratio) - integral_of_normal(high - 1, ratio)) -
                   (integral_of_normal(low, ratio) - integral_of_normal(low - 1, ratio));
        p = p > 0 ? p : 0;
        bits += p * (CST_ENTROPY_BITS - log2(e->frequency[s]));
        coded += p;
    }
    double escapes = coded < 1 ? 1 - coded : 0;
    return bits + escapes * (escape_value_bits + CST_ENTROPY_BITS - log2(e->frequency[e->escape]));
}

/* 64 full blocks of Gaussians: the stream is within 1 % + 0.006 bit of what is expected. */
static void check_rate(float ratio)
{
    enum { COUNT = 64 };
    static uint8_t buffer[COUNT * CST_BLOCK * 8];
    static int32_t points[CST_BLOCK];
    const cst_entropy_model m = cst_entropy_model_for(ratio);
    cst_entropy_encoder e;
    cst_entropy_encoder_init(&e, buffer, sizeof buffer);
    for (int b = 0; b < COUNT; b++) {
        for (uint32_t i = 0; i < CST_BLOCK; i++)
            points[i] = dithered(ratio);
        cst_entropy_scalar.encode(&e, m, points, CST_BLOCK);
    }
    uint8_t *start = cst_entropy_encoder_finish(&e);
    double bits = 8.0 * (double)(buffer + sizeof buffer - start) / (COUNT * CST_BLOCK), cost = expected_bits(m, ratio);
    if (fabs(bits - cost) > 0.01 * cost + 0.006)
        ca_fail("ratio %g: %g bits, expected %g", (double)ratio, bits, cost);
    ca.cases++;
}

/* Entropy of round(x + theta), x Gaussian, theta uniform: summed numerically. */
static double true_entropy(double ratio)
{
    double h = 0;
    for (int k = -(int)(12 * ratio) - 3; k <= (int)(12 * ratio) + 3; k++) {
        double p = 0;
        const int parts = 400;
        for (int j = 0; j < parts; j++) { /* average of P(k - 1/2 - theta < x < k + 1/2 - theta) */
            double low = k - 0.5 - ((j + 0.5) / parts - 0.5);
            p += 0.5 * (erfc(low / (ratio * sqrt(2))) - erfc((low + 1) / (ratio * sqrt(2)))) / parts;
        }
        if (p > 1e-300)
            h -= p * log2(p);
    }
    return h;
}

/* Tables are whole, and cost at most this many bits above the entropy: at their own scale, and anywhere. */
static void check_tables(void)
{
    for (int t = 0; t < CST_ENTROPY_TABLES; t++) {
        const cst_entropy_encode_table *e = &cst_entropy_encode_tables()[t];
        uint32_t sum = 0;
        for (int s = 0; s <= e->escape; s++) {
            ca_expect(e->frequency[s] > 0, "a symbol without frequency");
            sum += e->frequency[s];
        }
        ca_expect(sum == 1 << CST_ENTROPY_BITS && e->escape < CST_ENTROPY_SYMBOLS,
                  "frequencies do not sum to the whole");
        double ratio = 0.25 * exp2(t / 4.0);
        ca_expect(expected_bits((cst_entropy_model){(uint8_t)t, 0}, ratio) - true_entropy(ratio) < 0.012,
                  "a table costs too much");
    }
    for (double ratio = 0.24; ratio < 60; ratio *= 1.07)
        ca_expect(expected_bits(cst_entropy_model_for((float)ratio), ratio) - true_entropy(ratio) < 0.035,
                  "the chosen model costs too much");
}

static void check_models(void)
{
    const float odd[] = {0.0f, -1.0f, NAN, INFINITY, 1e-30f, 3e38f};
    for (int i = 0; i < 6; i++)
        ca_expect(cst_entropy_model_valid(cst_entropy_model_for(odd[i])), "a model that is none");
}

int main(int argc, char **argv)
{
    static stream_case c;
    ca_begin(argc, argv);
    stream_buffer = ca_open(STREAM_MAX);
    point_buffer = ca_open(4 * CST_BLOCK);
    check_tables();
    check_models();
    for (float ratio = 0.2f; ratio < 100; ratio *= 2.3f)
        check_rate(ratio);
    for (cst_cpu level = CST_CPU_SCALAR; level < CST_CPU_COUNT; level++)
        if (ca_level(level)) {
            check_room();
            for (int i = 0; i < (ca_quick() ? 4 : 25); i++) {
                fill_case(&c);
                check_variant(&c);
                check_hostile(&c);
            }
        }
    return ca_end();
}
