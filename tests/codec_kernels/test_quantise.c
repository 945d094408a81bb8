/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisers, packing and checksums at every level against the scalar ones, byte for byte, inside guarded buffers. */
#include "cases.h"

#include "kernels/norm/norm.h"
#include "kernels/quantise/sum.h"

static int32_t keys[CST_CHECKSUM_KEYS];
static ca_buffer in_buffer, ref_buffer, code_buffer, out_buffer, point_buffer;

typedef struct {
    float x[CST_BLOCK], ref[CST_BLOCK];
    uint8_t classes[CST_BLOCK_UNITS];
    uint8_t codes[CST_PACKED_MAX];
    uint16_t digits[CST_BLOCK];
    float out[CST_BLOCK];
    int32_t points[CST_BLOCK];
} block_case;

/* Flush with the forbidden page, or anywhere that suits elements of this size. */
static size_t random_margin(size_t element)
{
    return ca_below(2) ? 0 : element * ca_below(65);
}
static void *guarded_copy(ca_buffer *b, const void *data, size_t n, size_t element)
{
    return memcpy(ca_place(b, n * element, random_margin(element)), data, n * element);
}
static float *place_floats(ca_buffer *b, size_t n)
{
    return (float *)(void *)ca_place(b, 4 * n, random_margin(4));
}
static int32_t *place_points(size_t n)
{
    return (int32_t *)(void *)ca_place(&point_buffer, 4 * n, random_margin(4));
}
static bool all_intact(void)
{
    return ca_intact(&in_buffer) && ca_intact(&ref_buffer) && ca_intact(&code_buffer) && ca_intact(&out_buffer) &&
           ca_intact(&point_buffer);
}
static void same_sums(cst_checksum expected, cst_checksum got, const char *what)
{
    ca_same(&expected, &got, 1, sizeof expected, what);
}

static void check_encode(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant,
                         const cst_lattice_block *b, block_case *c)
{
    const uint32_t n = b->n;
    const size_t packed = cst_packed_bytes(c->classes, n / CST_UNIT);
    cst_checksum sum = scalar->encode(b, c->x, c->classes, c->codes, c->points);
    const float *x = guarded_copy(&in_buffer, c->x, n, 4);
    uint8_t *codes = (uint8_t *)ca_place(&code_buffer, packed, random_margin(1));
    int32_t *points = place_points(n);
    same_sums(sum, variant->encode(b, x, c->classes, codes, points), "encode: checksum");
    ca_same(c->codes, codes, packed, 1, "encode: codes");
    ca_same(c->points, points, n, 4, "encode: points");
    memset(codes, 0, packed);
    same_sums(sum, variant->encode(b, x, c->classes, codes, NULL), "encode without points: checksum");
    ca_same(c->codes, codes, packed, 1, "encode without points: codes");
    same_sums(sum, variant->quantise(b, x, points), "quantise: checksum");
    ca_same(c->points, points, n, 4, "quantise: points");
    float *value = place_floats(&out_buffer, n);
    sum = scalar->quantise_both(b, c->x, 0.7f, c->points, c->out);
    same_sums(sum, variant->quantise_both(b, x, 0.7f, points, value), "quantise_both: checksum");
    ca_same(c->points, points, n, 4, "quantise_both: points");
    ca_same(c->out, value, n, 4, "quantise_both: values");
    ca_expect(all_intact(), "encode: wrote outside");
}

static void check_decode(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant,
                         const cst_lattice_block *b, block_case *c)
{
    const uint32_t n = b->n;
    const float scale = ca_below(2) ? 1.0f : 0.9f;
    const uint8_t *codes = guarded_copy(&code_buffer, c->codes, cst_packed_bytes(c->classes, n / CST_UNIT), 1);
    const float *ref = guarded_copy(&ref_buffer, c->ref, n, 4);
    float *out = place_floats(&out_buffer, n);
    int32_t *points = place_points(n);
    cst_checksum sum = scalar->decode(b, codes, c->classes, ref, scale, c->out, c->points);
    same_sums(sum, variant->decode(b, codes, c->classes, ref, scale, out, points), "decode: checksum");
    ca_same(c->out, out, n, 4, "decode: values");
    ca_same(c->points, points, n, 4, "decode: points");
    memset(out, 0, 4 * n);
    same_sums(sum, variant->decode(b, codes, c->classes, ref, scale, out, NULL), "decode without points: checksum");
    ca_same(c->out, out, n, 4, "decode without points: values");
    sum = scalar->reconstruct(b, points, c->out);
    same_sums(sum, variant->reconstruct(b, points, out), "reconstruct: checksum");
    ca_same(c->out, out, n, 4, "reconstruct: values");
    ca_expect(all_intact(), "decode: wrote outside");
}

/* Sums and squares are what decode, additions and dot products would give. */
static void check_sums(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant,
                       const cst_lattice_block *b, block_case *c)
{
    const uint32_t n = b->n;
    const uint8_t *codes = guarded_copy(&code_buffer, c->codes, cst_packed_bytes(c->classes, n / CST_UNIT), 1);
    const float *ref = guarded_copy(&ref_buffer, c->ref, n, 4);
    static float sum[CST_BLOCK], distance[CST_BLOCK];
    cst_checksum check = scalar->decode(b, codes, c->classes, ref, 0.9f, c->out, c->points);
    for (uint32_t i = 0; i < n; i++) {
        sum[i] = ref[i] + c->out[i];
        distance[i] = c->out[i] - ref[i] * 0.3f;
    }
    const double distance2 = cst_norm_scalar.dot(distance, distance, n), energy = cst_norm_scalar.dot(sum, sum, n);
    for (int with_value = 0; with_value < 2; with_value++) {
        float value[CST_BLOCK];
        int32_t *points = place_points(n);
        cst_summed to = {.value = with_value ? value : NULL, .sum = place_floats(&out_buffer, n), .share = 0.3f};
        same_sums(check, variant->decode_add(b, codes, c->classes, ref, 0.9f, &to, points), "decode_add: checksum");
        ca_same(c->points, points, n, 4, "decode_add: points");
        ca_same(sum, to.sum, n, 4, "decode_add: sum");
        ca_expect(distance2 == to.distance2 && energy == to.energy, "decode_add: squares");
        if (with_value)
            ca_same(c->out, value, n, 4, "decode_add: values");
        memset(to.sum, 0, 4 * n);
        to.distance2 = to.energy = 0;
        same_sums(check, variant->reconstruct_add(b, points, ref, &to), "reconstruct_add: checksum");
        ca_same(sum, to.sum, n, 4, "reconstruct_add: sum");
        ca_expect(distance2 == to.distance2 && energy == to.energy, "reconstruct_add: squares");
        if (with_value)
            ca_same(c->out, value, n, 4, "reconstruct_add: values");
        ca_expect(all_intact(), "decode_add: wrote outside");
    }
}

static void check_simple_digits(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant,
                                const cst_lattice_block *b, block_case *c)
{
    const uint32_t n = b->n, q = 2 + (uint32_t)ca_below(ca_below(2) ? 65535 : 30);
    for (uint32_t i = 0; i < n; i++)
        c->digits[i] = (uint16_t)ca_below(q);
    const uint16_t *digits = guarded_copy(&code_buffer, c->digits, n, 2);
    const float *ref = guarded_copy(&ref_buffer, c->ref, n, 4);
    float *out = place_floats(&out_buffer, n);
    int32_t *points = place_points(n);
    cst_checksum sum = scalar->decode_digits(b, digits, q, ref, 1.0f, c->out, c->points);
    same_sums(sum, variant->decode_digits(b, digits, q, ref, 1.0f, out, points), "simple digits: checksum");
    ca_same(c->out, out, n, 4, "simple digits: values");
    ca_same(c->points, points, n, 4, "simple digits: points");
    ca_expect(all_intact(), "simple digits: wrote outside");
}

static void check_need(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant,
                       const cst_lattice_block *b, const block_case *c)
{
    float expected[CST_BLOCK_UNITS], got[CST_BLOCK_UNITS];
    for (uint32_t u = 0; u < b->n / CST_UNIT; u++)
        expected[u] = got[u] = (float)(10 * uniform_open());
    scalar->need(c->x, c->ref, b->n, 0.95f, b->step, expected);
    variant->need(c->x, c->ref, b->n, 0.95f, b->step, got);
    ca_same(expected, got, b->n / CST_UNIT, 4, "need");
}

static void check_hostile(const cst_quantise_kernels *scalar, const cst_quantise_kernels *variant, cst_lattice_block b,
                          block_case *c)
{
    static const float extremes[] = {NAN,   INFINITY,      -INFINITY,      3e38f, -3e38f,
                                     1e30f, 2147483648.0f, -2147483648.0f, 0.0f,  1e-40f};
    for (uint32_t i = 0; i < b.n; i++)
        c->ref[i] = extremes[ca_below(10)];
    for (size_t i = 0; i < sizeof c->codes; i++)
        c->codes[i] = (uint8_t)ca_random();
    int32_t expected[CST_BLOCK];
    b.step = ca_below(2) ? 1e-30f : 1e30f;
    cst_checksum sum = scalar->decode(&b, c->codes, c->classes, c->ref, 1.0f, c->out, expected);
    same_sums(sum, variant->decode(&b, c->codes, c->classes, c->ref, 1.0f, c->out, c->points), "hostile: checksum");
    ca_same(expected, c->points, b.n, 4, "hostile: points");
}

static void check_lattice(cst_lattice_kind lattice)
{
    const cst_quantise_kernels *scalar = cst_quantise_kernels_for(lattice, CST_CPU_SCALAR);
    const cst_quantise_kernels *variant = cst_quantise_kernels_for(lattice, (int)ca.variant);
    static block_case c;
    const float step = (float)exp(6 * uniform_open() - 3);
    cst_lattice_block b = random_block(random_length(), step, keys);
    b.weight = ca_below(4) ? 1.0f : 0.0f;
    random_classes(c.classes, b.n);
    fill_vector(c.x, b.n, step * exp(4 * uniform_open()));
    check_encode(scalar, variant, &b, &c);
    fill_reference(lattice, c.x, c.classes, b.n, step, 1.2, c.ref);
    check_decode(scalar, variant, &b, &c);
    check_sums(scalar, variant, &b, &c);
    check_simple_digits(scalar, variant, &b, &c);
    check_need(scalar, variant, &b, &c);
    check_hostile(scalar, variant, b, &c);
}

static void check_pack(void)
{
    const cst_pack_kernels *variant = cst_pack_kernels_for((int)ca.variant);
    static int32_t points[CST_BLOCK];
    static uint8_t expected[CST_PACKED_MAX];
    uint8_t classes[CST_BLOCK_UNITS];
    const uint32_t n = random_length();
    random_classes(classes, n);
    const size_t packed = cst_packed_bytes(classes, n / CST_UNIT);
    for (uint32_t i = 0; i < n; i++)
        points[i] = (int32_t)ca_below(1 << 22) - (1 << 21);
    uint8_t *got = (uint8_t *)ca_place(&code_buffer, packed, random_margin(1));
    cst_pack_scalar.pack_z(points, n, classes, expected);
    variant->pack_z(points, n, classes, got);
    ca_same(expected, got, packed, 1, "pack_z");
    for (uint32_t i = 0; i < n; i++) /* some valid point: doubled coordinates all even or all odd, parity by the last */
        points[i] = 2 * ((int32_t)ca_below(1 << 20) - (1 << 19));
    cst_pack_scalar.pack_e8(points, n, classes, expected);
    variant->pack_e8(points, n, classes, got);
    ca_same(expected, got, packed, 1, "pack_e8");
    ca_expect(ca_intact(&code_buffer), "pack: wrote outside");
    cst_checksum sum = cst_checksum_scalar.points(points, n, keys);
    same_sums(sum, cst_checksum_kernels_for((int)ca.variant)->points(points, n, keys), "checksum");
}

static void check_sum(cst_lattice_kind lattice)
{
    const cst_sum_kernels *scalar = cst_sum_kernels_for(lattice, CST_CPU_SCALAR);
    const cst_sum_kernels *variant = cst_sum_kernels_for(lattice, (int)ca.variant);
    static block_case c;
    static uint8_t codes[CST_BLOCK];
    static int32_t points[CST_BLOCK];
    const float step = (float)exp(6 * uniform_open() - 3);
    const cst_lattice_block like = random_block(random_length(), step, keys);
    cst_sum_block b = {like.n, step, like.dither, like.dither, keys};
    b.slope.ctr[2] ^= CST_USE_DITHER ^ CST_USE_SLOPE;
    const uint32_t ranks = 1 + (uint32_t)ca_below(64), sender = (uint32_t)ca_below(ranks);
    fill_vector(c.x, b.n, step * 5);
    cst_checksum sum = scalar->encode(&b, c.x, sender, c.codes, c.points);
    same_sums(sum, variant->encode(&b, c.x, sender, codes, points), "sum encode: checksum");
    ca_same(c.codes, codes, b.n, 1, "sum encode: codes");
    ca_same(c.points, points, b.n, 4, "sum encode: points");
    sum = scalar->decode(&b, codes, ranks, c.x, 0.9f, c.out, c.points);
    float *mean = place_floats(&out_buffer, b.n);
    same_sums(sum, variant->decode(&b, guarded_copy(&code_buffer, codes, b.n, 1), ranks, c.x, 0.9f, mean, points),
              "sum decode: checksum");
    ca_same(c.out, mean, b.n, 4, "sum decode: mean");
    ca_same(c.points, points, b.n, 4, "sum decode: points");
    scalar->reconstruct(&b, points, ranks, c.out);
    variant->reconstruct(&b, points, ranks, mean);
    ca_same(c.out, mean, b.n, 4, "sum reconstruct");
    ca_expect(ca_intact(&code_buffer) && ca_intact(&out_buffer), "sum: wrote outside");
}

static void check_level(void)
{
    for (int i = 0; i < (ca_quick() ? 40 : 250); i++) {
        cst_flush_mode saved = cst_flush_enter();
        check_lattice(CST_LATTICE_Z);
        check_lattice(CST_LATTICE_E8);
        check_pack();
        check_sum(CST_LATTICE_Z);
        check_sum(CST_LATTICE_E8);
        cst_flush_leave(saved);
    }
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    cst_checksum_keys(ca_random(), keys);
    in_buffer = ca_open(4 * CST_BLOCK);
    ref_buffer = ca_open(4 * CST_BLOCK);
    code_buffer = ca_open(CST_PACKED_MAX);
    out_buffer = ca_open(4 * CST_BLOCK);
    point_buffer = ca_open(4 * CST_BLOCK);
    ca_buffer *all[] = {&in_buffer, &ref_buffer, &code_buffer, &out_buffer, &point_buffer};
    for (int i = 0; i < 5; i++)
        ca_place(all[i], 4, 0);
    for (cst_cpu level = CST_CPU_SCALAR; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            check_level();
    return ca_end();
}
