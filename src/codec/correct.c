/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/correct.h"

#include <math.h>
#include <stdlib.h>

/* A correction is likely if the residual's inner product with the minimal vector is at least this share of q; one that is
 * needed has 2 less the true residual's share. Up to three of the likely ones are tried, then up to two of more. */
static const float likely_share = 0.75f, possible_share = 0.6f;
enum { MAX_LIKELY = 192, MAX_CANDIDATES = 1024 };

typedef struct {
    cst_checksum sum; /* what applying it adds */
    uint32_t first;   /* coordinate of the cell's first member; the cell is first + 16 t (E8), or the coordinate (Z) */
    int8_t change[8]; /* in q, to the points */
} candidate;

typedef struct {
    candidate *list;
    uint32_t n, most;
    const int32_t *keys;
    int32_t q;
    float least; /* share of q */
} candidates;

static void add_candidate(candidates *c, uint32_t first, const int8_t change[8], int members)
{
    if (c->n == c->most)
        return;
    candidate *k = &c->list[c->n++];
    *k = (candidate){.first = first};
    for (int t = 0; t < members; t++) {
        k->change[t] = change[t];
        if (change[t])
            k->sum = cst_checksum_add(k->sum,
                                      cst_checksum_of_one(c->keys, first + CST_LANES * (uint32_t)t, c->q * change[t]));
    }
}

/* Minimal vectors +-e_i +-e_j, in doubled coordinates. */
static void integer_vectors(candidates *c, uint32_t first, const float r[8], float least)
{
    for (int i = 0; i < 8; i++)
        for (int j = i + 1; j < 8; j++)
            if (fabsf(r[i]) + fabsf(r[j]) > least) {
                int8_t change[8] = {0};
                change[i] = r[i] > 0 ? -2 : 2;
                change[j] = r[j] > 0 ? -2 : 2;
                add_candidate(c, first, change, 8);
            }
}

/* Minimal vectors (+-1/2)^8 with an even number of minus signs. */
static void half_vectors(candidates *c, uint32_t first, const float r[8], float least)
{
    float all = 0, smallest = fabsf(r[0]);
    int negative = 0;
    for (int t = 0; t < 8; t++) {
        all += fabsf(r[t]);
        smallest = fminf(smallest, fabsf(r[t]));
        negative += r[t] < 0;
    }
    /* the largest inner product there is, but for rounding */
    if (all * 0.5f - (negative % 2 ? smallest : 0) <= 0.999f * least)
        return;
    for (unsigned signs = 0; signs < 256; signs++) {
        if (__builtin_popcount(signs) % 2)
            continue;
        float inner = 0;
        int8_t change[8];
        for (int t = 0; t < 8; t++) {
            bool minus = signs >> t & 1;
            inner += minus ? -r[t] : r[t];
            change[t] = minus ? 1 : -1;
        }
        if (inner * 0.5f > least)
            add_candidate(c, first, change, 8);
    }
}

static void inspect_unit(candidates *c, uint8_t code, const cst_lattice_block *block, const float *ref, float scale,
                         const float *value, uint32_t unit)
{
    float inverse = 1 / block->step, least = c->least * (float)c->q;
    for (uint32_t l = 0; l < CST_LANES; l++) {
        float r[8];
        uint32_t first = unit * CST_UNIT + l;
        for (uint32_t t = 0; t < 8; t++)
            r[t] = (value[first + CST_LANES * t] - scale * ref[first + CST_LANES * t]) * inverse;
        if (code == CST_CODE_E8) {
            integer_vectors(c, first, r, least);
            half_vectors(c, first, r, least);
            continue;
        }
        for (uint32_t t = 0; t < 8; t++)
            if (2 * fabsf(r[t]) > least)
                add_candidate(c, first + CST_LANES * t, (const int8_t[8]){r[t] > 0 ? -1 : 1}, 1);
    }
}

static int by_sum(const void *a, const void *b)
{
    uint64_t x = ((const candidate *)a)->sum.sum[0], y = ((const candidate *)b)->sum.sum[0];
    return x < y ? -1 : x > y;
}

static const candidate *find(const candidates *c, cst_checksum want)
{
    uint32_t low = 0, high = c->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (c->list[middle].sum.sum[0] < want.sum[0])
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->n && cst_checksum_equal(c->list[low].sum, want) ? &c->list[low] : NULL;
}

static cst_checksum less(cst_checksum a, cst_checksum b)
{
    return (cst_checksum){{a.sum[0] - b.sum[0], a.sum[1] - b.sum[1]}};
}

/* Up to `most` (2 or 3) candidates whose sums make up `missing`; how many, 0 if none do. */
static int search(const candidates *c, cst_checksum missing, int most, const candidate *found[3])
{
    found[0] = find(c, missing);
    if (found[0])
        return 1;
    for (uint32_t i = 0; i < c->n; i++) {
        found[0] = &c->list[i];
        found[1] = find(c, less(missing, c->list[i].sum));
        if (found[1] && found[1] != found[0])
            return 2;
    }
    for (uint32_t i = 0; most > 2 && i < c->n; i++)
        for (uint32_t j = i + 1; j < c->n; j++) {
            found[0] = &c->list[i];
            found[1] = &c->list[j];
            found[2] = find(c, less(less(missing, c->list[i].sum), c->list[j].sum));
            if (found[2] && found[2] != found[0] && found[2] != found[1])
                return 3;
        }
    return 0;
}

typedef struct {
    const cst_lattice_block *block;
    uint8_t code;
    const float *ref, *value, *need;
    float scale;
    cst_checksum missing;
    int32_t *points;
} correction;

static bool attempt(const correction *t, candidates *c, int most)
{
    c->n = 0;
    for (uint32_t u = 0; u < t->block->n / CST_UNIT; u++)
        if (t->need[u] > c->least * (float)c->q)
            inspect_unit(c, t->code, t->block, t->ref, t->scale, t->value, u);
    if (c->n == c->most)
        return false; /* not a few overflows: the spread has grown */
    qsort(c->list, c->n, sizeof *c->list, by_sum);
    const candidate *found[3];
    int n = search(c, t->missing, most, found);
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < 8; k++)
            if (found[i]->change[k])
                t->points[found[i]->first + CST_LANES * k] += c->q * found[i]->change[k];
    return n > 0;
}

bool cst_correct(const cst_tools *tools, const cst_lattice_block *block, uint8_t code, int32_t q, const float *ref,
                 float scale, const float *value, cst_checksum got, cst_checksum want, int32_t *points)
{
    float need[CST_BLOCK_UNITS] = {0};
    cst_block_kernels(tools, code)->need(value, ref, block->n, scale, block->step, need);
    candidate *list = malloc(MAX_CANDIDATES * sizeof *list);
    if (!list)
        return false; /* then more digits are asked for */
    correction t = {block, code, ref, value, need, scale, less(want, got), points};
    candidates c = {list, 0, MAX_LIKELY, block->keys, q, likely_share};
    bool good = attempt(&t, &c, 3);
    if (!good && c.n < MAX_LIKELY) {
        c.least = possible_share;
        c.most = MAX_CANDIDATES;
        good = attempt(&t, &c, 2);
    }
    free(list);
    return good;
}
