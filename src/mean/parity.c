/* SPDX-License-Identifier: Apache-2.0 */
#include "mean/parity.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { WORDS = CST_PARITY_BLOCK / 64 };

/* Six deviations of the number of ambiguous coordinates, and 24 rows for a unique solution. */
static double rows_needed(double share)
{
    double n = CST_PARITY_BLOCK;
    return n * share + 6 * sqrt(n * share * (1 - share)) + 24;
}

double cst_parity_share(uint32_t rows)
{
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (rows_needed(middle) <= rows)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint32_t blocks_of(const cst_whole *w)
{
    return (uint32_t)((w->n + CST_PARITY_BLOCK - 1) / CST_PARITY_BLOCK);
}

uint32_t cst_parity_rows(const cst_whole *w, double bits)
{
    double all = bits * (double)w->d - 8.0 * CST_CHECK_BYTES * w->pieces;
    double rows = floor(all / blocks_of(w) / 8) * 8;
    return rows < 40 ? 0 : rows > CST_PARITY_BLOCK ? CST_PARITY_BLOCK : (uint32_t)rows;
}

size_t cst_parity_bytes(const cst_whole *w, uint32_t rows)
{
    return (size_t)CST_CHECK_BYTES * w->pieces + (size_t)blocks_of(w) * (rows / 8);
}

/* Random linear forms of a block: rows of 512 bits. Shared by all, so keyed without the sender. */
typedef struct {
    uint64_t row[CST_PARITY_BLOCK][WORDS];
} forms;

static void draw_forms(const cst_whole *w, uint32_t block, uint32_t phase, uint32_t rows, forms *f)
{
    cst_stream stream = cst_stream_of(w->round->roots[0], CST_USE_BASELINE, phase, CST_EVERY_SENDER, block);
    uint32_t words[2 * WORDS * 2];
    for (uint32_t r = 0; r < rows; r++) {
        if (r % 2 == 0)
            w->round->mean->tools->random->words(&stream, r * 2 * WORDS, 4 * WORDS, words);
        for (uint32_t i = 0; i < WORDS; i++) {
            const uint32_t *from = words + (r % 2) * 2 * WORDS + 2 * i;
            f->row[r][i] = from[0] | (uint64_t)from[1] << 32;
        }
    }
}

static unsigned parity_of(const uint64_t *row, const uint64_t *bits)
{
    uint64_t x = 0;
    for (int i = 0; i < WORDS; i++)
        x ^= row[i] & bits[i];
    return (unsigned)__builtin_parityll(x);
}

static void lowest_bits(const int32_t *points, uint32_t count, uint64_t bits[WORDS])
{
    memset(bits, 0, WORDS * sizeof *bits);
    for (uint32_t i = 0; i < count; i++)
        bits[i / 64] |= (uint64_t)(points[i] & 1) << (i % 64);
}

static uint32_t block_length(const cst_whole *w, uint32_t block)
{
    size_t rest = w->n - (size_t)CST_PARITY_BLOCK * block;
    return rest < CST_PARITY_BLOCK ? (uint32_t)rest : CST_PARITY_BLOCK;
}

void cst_parity_write(const cst_whole *w, const int32_t *points, const cst_checksum *checks, uint32_t rows,
                      uint32_t phase, uint8_t *out)
{
    forms *f = malloc(sizeof *f);
    for (uint32_t p = 0; p < w->pieces; p++)
        cst_check_write(out + (size_t)CST_CHECK_BYTES * p, checks[p]);
    out += (size_t)CST_CHECK_BYTES * w->pieces;
    memset(out, 0, (size_t)blocks_of(w) * (rows / 8));
    for (uint32_t b = 0; f && b < blocks_of(w); b++, out += rows / 8) {
        uint64_t bits[WORDS];
        lowest_bits(points + (size_t)CST_PARITY_BLOCK * b, block_length(w, b), bits);
        draw_forms(w, b, phase, rows, f);
        for (uint32_t r = 0; r < rows; r++)
            out[r / 8] |= (uint8_t)(parity_of(f->row[r], bits) << (r % 8));
    }
    free(f); /* without memory the parities are zero, and the receiver's checksum says that they are wrong */
}

/* A system over GF(2): rows of up to 512 coefficients, and their right sides. Solves for all unknowns by elimination with
 * reduced rows; false if they are not determined. */
typedef struct {
    uint64_t row[CST_PARITY_BLOCK][WORDS];
    uint8_t right[CST_PARITY_BLOCK];
} linear_system;

static void swap_rows(linear_system *s, uint32_t a, uint32_t b)
{
    for (int i = 0; i < WORDS; i++) {
        uint64_t t = s->row[a][i];
        s->row[a][i] = s->row[b][i];
        s->row[b][i] = t;
    }
    uint8_t t = s->right[a];
    s->right[a] = s->right[b];
    s->right[b] = t;
}

static bool solve(linear_system *s, uint32_t rows, uint32_t unknowns)
{
    for (uint32_t u = 0; u < unknowns; u++) {
        uint32_t pivot = u;
        while (pivot < rows && !(s->row[pivot][u / 64] >> (u % 64) & 1))
            pivot++;
        if (pivot >= rows)
            return false;
        swap_rows(s, u, pivot);
        for (uint32_t r = 0; r < rows; r++) {
            if (r == u || !(s->row[r][u / 64] >> (u % 64) & 1))
                continue;
            for (int i = 0; i < WORDS; i++)
                s->row[r][i] ^= s->row[u][i];
            s->right[r] ^= s->right[u];
        }
    }
    return true;
}

/* Points of one block: the receiver's own, but where it lies near a border. False: not determined. */
static bool decode_block(const cst_whole *w, uint32_t block, const uint8_t *parities, uint32_t rows, uint32_t phase,
                         const float *at, double margin, int32_t *points, forms *f, linear_system *s)
{
    uint32_t n = block_length(w, block), unknown[CST_PARITY_BLOCK], unknowns = 0;
    int32_t other[CST_PARITY_BLOCK];
    for (uint32_t i = 0; i < n; i++) {
        double k = rint(at[i]), off = at[i] - k;
        points[i] = (int32_t)k;
        if (0.5 - fabs(off) < margin) {
            other[unknowns] = (int32_t)k + (off > 0 ? 1 : -1);
            unknown[unknowns++] = i;
        }
    }
    if (unknowns > rows)
        return false;
    uint64_t bits[WORDS];
    lowest_bits(points, n, bits);
    draw_forms(w, block, phase, rows, f);
    for (uint32_t r = 0; r < rows; r++) {
        s->right[r] = (uint8_t)((parities[r / 8] >> (r % 8) & 1) ^ parity_of(f->row[r], bits));
        memset(s->row[r], 0, sizeof s->row[r]);
        for (uint32_t u = 0; u < unknowns; u++)
            s->row[r][u / 64] |= (f->row[r][unknown[u] / 64] >> (unknown[u] % 64) & 1) << (u % 64);
    }
    if (!solve(s, rows, unknowns))
        return false;
    for (uint32_t u = 0; u < unknowns; u++)
        if (s->right[u])
            points[unknown[u]] = other[u];
    return true;
}

uint32_t cst_parity_decode(const cst_whole *w, const uint8_t *in, uint32_t rows, double distance, uint32_t sender,
                           uint32_t phase, float step, const float *ref, float *x)
{
    const cst_tools *tools = w->round->mean->tools;
    const uint8_t *from = in + (size_t)CST_CHECK_BYTES * w->pieces;
    forms *f = malloc(sizeof *f);
    linear_system *s = malloc(sizeof *s);
    uint32_t wrong = 0;
    for (uint32_t p = 0; p < w->pieces; p++) {
        uint32_t n = cst_piece_length(w, p);
        float at[CST_BLOCK], inverse = 1 / step;
        int32_t points[CST_BLOCK];
        cst_stream dither = cst_stream_of(w->round->roots[0], CST_USE_DITHER, phase, sender, p);
        tools->random->dither(&dither, n, at);
        for (uint32_t i = 0; i < n; i++)
            at[i] += ref[(size_t)CST_BLOCK * p + i] * inverse;
        bool good = f && s;
        for (uint32_t i = 0; good && i < n; i += CST_PARITY_BLOCK, from += rows / 8)
            good = decode_block(w, p * (CST_BLOCK / CST_PARITY_BLOCK) + i / CST_PARITY_BLOCK, from, rows, phase, at + i,
                                distance / (double)step, points + i, f, s);
        wrong += !good || !cst_piece_whole(w, p, points, cst_check_read(in + (size_t)CST_CHECK_BYTES * p), sender,
                                           phase, step, x);
        if (!good)
            break;
    }
    free(f);
    free(s);
    return wrong;
}
