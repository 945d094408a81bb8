/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/whole.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/portable.h"
#include "mean/flat.h"

#include <math.h>
#include <stdlib.h>

uint32_t cst_piece_length(const cst_whole *w, uint32_t piece)
{
    size_t rest = w->n - (size_t)CST_BLOCK * piece;
    return rest < CST_BLOCK ? (uint32_t)rest : CST_BLOCK;
}

uint32_t cst_piece_count(const cst_whole *w, uint32_t piece)
{
    return w->rotated ? cst_piece_length(w, piece) : (uint32_t)w->d;
}

/* ---- rotation of the whole ---- */

static void flip_signs(const cst_whole *w, float *x)
{
    const cst_tools *tools = w->round->mean->tools;
    for (uint32_t p = 0; p < w->pieces; p++) {
        uint32_t signs[CST_SIGN_WORDS], n = cst_piece_length(w, p);
        cst_stream stream = cst_stream_of(w->round->roots[0], CST_USE_SIGNS, 1, CST_EVERY_SENDER, p);
        tools->random->words(&stream, 0, CST_SIGN_WORDS, signs);
        for (uint32_t i = 0; i < n; i++)
            if (signs[i / 32] >> (i % 32) & 1)
                x[(size_t)CST_BLOCK * p + i] = -x[(size_t)CST_BLOCK * p + i];
    }
}

static void hadamard(float *x, size_t n)
{
    for (size_t half = 1; half < n; half *= 2)
        for (size_t begin = 0; begin < n; begin += 2 * half)
            for (size_t i = begin; i < begin + half; i++) {
                float a = x[i], b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
    float scale = (float)(1 / sqrt((double)n));
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}

static coset_status check_finite(const cst_whole *w, const float *x, size_t n, const char *what)
{
    const coset_mean *mean = w->round->mean;
    if (mean->tools->norm->stats(x, n).nonfinite == 0)
        return COSET_OK;
    return cst_fail(&w->round->mean->error, COSET_ERR_ARGUMENT, -1, "%s: protocol %s takes finite vectors", what,
                    mean->protocol->name);
}

coset_status cst_whole_make(cst_whole *w, coset_round *round)
{
    *w = (cst_whole){.round = round, .d = round->layout.coords, .n = CST_UNIT};
    w->rotated = w->d >= CST_UNIT;
    while (w->n < w->d)
        w->n *= 2;
    w->pieces = (uint32_t)((w->n + CST_BLOCK - 1) / CST_BLOCK);
    float *x = cst_flat_read(round);
    w->own = aligned_alloc(64, w->n * sizeof *w->own);
    if (!x || !w->own) {
        free(x);
        return COSET_ERR_MEMORY;
    }
    memset(w->own, 0, w->n * sizeof *w->own);
    memcpy(w->own, x, w->d * sizeof *w->own);
    free(x);
    coset_status status = check_finite(w, w->own, w->d, "NaN or Inf in the input");
    if (status || !w->rotated)
        return status;
    flip_signs(w, w->own);
    hadamard(w->own, w->n);
    return check_finite(w, w->own, w->n, "an input is too large for f32 to be rotated");
}

void cst_whole_free(cst_whole *w)
{
    free(w->own);
    *w = (cst_whole){0};
}

coset_status cst_whole_store(const cst_whole *w, float *x)
{
    if (w->rotated) {
        hadamard(x, w->n);
        flip_signs(w, x);
    }
    coset_status status = check_finite(w, x, w->d, "the mean is too large for f32");
    if (!status)
        cst_flat_write(w->round, x);
    return status;
}

/* ---- distances ---- */

double cst_whole_infinity(const cst_whole *w, double y)
{
    const double failure = 1e-6;
    double ranks = w->round->mean->size;
    if (!w->rotated)
        return y;
    /* each rotated coordinate of a difference is sub-Gaussian with proxy y^2 / n; a union over coordinates and pairs */
    const double ln2 = 0.69314718055994531;
    double bound = sqrt(2 * ln2 * cst_log2(2 * (double)w->n * ranks * ranks / failure) / (double)w->n);
    return y * (bound < 1 ? bound : 1);
}

double cst_known_distance(const coset_mean_options *o, int ranks)
{
    const double alpha = 10;
    return o->y > 0 ? o->y : 2 * o->sigma * sqrt(alpha * ranks);
}

/* ---- points ---- */

static cst_lattice_block geometry(const cst_whole *w, uint32_t piece, uint32_t sender, uint32_t phase, float step)
{
    const coset_round *round = w->round;
    return (cst_lattice_block){
        .n = cst_piece_length(w, piece),
        .step = step,
        .weight = 1,
        .dither = cst_stream_of(round->roots[0], CST_USE_DITHER, phase, sender, piece),
        .keys = round->mean->tools->keys,
    };
}

bool cst_whole_quantise(const cst_whole *w, const float *x, uint32_t sender, uint32_t phase, float step,
                        int32_t *points, cst_checksum *checks)
{
    const cst_tools *tools = w->round->mean->tools;
    for (uint32_t p = 0; p < w->pieces; p++) {
        const float *from = x + (size_t)CST_BLOCK * p;
        cst_lattice_block g = geometry(w, p, sender, phase, step);
        if (!(tools->norm->stats(from, g.n).max < 0.99f * CST_Z_LIMIT * step))
            return false;
        checks[p] = tools->z->quantise(&g, from, points + (size_t)CST_BLOCK * p);
    }
    return true;
}

void cst_whole_reconstruct(const cst_whole *w, const int32_t *points, uint32_t sender, uint32_t phase, float step,
                           float *x)
{
    for (uint32_t p = 0; p < w->pieces; p++) {
        cst_lattice_block g = geometry(w, p, sender, phase, step);
        w->round->mean->tools->z->reconstruct(&g, points + (size_t)CST_BLOCK * p, x + (size_t)CST_BLOCK * p);
    }
}

/* ---- colours ---- */

size_t cst_colours_bytes(const cst_whole *w, uint32_t q)
{
    size_t bytes = (size_t)CST_CHECK_BYTES * w->pieces;
    for (uint32_t p = 0; p < w->pieces; p++)
        bytes += cst_digits_bytes(cst_piece_count(w, p), q);
    return bytes;
}

void cst_colours_write(const cst_whole *w, const int32_t *points, const cst_checksum *checks, uint32_t q, uint8_t *out)
{
    uint8_t *to = out + (size_t)CST_CHECK_BYTES * w->pieces;
    for (uint32_t p = 0; p < w->pieces; p++) {
        uint16_t digits[CST_BLOCK];
        uint32_t count = cst_piece_count(w, p);
        cst_check_write(out + (size_t)CST_CHECK_BYTES * p, checks[p]);
        cst_colour_z(points + (size_t)CST_BLOCK * p, count, q, digits);
        cst_digits_pack(digits, count, q, to);
        to += cst_digits_bytes(count, q);
    }
}

/* Coordinates of a short vector that do not travel are zero with everybody, and so are their points known. */
static void fill_padding(const cst_whole *w, const cst_lattice_block *g, uint32_t q, uint16_t *digits)
{
    if (w->rotated)
        return;
    float zero[CST_UNIT] = {0};
    int32_t points[CST_UNIT];
    uint16_t colours[CST_UNIT];
    w->round->mean->tools->z->quantise(g, zero, points);
    cst_colour_z(points, CST_UNIT, q, colours);
    for (size_t i = w->d; i < CST_UNIT; i++)
        digits[i] = colours[i];
}

/* ... and their values are zero again after decoding, so that averages of them are. */
static void clear_padding(const cst_whole *w, float *x)
{
    for (size_t i = w->d; !w->rotated && i < w->n; i++)
        x[i] = 0;
}

bool cst_piece_decode(const cst_whole *w, uint32_t piece, const uint16_t *digits, uint32_t q, cst_checksum check,
                      uint32_t sender, uint32_t phase, float step, const float *ref, float *x)
{
    uint16_t all[CST_BLOCK];
    cst_lattice_block g = geometry(w, piece, sender, phase, step);
    memcpy(all, digits, cst_piece_count(w, piece) * sizeof *all);
    fill_padding(w, &g, q, all);
    size_t at = (size_t)CST_BLOCK * piece;
    cst_checksum got = w->round->mean->tools->z->decode_digits(&g, all, q, ref + at, 1, x + at, NULL);
    clear_padding(w, x);
    return cst_checksum_equal(got, check);
}

uint32_t cst_colours_decode(const cst_whole *w, const uint8_t *in, uint32_t q, uint32_t sender, uint32_t phase,
                            float step, const float *ref, float *x)
{
    const uint8_t *from = in + (size_t)CST_CHECK_BYTES * w->pieces;
    uint32_t wrong = 0;
    for (uint32_t p = 0; p < w->pieces; p++) {
        uint16_t digits[CST_BLOCK];
        uint32_t count = cst_piece_count(w, p);
        cst_checksum check = cst_check_read(in + (size_t)CST_CHECK_BYTES * p);
        bool good = cst_digits_unpack(from, count, q, digits);
        wrong += !good || !cst_piece_decode(w, p, digits, q, check, sender, phase, step, ref, x);
        from += cst_digits_bytes(count, q);
    }
    return wrong;
}

bool cst_piece_whole(const cst_whole *w, uint32_t piece, const int32_t *points, cst_checksum check, uint32_t sender,
                     uint32_t phase, float step, float *x)
{
    const cst_quantise_kernels *z = w->round->mean->tools->z;
    int32_t all[CST_BLOCK];
    cst_lattice_block g = geometry(w, piece, sender, phase, step);
    if (!w->rotated) {
        float zero[CST_UNIT] = {0};
        z->quantise(&g, zero, all);
    }
    memcpy(all, points, cst_piece_count(w, piece) * sizeof *all);
    cst_checksum got = z->reconstruct(&g, all, x + (size_t)CST_BLOCK * piece);
    clear_padding(w, x);
    return cst_checksum_equal(got, check);
}

/* ---- frames and routes ---- */

coset_status cst_colours_open(const coset_round *round, int pass, int sender, int receiver, const uint8_t *frame,
                              size_t bytes, cst_reader *body)
{
    coset_error *why = &round->mean->error;
    cst_frame_header h, want = cst_header_of(round, CST_FRAME_COLOURS, pass, sender, receiver);
    coset_status status = cst_frame_open(frame, bytes, &h, why);
    if (!status)
        status = cst_frame_expect(&h, &want, why);
    if (!status && !cst_body_open(frame, &h, body))
        status = cst_fail(why, COSET_ERR_CORRUPT, sender, "a message of rank %d is damaged", sender);
    return status;
}

coset_status cst_hand_out_routes(coset_round *round, coset_xfer *xfer, const coset_route *routes, size_t n)
{
    xfer->kind = COSET_XFER_ROUTE;
    xfer->routes = routes;
    xfer->nroutes = n;
    round->report.transfers++;
    for (size_t i = 0; i < n; i++)
        *(routes[i].recv ? &round->report.bits_received : &round->report.bits_sent) += 8 * (uint64_t)routes[i].bytes;
    return COSET_OK;
}

/* A random permutation's beginning, by the shared stream of choices. */
coset_status cst_draw_ranks(const coset_round *round, int n, int count, int *ranks)
{
    cst_stream stream = cst_stream_of(round->roots[0], CST_USE_LEADER, 0, CST_EVERY_SENDER, 0);
    int *all = malloc((size_t)n * sizeof *all);
    if (!all)
        return COSET_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        all[i] = i;
    uint32_t words[32];
    for (int i = 0; i < count; i++) {
        if (i % 32 == 0)
            round->mean->tools->random->words(&stream, (uint32_t)i, 32, words);
        int j = i + (int)((uint64_t)words[i % 32] * (uint64_t)(n - i) >> 32), picked = all[j];
        all[j] = all[i];
        all[i] = picked;
        ranks[i] = picked;
    }
    free(all);
    return COSET_OK;
}
