/* SPDX-License-Identifier: Apache-2.0 */
/* Classes and packing: the table derived again, colours at every boundary, the layout, simple packing. */
#include "cases.h"

#include "lattice/lattice.h"

static void check_class(uint32_t k, int32_t *last_q)
{
    typedef unsigned __int128 wide;
    const cst_class_info *c = &cst_classes[k];
    const wide q = (wide)c->q, power = (wide)1 << k;
    ca_expect(q * q * q * q <= power && (q + 1) * (q + 1) * (q + 1) * (q + 1) > power, "q is not floor(2^(k/4))");
    ca_expect(c->q > *last_q, "a class without a modulus of its own");
    *last_q = c->q;
    ca_expect(c->digits == (k <= CST_CLASS_QUADS ? 4 : 2) && c->bits == (c->digits == 4 ? k : k / 2),
              "digits and bits");
    ca_expect(c->inverse == 1.0f / (float)c->q, "1/q");
    const uint64_t divisor = c->digits == 4 ? (uint64_t)(q * q) : (uint64_t)q, last = UINT64_MAX >> (64 - c->bits);
    bool exact = true;
    for (uint64_t v = 0; v <= last; v += divisor)
        for (uint64_t w = v ? v - 1 : v; w <= v + 1 && w <= last; w++)
            exact &= w * c->reciprocal >> (32 + c->shift) == w / divisor;
    ca_expect(exact, "the reciprocal divides wrongly");
}

static void check_classes(void)
{
    int32_t last_q = 1;
    for (uint32_t k = 0; k < 256; k++)
        if (cst_class_valid(k))
            check_class(k, &last_q);
    ca_expect(last_q == 65536, "the largest modulus");
    for (uint32_t k = CST_CLASS_MIN; k <= CST_CLASS_MAX; k++)
        if (cst_class_valid(k)) {
            const float q = (float)cst_classes[k].q;
            ca_expect(cst_class_for(q) == k && cst_class_for(q - 0.5f) == k, "the cheapest class");
        }
    ca_expect(cst_class_for(65537) == 0 && cst_class_for(INFINITY) == 0 && cst_class_for(NAN) == 0,
              "no class is enough");
    ca_expect(cst_class_for(0) == CST_CLASS_MIN && cst_class_for(-1) == CST_CLASS_MIN, "any class is enough");
}

/* Every bit of the packed bytes against the words of pack.h. */
static void check_layout(void)
{
    static int32_t points[CST_BLOCK];
    static uint8_t packed[CST_PACKED_MAX], expected[CST_PACKED_MAX];
    uint8_t classes[CST_BLOCK_UNITS];
    const uint32_t n = random_length(), units = n / CST_UNIT;
    uint32_t lane_bits = 0, at = 0;
    random_classes(classes, n);
    for (uint32_t u = 0; u < units; u++)
        lane_bits += 2 * classes[u];
    for (uint32_t i = 0; i < n; i++)
        points[i] = (int32_t)ca_below(1 << 20) - (1 << 19);
    cst_pack_scalar.pack_z(points, n, classes, packed);
    memset(expected, 0, sizeof expected);
    for (uint32_t u = 0; u < units; u++) {
        const cst_class_info *c = &cst_classes[classes[u]];
        for (uint32_t t = 0; t < 8; t += c->digits, at += c->bits)
            for (uint32_t lane = 0; lane < CST_LANES; lane++) {
                uint64_t v = 0, place = 1;
                for (uint32_t d = 0; d < c->digits; d++, place *= (uint64_t)c->q) {
                    int64_t rest = points[CST_UNIT * u + CST_LANES * (t + d) + lane] % c->q;
                    v += place * (uint64_t)(rest < 0 ? rest + c->q : rest);
                }
                for (uint32_t bit = 0; bit < c->bits; bit++) {
                    uint32_t b = at + bit, row = b / 32, byte = b % 32 / 8;
                    size_t where =
                        row < lane_bits / 32 ? 64 * row + 4 * lane + byte : 64 * row + CST_LANES * byte + lane;
                    expected[where] |= (uint8_t)((v >> bit & 1) << b % 8);
                }
            }
    }
    ca_same(expected, packed, cst_packed_bytes(classes, units), 1, "layout");
}

/* Colours beside every kind of multiple of q, up to what the kernels allow. */
static void check_boundaries(void)
{
    static int32_t points[CST_BLOCK];
    static uint8_t expected[CST_PACKED_MAX], got[CST_PACKED_MAX];
    uint8_t classes[CST_BLOCK_UNITS];
    for (uint32_t k = CST_CLASS_MIN; k <= CST_CLASS_MAX; k++) {
        if (!cst_class_valid(k))
            continue;
        const int32_t q = cst_classes[k].q, most = (1 << 22) / q - 2;
        memset(classes, (int)k, sizeof classes);
        for (int trial = 0; trial < (ca_quick() ? 2 : 12); trial++) {
            for (int i = 0; i < CST_BLOCK; i++) {
                int32_t multiple = trial & 1 ? (int32_t)ca_below(2 * (size_t)most + 1) - most
                                             : (i & 1 ? most : -most) + (int32_t)ca_below(3) - 1;
                points[i] = multiple * q + (int32_t)ca_below(3) - 1;
            }
            cst_pack_scalar.pack_z(points, CST_BLOCK, classes, expected);
            cst_pack_kernels_for((int)ca.variant)->pack_z(points, CST_BLOCK, classes, got);
            ca_same(expected, got, cst_packed_bytes(classes, CST_BLOCK_UNITS), 1, "colours at multiples of q");
        }
    }
}

static void check_simple(void)
{
    static uint16_t digits[CST_BLOCK], back[CST_BLOCK];
    static uint8_t bytes[2 * CST_BLOCK + 1];
    const uint32_t q = 2 + (uint32_t)ca_below(ca_below(2) ? 65535 : 40);
    const size_t n = 1 + ca_below(CST_BLOCK), length = cst_digits_bytes(n, q);
    for (size_t i = 0; i < n; i++)
        digits[i] = (uint16_t)ca_below(q);
    bytes[length] = CA_CANARY;
    cst_digits_pack(digits, n, q, bytes);
    ca_expect(bytes[length] == CA_CANARY && length == (n * cst_digit_bits(q) + 7) / 8, "simple packing: length");
    ca_expect(cst_digits_unpack(bytes, n, q, back), "simple packing is not understood");
    ca_same(digits, back, n, 2, "simple packing");
    if (n * cst_digit_bits(q) % 8) {
        bytes[length - 1] |= 0x80;
        ca_expect(!cst_digits_unpack(bytes, n, q, back), "padding that is not zero passes");
    }
    if (q & (q - 1)) {
        digits[ca_below(n)] = (uint16_t)q;
        cst_digits_pack(digits, n, q, bytes);
        ca_expect(!cst_digits_unpack(bytes, n, q, back), "a digit that is none passes");
    }
}

/* Colours of whole blocks are those of the lattices. */
static void check_colours(void)
{
    static int32_t points[CST_BLOCK];
    static uint16_t z[CST_BLOCK], e8[CST_BLOCK];
    const cst_lattice *l = cst_lattice_of(CST_LATTICE_E8);
    const uint32_t q = 2 + (uint32_t)ca_below(65535);
    int64_t coefficient[8], point[8];
    uint32_t colour[8];
    for (uint32_t cell = 0; cell < CST_BLOCK / 8; cell++) {
        for (int t = 0; t < 8; t++)
            coefficient[t] = (int64_t)ca_below(200001) - 100000;
        l->from_basis(coefficient, point);
        for (uint32_t t = 0; t < 8; t++)
            points[cell / CST_LANES * CST_UNIT + cell % CST_LANES + CST_LANES * t] = (int32_t)point[t];
    }
    cst_colour_z(points, CST_BLOCK, q, z);
    cst_colour_e8(points, CST_BLOCK, q, e8);
    for (uint32_t cell = 0; cell < CST_BLOCK / 8; cell++) {
        const uint32_t at = cell / CST_LANES * CST_UNIT + cell % CST_LANES;
        for (uint32_t t = 0; t < 8; t++)
            point[t] = points[at + CST_LANES * t];
        cst_lattice_colour(l, point, q, colour);
        for (uint32_t t = 0; t < 8; t++) {
            ca_expect(e8[at + CST_LANES * t] == colour[t], "colour_e8");
            int64_t rest = point[t] % (int64_t)q;
            ca_expect(z[at + CST_LANES * t] == (rest < 0 ? rest + (int64_t)q : rest), "colour_z");
        }
    }
}

int main(int argc, char **argv)
{
    ca_begin(argc, argv);
    check_classes();
    for (int i = 0; i < (ca_quick() ? 20 : 100); i++) {
        check_layout();
        check_simple();
    }
    for (int i = 0; i < 5; i++)
        check_colours();
    for (cst_cpu level = CST_CPU_SCALAR; level < CST_CPU_COUNT; level++)
        if (ca_level(level))
            check_boundaries();
    return ca_end();
}
