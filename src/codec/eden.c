/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EDEN: S. Vargaftik, R. Ben Basat, A. Portnoy, G. Mendelson, Y. Ben-Itzhak, M. Mitzenmacher, "EDEN: communication-efficient
 * and robust distributed mean estimation for federated learning" (ICML 2022).
 *
 * Each sender rotates with signs of its own, quantises y sqrt(n)/|x| with the Lloyd-Max quantiser of N(0,1), and sends the
 * scale S = |x|^2 / <y, q>, which makes the estimate S R^-1 q unbiased. Per block of 4096: S as f32, then `bits` per
 * coordinate: sign, and the place among the positive levels. Error of a vector: D/(1-D) |x|^2, D = 0.3634, 0.1175, 0.0345,
 * 0.0095, ... for 1, 2, 3, 4 bits.
 */
#include "codec/codec.h"

#include <math.h>

/* Positive levels for 1 .. 8 bits, one after another: 2^(b-1) for b bits, at index 2^(b-1) - 1. */
static const float levels[255] = {
    /* 1 */ 0.7978846f,
    /* 2 */ 0.4527800f, 1.5104176f,
    /* 3 */ 0.2450942f, 0.7560053f, 1.3439093f, 2.1519457f,
    /* 4 */ 0.1283950f, 0.3880483f, 0.6567591f, 0.9423405f, 1.2562312f, 1.6180464f, 2.0690173f, 2.7325896f,
    /* 5 */ 0.0658897f, 0.1980519f, 0.3313783f, 0.4666996f, 0.6049337f, 0.7471358f, 0.8945652f, 1.0487834f,
    1.2118045f,         1.3863404f, 1.5762282f, 1.7872333f, 2.0287285f, 2.3177395f, 2.6911197f, 3.2607326f,
    /* 6 */ 0.0334095f, 0.1002783f, 0.1672970f, 0.2345671f, 0.3021930f, 0.3702828f, 0.4389499f, 0.5083140f,
    0.5785033f,         0.6496558f, 0.7219222f, 0.7954680f, 0.8704769f, 0.9471553f, 1.0257367f, 1.1064886f,
    1.1897205f,         1.2757949f, 1.3651414f, 1.4582768f, 1.5558316f, 1.6585893f, 1.7675423f, 1.8839777f,
    2.0096115f,         2.1468106f, 2.2989816f, 2.4713052f, 2.6722742f, 2.9174072f, 3.2404374f, 3.7441016f,
    /* 7 */ 0.0168282f, 0.0504910f, 0.0841728f, 0.1178865f, 0.1516449f, 0.1854610f, 0.2193480f, 0.2533192f,
    0.2873881f,         0.3215685f, 0.3558746f, 0.3903210f, 0.4249224f, 0.4596942f, 0.4946523f, 0.5298131f,
    0.5651936f,         0.6008115f, 0.6366853f, 0.6728344f, 0.7092790f, 0.7460403f, 0.7831408f, 0.8206042f,
    0.8584555f,         0.8967213f, 0.9354298f, 0.9746114f, 1.0142981f, 1.0545246f, 1.0953282f, 1.1367489f,
    1.1788301f,         1.2216190f, 1.2651667f, 1.3095292f, 1.3547679f, 1.4009502f, 1.4481506f, 1.4964517f,
    1.5459454f,         1.5967348f, 1.6489356f, 1.7026787f, 1.7581131f, 1.8154094f, 1.8747642f, 1.9364062f,
    2.0006034f,         2.0676731f, 2.1379950f, 2.2120291f, 2.2903408f, 2.3736359f, 2.4628130f, 2.5590421f,
    2.6638880f,         2.7795157f, 2.9090485f, 3.0572475f, 3.2319345f, 3.4474316f, 3.7349378f, 4.1896953f,
    /* 8 */ 0.0084463f, 0.0253396f, 0.0422353f, 0.0591350f, 0.0760404f, 0.0929530f, 0.1098745f, 0.1268065f,
    0.1437506f,         0.1607084f, 0.1776817f, 0.1946721f, 0.2116812f, 0.2287108f, 0.2457625f, 0.2628380f,
    0.2799392f,         0.2970676f, 0.3142252f, 0.3314136f, 0.3486348f, 0.3658905f, 0.3831826f, 0.4005129f,
    0.4178834f,         0.4352961f, 0.4527529f, 0.4702558f, 0.4878068f, 0.5054081f, 0.5230617f, 0.5407698f,
    0.5585347f,         0.5763584f, 0.5942434f, 0.6121921f, 0.6302066f, 0.6482896f, 0.6664436f, 0.6846711f,
    0.7029747f,         0.7213571f, 0.7398211f, 0.7583697f, 0.7770055f, 0.7957318f, 0.8145516f, 0.8334680f,
    0.8524843f,         0.8716040f, 0.8908305f, 0.9101673f, 0.9296183f, 0.9491872f, 0.9688781f, 0.9886949f,
    1.0086421f,         1.0287239f, 1.0489449f, 1.0693100f, 1.0898239f, 1.1104919f, 1.1313192f, 1.1523114f,
    1.1734743f,         1.1948137f, 1.2163361f, 1.2380480f, 1.2599562f, 1.2820678f, 1.3043904f, 1.3269317f,
    1.3497001f,         1.3727041f, 1.3959528f, 1.4194558f, 1.4432231f, 1.4672653f, 1.4915936f, 1.5162197f,
    1.5411563f,         1.5664164f, 1.5920142f, 1.6179645f, 1.6442832f, 1.6709870f, 1.6980941f, 1.7256237f,
    1.7535961f,         1.7820336f, 1.8109598f, 1.8404000f, 1.8703818f, 1.9009347f, 1.9320909f, 1.9638850f,
    1.9963551f,         2.0295423f, 2.0634918f, 2.0982531f, 2.1338807f, 2.1704347f, 2.2079819f, 2.2465964f,
    2.2863608f,         2.3273683f, 2.3697234f, 2.4135450f, 2.4589684f, 2.5061487f, 2.5552655f, 2.6065275f,
    2.6601800f,         2.7165135f, 2.7758765f, 2.8386916f, 2.9054786f, 2.9768878f, 3.0537475f, 3.1371380f,
    3.2285055f,         3.3298537f, 3.4440768f, 3.5755929f, 3.7316711f, 3.9256424f, 4.1865998f, 4.6035397f,
};

static const float *levels_of(unsigned bits)
{
    return levels + (1u << (bits - 1)) - 1;
}

static bool eden_set(cst_codec *codec, const char *key, const char *value)
{
    (void)codec;
    (void)key;
    (void)value;
    return false;
}

static size_t block_bytes(const cst_codec *codec, uint32_t count)
{
    return 4 + cst_digits_bytes(cst_padded_length(count), 1u << codec->bits);
}

static size_t eden_bytes(const cst_codec *codec, size_t n)
{
    size_t bytes = 0;
    for (uint32_t take; n; n -= take) {
        take = cst_next_block(n);
        bytes += block_bytes(codec, take);
    }
    return bytes;
}

/* Place of |y| among the positive levels: borders are halfway between. */
static uint32_t place(const float *positive, uint32_t count, float y)
{
    uint32_t low = 0, high = count - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (y > 0.5f * (positive[middle] + positive[middle + 1]))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void encode_block(const cst_codec *codec, const cst_codec_key *key, uint32_t block, const float *x,
                         uint32_t count, uint8_t *out)
{
    float y[CST_BLOCK];
    uint16_t digits[CST_BLOCK];
    uint32_t n = cst_rotate_block(codec, key, false, block, x, count, y), half = 1u << (codec->bits - 1);
    const float *positive = levels_of(codec->bits);
    double energy = codec->tools->norm->dot(y, y, n), product = 0;
    float unit = energy > 0 ? (float)sqrt(n / energy) : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = place(positive, half, fabsf(y[i]) * unit);
        bool minus = y[i] < 0;
        digits[i] = (uint16_t)(2 * k + minus);
        product += (double)y[i] * (minus ? -positive[k] : positive[k]);
    }
    cst_put_float(out, product > 0 ? (float)(energy / product) : (float)(energy * 0)); /* NaN stays NaN */
    cst_digits_pack(digits, n, 1u << codec->bits, out + 4);
}

static void eden_encode(const cst_codec *codec, const cst_codec_key *key, const float *x, size_t n, uint8_t *out)
{
    uint32_t take, block = 0;
    for (size_t at = 0; at < n; at += take, block++) {
        take = cst_next_block(n - at);
        encode_block(codec, key, block, x + at, take, out);
        out += block_bytes(codec, take);
    }
}

static bool eden_decode(const cst_codec *codec, const cst_codec_key *key, const uint8_t *in, size_t n, float *out)
{
    const float *positive = levels_of(codec->bits);
    uint32_t take, block = 0;
    for (size_t at = 0; at < n; at += take, block++) {
        take = cst_next_block(n - at);
        uint32_t padded = cst_padded_length(take);
        uint16_t digits[CST_BLOCK];
        float y[CST_BLOCK], scale = cst_get_float(in);
        if (!cst_digits_unpack(in + 4, padded, 1u << codec->bits, digits))
            return false;
        for (uint32_t i = 0; i < padded; i++)
            y[i] = scale * (digits[i] & 1 ? -positive[digits[i] / 2] : positive[digits[i] / 2]);
        cst_unrotate_block(codec, key, false, block, y, take, out + at);
        in += block_bytes(codec, take);
    }
    return true;
}

const cst_codec_ops cst_codec_eden = {
    .name = "eden",
    .about = "eden has no parameters; 1 to 8 bits (Vargaftik et al. 2022)",
    .unbiased = true,
    .takes_bits = true,
    .set = eden_set,
    .bytes = eden_bytes,
    .encode = eden_encode,
    .decode = eden_decode,
};
